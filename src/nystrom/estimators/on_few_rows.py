"""Ridge regression on no more rows than landmarks: scikit-learn's own solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge

from ..edge.warnings import warn_alike, warn_of_small_alpha
from ..engines.blas import blas_threads_for
from ..factor import factorize
from ..kernels import Kernel, Precomputed
from ..methods.linear_map import LinearMap
from ..methods.ridge.posterior import Posterior
from ..methods.ridge.risk import RiskBound
from ..precision import ALIKE, least_resolved_alpha
from ..refusals import check_finite
from ..sources import Source
from .checked_targets import columns_of
from .exact import exact_landmarks
from .given_values import without_matrix
from .ridge_base import Model, OnRidge
from .ridge_parameters import check_noise


@dataclass(frozen=True, eq=False)
class ExactRidge:
    """What deviations need where every row is a landmark."""

    y: np.ndarray  # (n, t)
    weights: np.ndarray | None
    alphas: np.ndarray

    def posterior(self, K: np.ndarray, dual: np.ndarray) -> Posterior:
        """From the whole kernel matrix."""
        check_noise(self.alphas)
        factor = factorize(K)
        Z = K @ factor.root
        w = np.ones(len(K)) if self.weights is None else self.weights
        squares = np.maximum(np.einsum("nt,nt->t", self.y, dual), 0.0)
        return Posterior(
            root=factor.root,
            gram=Z.T @ (w[:, None] * Z),
            center=np.zeros(len(K)),
            own=0.0,
            alphas=self.alphas,
            scales=squares / max(w.sum(), np.count_nonzero(w)),
        )


class OnFewRows(OnRidge):
    """A ridge estimator all of whose rows may be landmarks."""

    _exact: ExactRidge

    def _fit_exactly(
        self,
        X: Any,
        kernel: Kernel,
        source: Source,
        alphas: np.ndarray,
        ravel: bool,
    ) -> None:
        """scikit-learn's own solution, on our kernel matrix."""
        landmarks = exact_landmarks(kernel, source)
        theirs = ExactKernelRidge(alpha=alphas, kernel="precomputed")
        weights = source.weights if source.is_weighted else None
        Y = source.targets[: source.n_rows]
        with blas_threads_for(source.n_rows):
            K = kernel.gram(landmarks.points)
            check_finite(K)
            alike = len(K) > 1 and 0 < K.max() * (1 - ALIKE) <= K.min()
            warn_alike(landmarks, bool(alike))
            least = least_resolved_alpha(float(np.trace(K)))
            if 0 < alphas.min() < least and np.linalg.eigvalsh(K)[0] < least:
                warn_of_small_alpha(float(alphas.min()), least)
            dual = columns_of(theirs.fit(K, Y, weights).dual_coef_)
        self.landmarks_ = without_matrix(landmarks)
        self.approximation_error_ = landmarks.error
        self._keep_width(landmarks)
        self.solver_, self.n_iter_ = "exact", None
        self.risk_bound_ = RiskBound(1.0, 1.0, "being exact")
        wide = landmarks.columns().narrow
        mapping = LinearMap(dual, np.zeros(len(alphas)), wide)
        model = Model(mapping, ravel, None, white=self._white_noise())
        self._keep_model(landmarks, model)
        if isinstance(X, Source):
            # A source may stand for a file that is gone; the rows of K are K itself.
            X = kernel.matrix if isinstance(kernel, Precomputed) else landmarks.points
        self.X_fit_ = X
        self._exact = ExactRidge(y=Y, weights=weights, alphas=alphas)

    def _known_posterior(self) -> Posterior:
        if self.solver_ == "exact":
            # Only who asks for deviations pays for the eigendecomposition.
            return self._exact.posterior(self._exact_matrix(), self._model.map.dual)
        return super()._known_posterior()

    def _exact_matrix(self) -> np.ndarray:
        if isinstance(self.landmarks_.kernel, Precomputed):
            K = np.asarray(self.X_fit_, dtype=np.float64)
            return (K + K.T) / 2
        return self.landmarks_.kernel.gram(self.landmarks_.points)

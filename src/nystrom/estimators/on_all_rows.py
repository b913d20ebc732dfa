"""Ridge regression on all rows, `solver="full"`: what is fitted, and predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import _arrays as arrays
from ..approximation import estimated_error
from ..edge.warnings import warn, warn_alike
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..engines.progress import parts
from ..kernels import Kernel, NewRows, Precomputed
from ..landmarks import Landmarks
from ..methods.linear_map import LinearMap
from ..methods.ridge.full import FullRidge, not_converged, not_definite
from ..methods.ridge.full_posterior import FullPosterior
from ..methods.ridge.risk import RiskBound
from ..samplers import Goal
from ..sinks import Output
from ..sources import Held, Source
from ..trace_error import TraceError
from ..tried import fetch
from .by_epsilon import chosen_for_risk
from .given_values import without_matrix
from .ridge_base import Model, OnRidge

#: What follows the choice of landmarks, in passes with all of them that make Z.
PASSES_AFTER = 8.0


class OnAllRows(OnRidge):
    """A ridge estimator that may have a coefficient for every row."""

    residual_: float | None
    _full: FullPosterior

    def _fit_fully(
        self,
        kernel: Kernel,
        source: Source,
        goal: Goal,
        engine: Engine,
        alphas: np.ndarray,
        ravel: bool,
    ) -> None:
        """The solution on all rows, which the landmarks precondition."""
        if kernel.traits.psd is False:
            raise ValueError(not_definite(kernel))
        landmarks = chosen_for_risk(self, kernel, source, goal, engine, PASSES_AFTER)
        if landmarks.indefinite:
            raise ValueError(not_definite(kernel))
        kept = np.flatnonzero(source.weights)
        weights = source.weights_of(kept) if source.is_weighted else None
        Y = source.targets[: source.n_rows][kept]
        points = fetch(source, kept, engine)
        like = source.given.rows(0, 1)
        own = points if source.given is source else arrays.beside(points, like)
        rows = Landmarks(own, kernel, "full", source.n_rows, indices=kept)
        preparing, solving, _ = parts(engine.progress, 1.0, 5.0, 0.1)
        with blas_threads_for(len(landmarks)):
            with preparing:
                problem = FullRidge(
                    landmarks,
                    Held(points, weights),
                    alphas,
                    fit_intercept=self.fit_intercept,
                    engine=engine,
                )
            with solving:
                fit = problem.fit(Y)
        if not fit.converged:
            warn(not_converged(fit), ConvergenceWarning)
        error = estimated_error(landmarks, source, engine)
        warn_alike(self._keep_landmarks(landmarks, error))
        self.approximation_error_ = TraceError.of_all(0.0, 1.0, source.n_rows)
        self.solver_, self.n_iter_ = "full", fit.n_steps
        self.residual_ = fit.residual
        self.risk_bound_ = RiskBound(1.0, 1.0, "being exact")
        mapping = LinearMap.as_precise_as_needed(rows, source, fit.dual, fit.intercept)
        model = Model(mapping, ravel, None, without_matrix(rows), self._white_noise())
        self._keep_model(rows, model)
        self._full = FullPosterior(weights, alphas, fit.scales)

    def _basis(self) -> Landmarks:
        rows = self._model.rows
        return self.landmarks_ if rows is None else rows

    def _both(
        self,
        landmarks: Landmarks,
        source: Source,
        engine: Engine,
        noise: bool,
        output: Output,
    ) -> Any:
        if self.solver_ != "full":
            return super()._both(landmarks, source, engine, noise, output)
        mean = self._model.map(landmarks, source, engine)
        std = self._deviations(landmarks, source, engine, noise=noise)
        both = np.hstack([arrays.host_values(mean), std])
        return output.keep(both.astype(arrays.host_dtype(mean), copy=False), mean)

    def _deviations(
        self, landmarks: Landmarks, source: Source, engine: Engine, *, noise: bool
    ) -> np.ndarray:
        if self.solver_ != "full":
            return super()._deviations(landmarks, source, engine, noise=noise)
        if isinstance(landmarks.kernel, (Precomputed, NewRows)):
            raise ValueError(
                "return_std=True after solver='full' needs the kernel matrix of the "
                "training rows, which a model with kernel='precomputed' does not keep; "
                "fit with solver='direct'."
            )
        posterior = self._full
        problem = FullRidge(
            self.landmarks_,
            Held(landmarks.points, posterior.weights),
            posterior.alphas,
            fit_intercept=self.fit_intercept,
            engine=engine,
        )
        return posterior.deviations(
            problem, source, noise=noise, white=self._model.white
        )

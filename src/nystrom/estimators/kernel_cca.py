"""`KernelCCA`: canonical correlations of two views, without forming K."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from ..edge.engine import engine_for
from ..edge.rows import (
    check_lengths,
    check_namespace,
    rows_of,
)
from ..edge.showing import shown
from ..edge.warnings import warn_about
from ..engines.blas import blas_threads_for
from ..features import FeatureMap
from ..landmarks import Landmarks
from ..methods.cca import FORMS, Canonical, canonical_pairs
from ..refusals import count, unknown
from ..sources import Pair, Source, as_source
from ..trace_error import TraceError
from .callbacks import with_callbacks
from .fitting import fitting
from .on_landmarks import in_library_of
from .transforms import TransformsRows
from .two_views import both_views, check_two_rows, of_view, pair_of_alphas, second_view


class KernelCCA(TransformsRows):
    """Regularised kernel canonical correlation analysis on landmarks.

    Finds functions of the two views whose values correlate most over the rows, each
    view through its own kernel, in O(n·s²) time. No matrix of size n × n or n × s is
    made.

    Parameters
    ----------
    n_components : int, default=2
        How many canonical pairs.
    kernel : str, callable or Kernel, or a pair of these, default="rbf"
        As for `Nystroem`, without "precomputed"; a pair is for X and for y.
    gamma, degree, coef0, kernel_params
        Parameters of a kernel given by name, for both views, or a pair of them as a
        tuple of two.
    alpha : float or pair of float, default=1.0
        The ridge of each view, > 0.
    center : bool, default=True
        Whether the mean is taken off in feature space.
    form : {"regularized", "paper"}, default="regularized"
        "regularized" solves the program of the paper's appendix. "paper" takes the
        singular values of the matrix T printed there, which shrinks each view twice and
        is not the optimum of that program.
    n_landmarks : int or None, default=1000
        How many landmarks each view has. With `ridge` or `max_trace_error`, the most
        there may be; None for no limit.
    sampler, ridge, max_trace_error
        How landmarks are chosen, as for `Nystroem`.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same landmarks for every storage and number of threads.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components,)
        The regularised correlations, descending.
    dual_coef_ : pair of ndarray of shape (n_landmarks, n_components)
        The directions as coefficients of kernel values with the landmarks.
    landmarks_ : pair of Landmarks
        All that is known about the landmarks of X and of y.
    approximation_error_ : pair of TraceError
        tr(K − K̃)/tr K of each view, exact.
    n_features_in_ : int
        Number of features of X.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(-1, 1, 2000)
    >>> X = np.c_[t, rng.standard_normal(2000)]
    >>> y = t**2 + 0.05 * rng.standard_normal(2000)
    >>> model = KernelCCA(1, n_landmarks=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _switches = ("center",)
    canonical_correlations_: np.ndarray
    dual_coef_: Any
    landmarks_: tuple[Landmarks, Landmarks]
    approximation_error_: tuple[TraceError | None, TraceError | None]

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: Any = 1.0,
        center: bool = True,
        form: str = "regularized",
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        ridge: float | None = None,
        max_trace_error: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.center = center
        self.form = form
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of both views.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            The first view.
        y : array-like or path, of shape (n_samples,) or (n_samples, n_targets), or list
            The second view. None where the source has it:
            `sources.open(path, target=[...])`.

        Returns
        -------
        self : KernelCCA
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            n_components = count(self.n_components, "n_components")
            if self.form not in FORMS:
                raise unknown("form", self.form, list(FORMS))
            alphas = pair_of_alphas(self.alpha)
            X, y = both_views(X, y)
            X = self._validated(X, reset=True)
            y = second_view(y, beside=X)
            check_lengths(X, y)
            check_two_rows(X)
            sources, chosen, engines = [], [], []
            for i, rows in enumerate((X, y)):
                kernel, source, engine = self._resolved(rows, task, **of_view(self, i))
                sources.append(source)
                after = 4.0 - i  # the other view, and three passes
                chosen.append(self._chosen(kernel, source, engine, passes_after=after))
                engines.append(engine)
            # A kernel that wants one thread gets one, whatever the other does.
            engine = engines[int(chosen[1].kernel.traits.costly)]
            center = bool(self.center)
            with blas_threads_for(max(map(len, chosen))):
                first, second = (
                    FeatureMap.for_ridge(landmarks, source, alpha, center=center)
                    for landmarks, source, alpha in zip(
                        chosen, sources, alphas, strict=True
                    )
                )
            found = canonical_pairs(
                chosen,
                (first, second),
                Pair(*sources),
                n_components,
                alphas,
                engine,
                center=center,
                form=self.form,
            )
            self._keep(chosen, found)
        return self

    @shown
    def transform(self, X: Any, y: Any = None) -> Any:
        """The canonical scores of rows.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or list, default=None
            Rows of the second view.

        Returns
        -------
        scores : array of shape (n_samples, n_components), or a pair of them
            Of X; with `y`, the pair of scores.
        """
        check_is_fitted(self, "landmarks_")
        X = self._validated(X, reset=False)
        check_namespace(X, self.landmarks_[0].points, "KernelCCA.transform()")
        scores = self._scores(0, rows_of(X))
        if y is None:
            return scores
        y = second_view(y, beside=X)
        check_lengths(X, y)
        source = rows_of(y)
        expected = as_source(self.landmarks_[1].points).n_features
        if source.n_features != expected:
            raise ValueError(
                f"y has {source.n_features} features, but KernelCCA is expecting "
                f"{expected} features as input."
            )
        return scores, self._scores(1, source)

    @shown
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and return the scores of both views, as scikit-learn's `CCA` does.

        In a pipeline it is the last step, as theirs: a step after it would get the
        pair.

        Parameters
        ----------
        X : as for `fit`
            The first view.
        y : as for `fit`
            The second view.
        **params : dict
            None are taken.

        Returns
        -------
        scores : pair of arrays of shape (n_samples, n_components)
            Of X and of y.
        """
        if params:
            raise TypeError(f"fit_transform takes no {', '.join(params)}.")
        self.fit(X, y)
        return self.transform(*both_views(X, y))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean, over the pairs, of the correlation of both views' scores.

        Parameters
        ----------
        X : array-like or list
            Rows of the first view.
        y : array-like or list
            Rows of the second view. None where the source has it.

        Returns
        -------
        correlation : float
            0 for a pair whose scores are constant.
        """
        both = self.transform(*both_views(X, y))
        a, b = (arrays.host_values(scores) for scores in both)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        sizes = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        products = np.sum(a * b, axis=0)
        return float(np.mean(products / np.where(sizes > 0, sizes, 1.0)))

    @property
    def _n_features_out(self) -> int:
        return self.canonical_correlations_.shape[0]

    def _keep(self, chosen: list[Landmarks], found: Canonical) -> None:
        if not found.correlations.any():
            raise ValueError(
                "A view is constant, as its kernel sees it, so there is nothing to "
                "correlate; check X, y and gamma."
            )
        first, second = (
            landmarks.told(view.error)
            for landmarks, view in zip(chosen, found.views, strict=True)
        )
        for landmarks in (first, second):
            warn_about(landmarks)
        self.landmarks_ = (first, second)
        self.approximation_error_ = (first.error, second.error)
        self.canonical_correlations_ = in_library_of(first, found.correlations)
        self.dual_coef_ = tuple(
            in_library_of(landmarks, view.scores.dual)
            for landmarks, view in zip((first, second), found.views, strict=True)
        )
        self._views = found.views

    def _scores(self, i: int, source: Source) -> Any:
        landmarks, view = self.landmarks_[i], self._views[i]
        engine = engine_for(landmarks.kernel, self.n_jobs, self.verbose)
        return view.scores(landmarks, source, engine, "scores")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

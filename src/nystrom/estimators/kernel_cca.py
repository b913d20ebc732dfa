"""KernelCCA: canonical correlations of two views, each with its kernel and ridge."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._validation import check_choice, check_int, check_positive
from ..kernels import Precomputed
from ..landmarks import Landmarks
from ..models.cca import FORMS, CanonicalView, canonical_pairs
from ..sources import Pair, Source, as_source, is_dask
from ..sources.files import targets_in
from ._base import BaseLandmarkTransformer, asarray_like
from ._inputs import (
    check_consistent_length,
    check_file_exists,
    check_input_type,
    check_namespace,
    check_numeric_targets,
    check_rows,
    check_targets_in_source,
    check_width,
    count_rows,
    has_object_rows,
    open_rows,
)
from ._problem import check_row_type, source_from_rows, warn_about_landmarks
from ._progress import fit_context, method_progress_bar, resolve_engine, with_callbacks


def as_two_views(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y; where a source has targets of its own, they are the second view."""
    X = open_rows(X)
    if not check_targets_in_source(X, y, "KernelCCA"):
        return X, y
    check_numeric_targets(X.targets, "KernelCCA")
    return X.replace(targets=None), getattr(X.targets, "of", X.targets)


def as_second_view(y: Any, *, like: Any) -> Any:
    """y as rows, where X is: blocks of both are multiplied.

    Numbers in one dimension are one feature.
    """
    check_input_type(y, "y")
    if isinstance(y, (str, os.PathLike)):
        check_file_exists(y, "y")
        targets = targets_in(os.fspath(y))
        check_numeric_targets(targets, "KernelCCA")
        y = targets.of
    if isinstance(y, np.ndarray) and y.dtype == object:
        # Rows that are not numbers are for a kernel that takes them.
        with suppress(TypeError, ValueError):
            y = y.astype(np.float64)
    if is_dask(y) and y.ndim == 1 and hasattr(y, "to_frame"):
        y = y.to_frame()
    if not isinstance(y, Source) and not has_object_rows(y):
        is_table = arrays.is_array(y) or sp.issparse(y) or hasattr(y, "columns")
        y = y if is_table else np.asarray(y)
        y = y[:, None] if getattr(y, "ndim", 2) == 1 else y
    y = check_rows(y, "y")
    both_dense = arrays.is_array(like) and arrays.is_array(y)
    on_other_device = both_dense and arrays.device_key(like) != arrays.device_key(y)
    return arrays.to_device_of(y, like) if on_other_device else y


def as_alpha_pair(alpha: Any) -> tuple[float, float]:
    """The ridge of each view, from one for both or from two."""
    pair = isinstance(alpha, (tuple, list, np.ndarray)) and len(alpha) == 2
    first, second = alpha if pair else (alpha, alpha)
    return check_positive(first, "alpha"), check_positive(second, "alpha")


def view_params(estimator: Any, i: int) -> dict[str, Any]:
    """The kernel of one view by its parameters, of which there may be pairs."""
    names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
    values = {name: getattr(estimator, name) for name in names}
    params = {
        name: value[i] if isinstance(value, tuple) and len(value) == 2 else value
        for name, value in values.items()
    }
    kernel = params["kernel"]
    is_precomputed = isinstance(kernel, str) and kernel == "precomputed"
    if is_precomputed or isinstance(kernel, Precomputed):
        raise ValueError(
            "KernelCCA takes rows, not kernel='precomputed'; pass a kernel and the "
            "rows of each view."
        )
    return params


class KernelCCA(BaseLandmarkTransformer):
    """Regularised kernel canonical correlation analysis on landmarks.

    Finds functions of two views whose values correlate most over the rows. Each view
    has its own kernel. The fit runs in O(n·s²) time, without a matrix of size n × n or
    n × s.

    Read more in the :doc:`user guide </components>`.

    Parameters
    ----------
    n_components : int, default=2
        Number of canonical pairs.
    kernel : str, callable or Kernel, or a pair of these, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; or a kernel from
        `nystrom.kernels`. A tuple of two is for X and for y.
    gamma : float, sequence of float, str or None or a pair of these, default=None
        Inverse width of the kernel, one number or one per feature. "scale", "auto" and
        "median" compute it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels. A tuple of two is for X and for y.
    degree : float or a pair of these, default=3
        Degree of the polynomial kernel. A tuple of two is for X and for y.
    coef0 : float or a pair of these, default=1
        Constant term of the polynomial and sigmoid kernels. A tuple of two is for X and
        for y.
    kernel_params : dict or a pair of these, default=None
        Further parameters of the kernel. A tuple of two is for X and for y.
    alpha : float or pair of float, default=1.0
        Ridge of each view, positive.
    center : bool, default=True
        Whether to center in feature space.
    form : {"regularized", "paper"}, default="regularized"
        "regularized" solves the program of the paper's appendix C.4. "paper" uses the
        singular values of the matrix T printed there, which shrinks each view twice.
    n_landmarks : int or None, default=1000
        Number of landmarks of each view. With `max_spectral_error` or `max_trace_error`
        it is an upper limit, or None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_spectral_error : float, default=None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`.
    max_trace_error : float, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    canonical_correlations_ : ndarray of shape (n_components,)
        Regularised correlations, descending.
    dual_coef_ : pair of ndarray of shape (n_landmarks, n_components)
        Directions as coefficients of kernel values with the landmarks.
    landmarks_ : pair of Landmarks
        Landmarks of X and of y.
    approximation_error_ : pair of TraceError
        Exact relative trace error tr(K − K̃)/tr K of each view.
    n_features_in_ : int
        Number of features of X.

    See Also
    --------
    KernelPCA : Components of one view.
    sklearn.cross_decomposition.CCA : Linear canonical correlation analysis.

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

    _bool_params = ("center",)
    _model_passes = 1.5  # for either view
    _n_selections = 2
    landmarks_: tuple[Landmarks, Landmarks]

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
        max_spectral_error: float | None = None,
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
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the directions of both views.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            First view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Second view, also a list or a path. None if the source has it:
            `sources.open(path, target=[...])`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with fit_context(self, X, y):
            n_components = check_int(self.n_components, "n_components")
            check_choice(self.form, "form", FORMS)
            alphas, center = as_alpha_pair(self.alpha), bool(self.center)
            X, y = as_two_views(X, y)
            X = self._validate_rows(X, reset=True)
            y = as_second_view(y, like=X)
            check_consistent_length(X, y)
            if count_rows(X) < 2:
                raise ValueError(
                    "n_samples=1 has no correlation; at least two rows are needed."
                )
            problems, landmarks_of_views = [], []
            for i, rows in enumerate((X, y)):
                problem = self._resolve_problem(rows, **view_params(self, i))
                problems.append(problem)
                landmarks_of_views.append(self._select_landmarks(problem))
            correlations, views = canonical_pairs(
                landmarks_of_views,
                Pair(*(view.source for view in problems)),
                n_components,
                alphas,
                # A kernel that wants one thread gets one, whatever the other does.
                problems[int(problems[1].kernel.traits.costly)].engine,
                center=center,
                form=self.form,
            )
            self._set_pairs(landmarks_of_views, correlations, views)
        return self

    def transform(self, X: Any, y: Any = None) -> Any:
        """Compute the canonical scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or list, default=None
            Rows of the second view.

        Returns
        -------
        scores : array of shape (n_samples, n_components), or a pair of them
            Scores of X; with `y`, scores of both views.
        """
        check_is_fitted(self, "landmarks_")
        with method_progress_bar(self, "transform"):
            X = self._validate_rows(X, reset=False)
            check_namespace(X, self.landmarks_[0].points, "KernelCCA.transform()")
            scores = self._scores(0, source_from_rows(X))
            if y is None:
                return scores
            y = as_second_view(y, like=X)
            check_consistent_length(X, y)
            source = source_from_rows(y)
            expected = as_source(self.landmarks_[1].points).n_features
            check_width(source.n_features, expected, "KernelCCA is expecting", "y")
            return scores, self._scores(1, source)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the scores of both views.

        The result is a pair, as for scikit-learn's `CCA`, so this can only be the last
        step of a pipeline.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            First view.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Second view, also a list or a path. None if the source has it.

        Returns
        -------
        scores : pair of arrays of shape (n_samples, n_components)
            Scores of X and of y.
        """
        with method_progress_bar(self, "fit_transform"):
            self.fit(X, y)
            return self.transform(*as_two_views(X, y))

    def score(self, X: Any, y: Any = None) -> float:
        """Compute the mean correlation of the scores of both views.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the first view.
        y : array-like or list, default=None
            Rows of the second view. None if the source has it.

        Returns
        -------
        correlation : float
            Mean over the pairs. A pair with constant scores counts as 0.
        """
        score_pair = self.transform(*as_two_views(X, y))
        a, b = (arrays.to_host_float64(scores) for scores in score_pair)
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        sizes = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
        products = np.sum(a * b, axis=0)
        return float(np.mean(products / np.where(sizes > 0, sizes, 1.0)))

    @property
    def _n_features_out(self) -> int:
        return self.canonical_correlations_.shape[0]

    def _set_pairs(
        self,
        landmarks_of_views: list[Landmarks],
        correlations: np.ndarray,
        views: tuple[CanonicalView, CanonicalView],
    ) -> None:
        if not correlations.any():
            raise ValueError(
                "A view is constant under its kernel, so it has no correlation; "
                "check X, y and gamma."
            )
        first, second = (
            landmarks.with_error(view.error)
            for landmarks, view in zip(landmarks_of_views, views, strict=True)
        )
        for landmarks in (first, second):
            warn_about_landmarks(landmarks)
        self.landmarks_ = (first, second)
        self.approximation_error_ = (first.error, second.error)
        self.canonical_correlations_ = asarray_like(first, correlations)
        self.dual_coef_ = tuple(
            asarray_like(landmarks, view.scores.dual)
            for landmarks, view in zip((first, second), views, strict=True)
        )
        self._views = views

    def _scores(self, i: int, source: Source) -> Any:
        landmarks, view = self.landmarks_[i], self._views[i]
        check_row_type(landmarks.kernel, source)
        engine = resolve_engine(landmarks.kernel, self.n_jobs, self.verbose)
        return view.scores(landmarks, source, engine, "scores")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

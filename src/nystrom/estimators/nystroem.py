"""Nystroem: scikit-learn's transformer with leverage-score landmarks, streams and
truncation.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._validation import check_float, check_int
from ..engines import Engine
from ..kernels import Precomputed
from ..landmarks import Landmarks
from ..linalg.errors import TraceError, estimate_trace_error
from ..linalg.features import (
    LinearMap,
    features,
    features_and_error,
    features_need_float64,
)
from ..samplers import FixedSize, StoppingRule, as_sampler
from ..sources import Source, is_dask
from ..sources.output import Output
from ._base import BaseLandmarkTransformer
from ._inputs import check_learning_targets
from ._problem import is_learned_gamma
from ._progress import fit_context, method_of_rows, warn, with_callbacks
from .kernel_pca import PreimageMixin


class Nystroem(PreimageMixin, BaseLandmarkTransformer):
    """Approximate a kernel map with landmarks selected from the training rows.

    A drop-in replacement for `sklearn.kernel_approximation.Nystroem`: its parameters,
    defaults and fitted attributes come first. Landmarks are selected by ridge leverage
    scores and by the trace error that each one removes, instead of uniformly. The
    approximation error is reported.

    Read more in the :doc:`user guide </landmarks>`.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature. "scale", "auto" and
        "median" compute it from the rows; "learn", "ard" and "matrix" learn it from the
        y given to `fit`, as for `KernelRidge`. None is scikit-learn's default,
        1/n_features for most kernels.
    coef0 : float, default=None
        Constant term of the polynomial and sigmoid kernels.
    degree : float, default=None
        Degree of the polynomial kernel.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    n_components : int or None, default=100
        Number of landmarks, and of features. With `max_spectral_error` or
        `max_trace_error` it is an upper limit, or None for no limit.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_spectral_error : float, default=None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`.
    max_trace_error : float, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K.
    fit_inverse_transform : bool, default=False
        Whether to learn `inverse_transform`, the map from features back to rows, as
        `KernelPCA` does.
    alpha : float, default=1.0
        Ridge of the regression behind `inverse_transform`.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The landmarks. For kernel="precomputed", their kernel matrix; a list if the rows
        are objects.
    component_indices_ : ndarray of shape (n_components,)
        Row numbers of the landmarks. Absent if the landmarks are not rows.
    normalization_ : array of shape (n_components, n_components)
        Inverse L⁻¹ of the Cholesky factor of the landmarks' kernel matrix. The features
        are `k(X, components_) @ normalization_.T`.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; prints as one line.
    approximation_error_ : TraceError or None
        Relative trace error tr(K − K̃)/tr K: exact after `fit_transform` and with
        `max_trace_error`, estimated on about 1024 rows after `fit`. None if the kernel
        is indefinite.
    gamma_ : float or ndarray of shape (n_features,) or (n_features, n_features)
        The learnt gamma, for gamma="learn", "ard" or "matrix". "learn" gives a number.
        "ard" gives a number or one per feature, and "matrix" these or a matrix,
        whichever predicts held-out rows best.
    feature_importances_ : ndarray of shape (n_features,)
        With gamma="ard" or "matrix": weight of each feature in the learnt distance, for
        features of variance 1. They sum to 1.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    KernelPCA : Principal components of the same features.
    select_landmarks : The landmarks alone.
    sklearn.kernel_approximation.Nystroem : Uniformly drawn landmarks.

    Notes
    -----
    The features are nested: the first k columns are the features of the first k
    landmarks. See `truncate`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from nystrom import Nystroem
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(
    ...     Nystroem(gamma=1e-3, n_components=200, random_state=0), RidgeClassifier()
    ... ).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _rejects_unused_kernel_params = True
    _n_landmarks_param = "n_components"
    _bool_params = ("fit_inverse_transform",)

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: Any = None,
        degree: Any = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int | None = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        sampler: Any = "auto",
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        fit_inverse_transform: bool = False,
        alpha: float = 1.0,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.sampler = sampler
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.fit_inverse_transform = fit_inverse_transform
        self.alpha = alpha
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Select landmarks among the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : array-like or path, default=None
            Targets for gamma="learn", "ard" or "matrix": floats, or classes of any
            other kind. Ignored otherwise.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with fit_context(self, X, y, passes=0.05):
            problem = self._validate(X, y, sample_weight)
            stopping_rule = self._stopping_rule_for(problem.source.n_rows)
            landmarks = self._select_landmarks(problem, stopping_rule)
            wide = features_need_float64(landmarks, problem.source)
            error = estimate_trace_error(landmarks, problem.source, problem.engine)
            self._set_fit(landmarks, wide, error, problem.source, problem.engine)
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the landmarks with a further batch of a stream of rows.

        A few weighted rows represent all earlier ones, and landmarks are selected among
        these and the new rows in O(batch · s²) time; memory does not grow with the
        number of batches. Landmarks are selected again when enough rows have arrived (a
        quarter of all rows so far, or twelve per landmark), or when the error rises by
        half or above `max_trace_error`. The features then change. The first call fits,
        and `fit` forgets the stream. A gamma from the data ("scale") is that of the
        first batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the batch.
        y : Ignored, default=None
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The estimator, fitted to all rows so far. `component_indices_` counts all of
            them.
        """
        with fit_context(self, X, y):
            batch = self._validate_batch(X)
            landmarks = self._update_landmarks(batch, self._stopping_rule())
            rows = landmarks.reservoir.source  # they stand for all that came
            wide = features_need_float64(landmarks, rows)
            self._set_fit(landmarks, wide, landmarks.error, rows, batch.engine)
        return self

    @with_callbacks
    def fit_transform(
        self, X: Any, y: Any = None, out: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit, and return the features of X.

        One pass gives both the features and the exact error.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : array-like or path, default=None
            Targets for gamma="learn", "ard" or "matrix". Ignored otherwise.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        features : array of shape (n_samples, n_components)
            Features in the precision of X, or `out`.
        """
        Output(out)  # refused before the work begins
        # Rows of weight 0 are no part of the fit, and results of Dask's are lazy.
        if sample_weight is not None or (is_dask(X) and out is None):
            return self.fit(X, y, sample_weight).transform(X, out)
        with fit_context(self, X, y):
            problem = self._validate(X, y)
            stopping_rule = self._stopping_rule_for(problem.source.n_rows)
            landmarks = self._select_landmarks(problem, stopping_rule)
            wide = features_need_float64(landmarks, problem.source)
            prefix = type(self).__name__.lower()
            names = [f"{prefix}{i}" for i in range(len(landmarks))]
            Z, error = features_and_error(
                landmarks,
                problem.source,
                problem.engine,
                wide=wide,
                output=Output(out, names=names),
            )
            self._set_fit(landmarks, wide, error, problem.source, problem.engine)
        return Z

    @method_of_rows
    def transform(self, X: Any, out: Any = None) -> Any:
        """Compute the features of rows.

        The features are `k(X, components_) @ normalization_.T`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        features : array of shape (n_samples, n_components)
            Features in the precision of X, or `out`.
        """
        check_is_fitted(self, "landmarks_")
        names = None if out is None else self.get_feature_names_out()
        output = Output(out, names=names)
        landmarks, source, engine = self._resolve_new_rows(
            X, self.components_, "transform"
        )
        return features(landmarks, source, engine, wide=self._wide, output=output)

    def truncate(self, n_components: int) -> Nystroem:
        """Return a fitted Nystroem with the first components only.

        No pass over the rows is needed. Landmarks are ordered by selection and the
        features of the first landmarks are the first columns. `landmarks_.error_path`
        has the error of every number of landmarks.

        Parameters
        ----------
        n_components : int
            Number of components to keep.

        Returns
        -------
        truncated : Nystroem
            A fitted copy; this estimator is unchanged.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from nystrom import Nystroem
        >>> X, _ = load_digits(return_X_y=True)
        >>> est = Nystroem(gamma=1e-3, n_components=100, random_state=0)
        >>> Z = est.fit_transform(X)
        >>> fewer = est.truncate(20)
        >>> bool(abs(fewer.transform(X) - Z[:, :20]).max() < 1e-10)
        True
        >>> print(fewer.landmarks_.error.value == est.landmarks_.error_path[19])
        True
        """
        check_is_fitted(self, "landmarks_")
        size = check_int(n_components, "n_components")
        most = len(self.landmarks_)
        if size > most:
            raise ValueError(
                f"n_components={size} is more than the {most} that this Nystroem has; "
                "fit with more components."
            )
        truncated, landmarks = copy.copy(self), self.landmarks_[:size]
        truncated.n_components = size
        is_precomputed = landmarks.kernel.traits.uses_row_numbers
        truncated.components_ = (
            self.components_[:size, :size] if is_precomputed else landmarks.points
        )
        truncated.landmarks_ = landmarks
        truncated.approximation_error_ = landmarks.error
        like = self.normalization_
        root = landmarks.factor.for_block_dtype(arrays.numpy_float_dtype(like))
        truncated.normalization_ = arrays.from_host(root.full_root.T, like, like.dtype)
        truncated._n_features_out = size
        truncated.fit_inverse_transform = False  # the way back begins at all features
        return truncated

    @property
    def component_indices_(self) -> np.ndarray:
        """Row numbers of the landmarks."""
        landmarks = self.__dict__.get("landmarks_")
        if landmarks is None or landmarks.indices is None:
            raise AttributeError(
                "component_indices_ is not available: "
                + (
                    "this Nystroem is not fitted yet."
                    if landmarks is None
                    else f"landmarks by {landmarks.sampler} are not rows of the data."
                )
            )
        return landmarks.indices

    def _stopping_rule(self, max_spectral_error: float | None = None) -> StoppingRule:
        stopping_rule = super()._stopping_rule(max_spectral_error)
        delta = getattr(as_sampler(self.sampler, stopping_rule), "proven_delta", None)
        if isinstance(stopping_rule, FixedSize) and delta:
            raise ValueError(
                "With the theory's constants the number of landmarks is random, not "
                f"n_components={self.n_components!r}; give max_spectral_error and "
                "n_components=None, or use practical constants."
            )
        return stopping_rule

    def _validate_targets(self, X: Any, y: Any) -> tuple[Any, bool]:
        check_float(self.alpha, "alpha", minimum=0.0)
        if not is_learned_gamma(self.gamma):
            return None, False
        return check_learning_targets(X, y), False

    def _stopping_rule_for(self, n_rows: int) -> StoppingRule:
        stopping_rule = self._stopping_rule()
        if isinstance(stopping_rule, FixedSize) and stopping_rule.n_landmarks > n_rows:
            warn(
                "n_components > n_samples. This is not possible.\n"
                "n_components was set to n_samples, which results in inefficient "
                "evaluation of the full kernel."
            )
        return stopping_rule

    def _set_fit(
        self,
        landmarks: Landmarks,
        wide: bool,
        error: TraceError | None,
        source: Source,
        engine: Engine,
    ) -> None:
        if wide:
            note = "features in float64"
            landmarks = landmarks.replace(notes=(*landmarks.notes, note))
        landmarks = self._set_landmarks(landmarks, error)
        columns = landmarks.columns(wide=wide)
        # L⁻¹, with a row of zeros for a landmark that adds nothing.
        root = landmarks.factor.for_block_dtype(columns.dtype).full_root.T
        like = landmarks.kernel.output_like(landmarks.points)
        self.normalization_ = arrays.from_host(root, like, columns.dtype)
        self.components_ = landmarks.points
        if isinstance(landmarks.kernel, Precomputed):
            self.components_ = landmarks.kernel(landmarks.points, landmarks.points)
        self._wide = wide  # float32 rows are evaluated in float64
        self._n_features_out = len(landmarks)
        if self.fit_inverse_transform:
            dual = arrays.to_host_float64(self.normalization_).T
            forward = LinearMap(dual, np.zeros(len(dual)), wide=wide)
            self._fit_preimage(landmarks, forward, source, engine)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = is_learned_gamma(self.gamma)
        return tags

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
from ..linalg.features import features, features_and_error, features_need_float64
from ..models.linear_map import LinearMap
from ..samplers import FixedSize, StoppingRule, as_sampler
from ..sources import Source
from ..sources.output import Output
from ._base import BaseLandmarkTransformer
from ._inputs import check_learning_targets
from ._problem import KernelProblem, is_learned_gamma
from ._progress import fit_context, method_of_rows, with_callbacks
from ._warnings import warn
from .kernel_pca import PreimageMixin


class Nystroem(PreimageMixin, BaseLandmarkTransformer):
    """Approximate a kernel map using landmarks chosen among the training rows.

    A drop-in for `sklearn.kernel_approximation.Nystroem`: the same parameters, defaults
    and fitted attributes come first. Landmarks are chosen by ridge leverage scores and
    by what each gains instead of uniformly, the error is reported, and the result is
    the only n × s array.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        A name as in scikit-learn, or "matern", "matern12", "matern32", "matern52",
        "rational_quadratic"; a function of two rows; a value from `nystrom.kernels`; or
        "precomputed".
    gamma : float, sequence of float, str or None, default=None
        The width of the kernel, one or one per feature; "scale", "auto" or "median",
        from the rows; "learn" or "ard", from the y that `fit` is given, as for
        `KernelRidge`. None is scikit-learn's default.
    coef0 : float, default=None
        Zero coefficient of polynomial and sigmoid kernels.
    degree : float, default=None
        Degree of the polynomial kernel.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    n_components : int or None, default=100
        Number of landmarks, and of features. With `max_spectral_error` or
        `max_trace_error`, the most there may be; None for no limit.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same landmarks for every storage and number of threads.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    sampler : str, callable or array, default="auto"
        "auto", "recursive", "accelerated", "leverage", "rpcholesky", "greedy",
        "kmeans", "uniform", a value from `nystrom.samplers`, row numbers, or an array
        of points.
    max_spectral_error : float, default=None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes.
    max_trace_error : float, default=None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes.
    fit_inverse_transform : bool, default=False
        Whether to learn the way back from features to rows, for dense rows of numbers:
        `inverse_transform` gives pre-images, as `KernelPCA` does.
    alpha : float, default=1.0
        Ridge of the regression behind `inverse_transform`.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The landmarks. For kernel="precomputed" their own kernel matrix; a list where
        the rows are objects.
    component_indices_ : ndarray of shape (n_components,)
        Their row numbers. Absent where the landmarks are not rows.
    normalization_ : array of shape (n_components, n_components)
        L⁻¹ for the Cholesky factor L of the landmarks' kernel matrix, in the order of
        choice: the features are `k(X, components_) @ normalization_.T`.
    landmarks_ : Landmarks
        All that is known about the landmarks; prints as one line.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K: exact after `fit_transform` and with `max_trace_error`,
        estimated on about 1024 rows after `fit`. None where the kernel is indefinite.
    gamma_ : float or ndarray of shape (n_features,)
        What gamma="learn", "ard" or "matrix" has learnt; absent otherwise.
    n_features_in_ : int
        Number of features seen during fit.

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
        """Choose landmarks among the rows of X.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, default=None
            What gamma="learn" learns from: floating-point numbers, or classes of any
            other kind. Ignored otherwise.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : Nystroem
            The fitted estimator.
        """
        with fit_context(self, X, y, passes=0.05):
            problem = self._validate(X, y, sample_weight)
            landmarks = self._select_landmarks(problem, self._stopping_rule())
            wide = features_need_float64(landmarks, problem.source)
            error = estimate_trace_error(landmarks, problem.source, problem.engine)
            self._set_fit(landmarks, wide, error, problem.source, problem.engine)
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Fit to a further batch of a stream of rows.

        Few weighted rows stand for all that came before, and landmarks are chosen among
        them and the new ones, in O(batch · s²); memory does not grow with the number of
        batches. They are chosen anew once enough rows have come (a quarter of all so
        far, or twelve per landmark), or rows that raise the error by half or above
        `max_trace_error`, and the features then change with them. The first call fits;
        `fit` forgets the stream. A width from the data (gamma="scale") is that of the
        first batch.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            The rows of the batch.
        y : ignored
            For pipelines.

        Returns
        -------
        self : Nystroem
            Fitted to all rows so far; `component_indices_` count them all.
        """
        with fit_context(self, X, y):
            batch = self._validate_batch(X)
            landmarks = self._update_landmarks(batch, self._stopping_rule())
            rows = landmarks.reservoir.source  # they stand for all that came
            wide = features_need_float64(landmarks, rows)
            self._set_fit(landmarks, wide, landmarks.error, rows, batch.engine)
        return self

    @method_of_rows
    @with_callbacks
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        out: Any = None,
        sample_weight: Any = None,
        **fit_params: Any,
    ) -> Any:
        """Fit, and return the features of X, from the pass that gives the exact error.

        Parameters
        ----------
        X : as for `fit`
            Training rows.
        y : as for `fit`
            What gamma="learn" learns from.
        out : str, Path or array, default=None
            Where the features go, as for `transform`.
        sample_weight : as for `fit`
            With weights, rows are transformed in a pass of its own.
        **fit_params : dict
            Not accepted.

        Returns
        -------
        features : array of shape (n_samples, n_components)
            In the precision of X; `out` where it is given.
        """
        if fit_params:
            raise TypeError(f"fit_transform takes no {', '.join(fit_params)}.")
        Output(out)  # refused before the work begins
        if sample_weight is not None:  # rows of weight 0 are no part of the fit
            return self.fit(X, y, sample_weight).transform(X, out)
        with fit_context(self, X, y):
            problem = self._validate(X, y)
            landmarks = self._select_landmarks(problem, self._stopping_rule())
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
        """The features `k(X, components_) @ normalization_.T`.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows. For kernel="precomputed", their kernel values with all training rows,
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` of those with
            the landmarks alone.
        out : str, Path or array, default=None
            Where the features go, instead of a new array: a file whose name ends in
            `.npy`, `.parquet` or `.zarr`, written block by block, complete or not at
            all; or an array to be filled. A file that exists is replaced only by
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        features : array of shape (n_samples, n_components)
            In the precision of X; `out` where it is given.
        """
        check_is_fitted(self, "landmarks_")
        output = Output(out, names=self.get_feature_names_out())
        landmarks, source, engine = self._resolve_new_rows(
            X, self.components_, "transform"
        )
        return features(landmarks, source, engine, wide=self._wide, output=output)

    def truncate(self, n_components: int) -> Nystroem:
        """A fitted Nystroem of the first components alone, without another pass.

        Landmarks are in the order of choice, and their features nest: those of the
        first landmarks are the first columns. `landmarks_.error_path` tells the error
        of every number of them.

        Parameters
        ----------
        n_components : int
            How many, at most as many as there are.

        Returns
        -------
        fewer : Nystroem
            Fitted; this one stays as it is.

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

    def _select_landmarks(
        self,
        problem: KernelProblem,
        stopping_rule: StoppingRule | None = None,
        **options: Any,
    ) -> Landmarks:
        n = problem.source.n_rows
        if isinstance(stopping_rule, FixedSize) and stopping_rule.n_landmarks > n:
            warn(
                "n_components > n_samples. This is not possible.\n"
                "n_components was set to n_samples, which results in inefficient "
                "evaluation of the full kernel."
            )
        return super()._select_landmarks(problem, stopping_rule, **options)

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

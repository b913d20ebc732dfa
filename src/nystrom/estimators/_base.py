"""`BaseLandmarkEstimator`: what every estimator shares.

Validates X, y, weights and parameters, selects landmarks, sets fitted attributes,
maps new rows; batches of a stream and scikit-learn's callbacks go through here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    is_classifier,
)
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    validate_data,
)

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import check_bool, named_plainly
from ..engines import Engine
from ..engines.base import progress_parts
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, Precomputed, PrecomputedAtLandmarks, PrecomputedCross
from ..kernels.names import NAMES, as_kernel, gamma_of
from ..kernels.stationary import has_width_gradient
from ..landmarks import Landmarks
from ..linalg.errors import TraceError
from ..models.length_scales import (
    MAX_SUBSET_LANDMARKS,
    TrainingSubset,
    learn_length_scales,
)
from ..samplers import FixedSize, StoppingRule, as_sampler
from ..samplers.streaming import update_from_batch
from ..samplers.weighted_sampling import all_rows_as_landmarks
from ..sources import RowNumbers, Source, infer_source
from ._inputs import (
    LEARN_ARD,
    as_dense_kernel_values,
    check_batch_features,
    check_consistent_length,
    check_namespace,
    check_rows,
    check_streamable,
    check_targets_in_source,
    explain_memory_errors,
    explaining,
    gamma_from_data,
    has_object_rows,
    is_learned_gamma,
    load_if_dask,
    not_finite,
    open_if_external,
    resolve_kernel_and_source,
    run_sampler_from_params,
    source_from_rows,
    stopping_rule_from_params,
    warn_about_landmarks,
)
from ._progress import CallbackTask, progress_bar, resolve_engine

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "CallbackTask", "with_callbacks"]


@contextmanager
def fit_context(estimator: Any, X: Any, y: Any) -> Iterator[CallbackTask]:
    """Around every fit: callbacks are told, and a fit that fails leaves no trace.

    One bar shows all of it. BLAS has one thread where the landmarks are few, for all
    that is not a pass too.
    """
    name, verbose = type(estimator).__name__, getattr(estimator, "verbose", 0)
    with progress_bar(name, verbose):
        task = CallbackTask(estimator, X, y)
        state_before = dict(vars(estimator))
        try:
            with explain_memory_errors(name), _blas_threads_for_estimator(estimator):
                yield task
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(state_before)
            raise
        task.end()


def _blas_threads_for_estimator(estimator: Any) -> AbstractContextManager:
    """BLAS's threads for matrices of as many rows as there may be landmarks."""
    n_landmarks = getattr(estimator, estimator._n_landmarks_param)
    sizes = n_landmarks if isinstance(n_landmarks, (list, tuple)) else [n_landmarks]
    all_known = all(isinstance(size, Integral) for size in sizes)
    return blas_limit_for_size(max(sizes, default=0)) if all_known else nullcontext()


def uses_exact_solver(
    stopping_rule: StoppingRule, sampler: Any, source: Source
) -> bool:
    """Whether all rows are landmarks: by their number alone, and rows of NumPy."""
    fits = (
        isinstance(stopping_rule, FixedSize)
        and source.n_rows <= stopping_rule.n_landmarks
    )
    rows = source.rows(0, 1)
    on_host = not arrays.is_array_or_csr(rows) or arrays.namespace(rows) is np
    return fits and isinstance(sampler, str) and on_host


def exact_landmarks(kernel: Kernel, source: Source) -> Landmarks:
    """All rows, with what it takes to evaluate K and the error that is left: none."""
    n = source.n_rows
    return all_rows_as_landmarks(kernel, source, "exact").replace(
        error=TraceError.from_sums(0.0, 1.0, n),
        n_kernel_evaluations=kernel.gram_evaluations(n),
    )


class RowValidationMixin:
    """A mixin for estimators that remember what features they were fitted to."""

    n_features_in_: int

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        """X checked by scikit-learn's rules, or as it is where its rows are objects.

        Paths become sources, whose rows are checked when they are read.
        """
        X = open_if_external(X, None if reset else self._fitted_names)
        if isinstance(X, Source):
            self._check_source_features(X, reset=reset)
            return X
        if has_object_rows(X):
            for name in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(name, None)
            return check_rows(X)
        if not arrays.is_on_host(X):
            # As scikit-learn would, whether or not its array API dispatch is on.
            X = check_rows(X)
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return X
        with explaining(X=X):
            if not reset and self._ignores_missing_names(X):
                X = check_array(X, accept_sparse="csr", dtype="numeric", estimator=self)
                _check_n_features(self, X, reset=False)
                return X
            return validate_data(
                self, X, accept_sparse="csr", dtype="numeric", reset=reset
            )

    def _check_source_features(self, source: Source, *, reset: bool) -> None:
        """Remember how many features there are, or compare with what was fitted."""
        n_features = source.n_features
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            if n_features is not None:
                self.n_features_in_ = n_features
            if source.feature_names:
                self.feature_names_in_ = np.array(source.feature_names, dtype=object)
            self._names_from_source = bool(source.feature_names)
        elif n_features is not None and n_features != getattr(
            self, "n_features_in_", n_features
        ):
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        else:
            check_feature_names_match(source.feature_names, self._fitted_names)

    @property
    def _fitted_names(self) -> list[str] | None:
        """What the features were called in `fit`, if they had names."""
        names = self.__dict__.get("feature_names_in_")
        return None if names is None else list(names)

    def _ignores_missing_names(self, X: Any) -> bool:
        """Whether names came from a file, and X is an array: no reason to warn.

        Rows of a file are often compared with some that are in memory.
        """
        return not hasattr(X, "columns") and vars(self).get("_names_from_source", False)


def check_feature_names_match(given: Any, fitted: list[str] | None) -> None:
    """New rows have the features of the old ones, in their order."""
    if given is None or fitted is None or list(given) == fitted:
        return
    missing = [name for name in fitted if name not in given]
    difference = f"{missing[0]!r} is missing" if missing else "their order is another"
    raise ValueError(
        "The feature names should match those that were passed during fit: "
        f"{difference}. Name the columns, sources.open(path, "
        "columns=list(model.feature_names_in_))."
    )


class TargetValidationMixin(RowValidationMixin):
    """A mixin for estimators that learn numbers."""

    def _validate_rows_and_targets(
        self, X: Any, y: Any, *, reset: bool = True
    ) -> tuple[Any, Any, bool]:
        """X and targets checked, and whether these are one number per row.

        Targets are (n, t) floats on the host, or come with the rows of a source.
        """
        X = open_if_external(X, None if reset else self._fitted_names)
        y = load_if_dask(y)
        if check_targets_in_source(X, y, type(self).__name__):
            check_numeric_targets(X.targets, type(self).__name__)
            is_single_target = getattr(X.targets, "single", False)
            return self._validate_rows(X, reset=reset), X.targets, is_single_target
        y = arrays.tree_to_host(y)
        _check_numeric_y(y)
        if isinstance(X, Source) or has_object_rows(X) or not arrays.is_on_host(X):
            self._require_y(y)
            X = self._validate_rows(X, reset=reset)
            with explaining(y=y):
                y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            check_consistent_length(X, y)
        else:
            check_consistent_length(X, y)
            with explaining(X=X, y=y):
                X, y = validate_data(
                    self,
                    X,
                    y,
                    accept_sparse="csr",
                    multi_output=True,
                    y_numeric=True,
                    reset=reset,
                )
        y = y.astype(np.float64, copy=False)
        if not np.isfinite(y).all():  # None among objects, which is a number to NumPy
            raise not_finite(y, "y") or ValueError("y is not finite.")
        if y.ndim > 2:
            raise ValueError(
                f"y has shape {y.shape}; it must be (n_samples,) or (n_samples, "
                "n_targets)."
            )
        return X, as_2d_targets(y), y.ndim == 1

    def _require_y(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )


def _check_numeric_y(y: Any) -> None:
    """Text that is no number has no place in y."""
    if y is None or (arrays.is_array(y) and not isinstance(y, np.ndarray)):
        return
    if sp.issparse(y):
        raise ValueError("y is sparse; targets must be a dense array, y.toarray().")
    values = np.asarray(y, dtype=object) if isinstance(y, list) else np.asarray(y)
    if values.dtype.kind in "OUS":
        try:
            values.astype(np.float64)
        except (TypeError, ValueError) as error:
            found = not_finite(values, "y")  # pandas.NA among numbers
            if found is not None:
                raise found from None
            raise ValueError(
                "y holds something that is not a number: "
                f"{str(error).rstrip('.')}. Encode it as numbers; for classes use "
                "KernelRidgeClassifier."
            ) from None


def check_numeric_targets(targets: Any, caller: str) -> None:
    """Classes of a file are no numbers."""
    names = getattr(targets, "names", None)
    if names is not None and names.dtype.kind != "b":
        raise ValueError(
            f"The target of the source is text (such as {str(names[0])!r}), and "
            f"{caller} takes numbers; for classes use KernelRidgeClassifier, or name "
            "another column."
        )


def read_all_targets(source: Source) -> np.ndarray:
    """The targets that a source has, as users know them."""
    targets = source.targets
    values = targets[: source.n_rows]
    values = values[:, 0] if getattr(targets, "single", False) else values
    names = getattr(targets, "names", None)
    return values if names is None else names[values.astype(int)]


def as_2d_targets(y: np.ndarray) -> np.ndarray:
    """y as (n, t)."""
    return y[:, None] if y.ndim == 1 else y


def check_not_kernel_values(X: Any, landmarks: Landmarks) -> None:
    """Values with the landmarks are for a kernel that is given by its values."""
    if isinstance(X, PrecomputedAtLandmarks):
        raise ValueError(
            "kernels.PrecomputedAtLandmarks is for kernel='precomputed'; pass the "
            "rows themselves "
            f"where the kernel is {landmarks.kernel}."
        )


def check_landmark_values(X: PrecomputedAtLandmarks, landmarks: Landmarks) -> Any:
    """Values that are said to be those with the landmarks alone."""
    values, size = as_dense_kernel_values(check_rows(X.values)), len(landmarks)
    if values.shape[1] != size:
        raise ValueError(
            f"PrecomputedAtLandmarks has values of shape {tuple(values.shape)}; it "
            "takes one "
            f"column per landmark, of which there are {size}."
        )
    return values


def check_not_only_landmark_values(X: Any, landmarks: Landmarks) -> None:
    """A matrix as wide as there are landmarks may be of these, or of any other rows."""
    n_columns = (getattr(X, "shape", None) or np.shape(X))[-1:]
    if n_columns == (len(landmarks),) and len(landmarks) != landmarks.n_rows:
        raise ValueError(
            f"X has {n_columns[0]} features, but with kernel='precomputed' new rows "
            "have "
            f"{landmarks.n_rows}: their kernel values with all training rows, in their "
            f"order. If these are the values with the {n_columns[0]} landmarks alone, "
            "K[:, landmarks_.indices], say so: pass "
            "nystrom.kernels.PrecomputedAtLandmarks(X)."
        )


def kernel_from_values(matrix: Any) -> Kernel:
    """The kernel of given values: of the training rows themselves, or of new ones.

    Only values of rows with themselves are symmetric, and have k(x, x).
    """
    is_square = matrix.shape[0] == matrix.shape[1] and arrays.namespace(matrix) is np
    is_gram = is_square and np.allclose(
        matrix, matrix.T, 0, 1e-6 * np.abs(matrix).max()
    )
    return Precomputed(matrix) if is_gram else PrecomputedCross(matrix)


def drop_kernel_matrix(landmarks: Landmarks) -> Landmarks:
    """The landmarks as part of a model, which the whole of K is not."""
    if not isinstance(landmarks.kernel, Precomputed):
        return landmarks
    return landmarks.replace(kernel=Precomputed())


#: More widths than this are not learnt.
MAX_ARD_FEATURES = 2**14


def check_learnable_kernel(gamma: str, kernel: Any) -> None:
    """Refuse kernels whose widths cannot be learnt."""
    if (
        isinstance(kernel, str)
        and kernel in NAMES
        and has_width_gradient(as_kernel(kernel))
    ):
        return
    allowed = [name for name in NAMES if has_width_gradient(as_kernel(name))]
    raise ValueError(
        f"gamma={gamma!r} is for kernels of a distance, by their name: "
        f"{', '.join(allowed)}; not for kernel={kernel!r}."
    )


def learn_kernel(
    gamma: str,
    name: str,
    kernel: Kernel,
    source: Source,
    engine: Engine,
    *,
    size: Any,
    intercept: bool,
    seed: int,
) -> Kernel:
    """The kernel, which has the width "scale", with the widths learnt.

    `size` is how many landmarks there will be, where that is known.
    """
    ard = gamma == LEARN_ARD
    if ard and (source.n_features or 0) > MAX_ARD_FEATURES:
        raise ValueError(
            f"gamma={gamma!r} has a width for each of {source.n_features} features, "
            f"and takes at most {MAX_ARD_FEATURES}; use gamma='learn', one for all."
        )
    if not source.weights.any():
        return kernel
    subset = TrainingSubset.from_source(
        source,
        engine,
        size=size if isinstance(size, int) else MAX_SUBSET_LANDMARKS,
        intercept=intercept,
        dense=ard,
        seed=seed,
    )
    scale_gamma, median_gamma = (
        gamma_of(kernel),
        gamma_from_data("median", name, source, engine),
    )
    assert isinstance(scale_gamma, float)
    return learn_length_scales(kernel, [scale_gamma, median_gamma], subset, ard=ard)


def as_learning_targets(X: Any, y: Any) -> Any:
    """Targets for gamma="learn" of y that may be anything, or of a source.

    Numbers are what is of a floating-point type; anything else stands for classes,
    which become ±1 for each of them.
    """
    if y is None:
        return getattr(X, "targets", None)
    y = np.asarray(arrays.tree_to_host(load_if_dask(y)))
    check_consistent_length(X, y)
    if y.dtype.kind != "f":
        return LabelBinarizer(neg_label=-1).fit_transform(y).astype(np.float64)
    with explaining(y=y):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y[:, None] if y.ndim == 1 else y


class BaseLandmarkEstimator(RowValidationMixin):
    """A mixin for estimators with `kernel` and, once fitted, `landmarks_`."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None
    n_landmarks: Any
    sampler: Any
    max_spectral_error: float | None = None
    max_trace_error: float | None = None
    random_state: Any
    n_jobs: int | None
    verbose: int
    landmarks_: Any
    approximation_error_: Any
    #: Whether gamma, degree and coef0 are refused where the kernel has no name: by
    #: scikit-learn's Nystroem they are, its other classes pass over them.
    _rejects_unused_kernel_params = False
    #: The parameter that says how many landmarks.
    _n_landmarks_param = "n_landmarks"
    #: Parameters that are True or False.
    _bool_params: ClassVar[tuple[str, ...]] = ()

    def _stopping_rule(self) -> StoppingRule:
        """How many landmarks there are to be."""
        stopping_rule = stopping_rule_from_params(
            getattr(self, self._n_landmarks_param),
            self.sampler,
            max_spectral_error=self.max_spectral_error,
            max_trace_error=self.max_trace_error,
            name=self._n_landmarks_param,
        )
        as_sampler(
            self.sampler, stopping_rule
        )  # refuses what is none, also if none is needed
        return stopping_rule

    def _resolve_inputs(
        self,
        X: Any,
        task: CallbackTask,
        sample_weight: Any = None,
        *,
        targets: Any = None,
        **overrides: Any,
    ) -> tuple[Kernel, Source, Engine]:
        """Kernel, rows and engine, from the parameters or what is given instead.

        The source has the targets. gamma="learn" is learnt from them.
        """
        for name in self._bool_params:
            check_bool(getattr(self, name), name)
        kernel = overrides.pop("kernel", self.kernel)
        kernel_params = overrides.pop("kernel_params", self.kernel_params)
        given = {name: getattr(self, name) for name in ("gamma", "degree", "coef0")}
        takes_params = isinstance(kernel, str) and kernel != "precomputed"
        takes_params = takes_params or self._rejects_unused_kernel_params
        params = {**given, **overrides} if takes_params else {}
        gamma = {**given, **overrides}["gamma"]
        learns_gamma = is_learned_gamma(gamma) and targets is not None
        if learns_gamma:
            check_learnable_kernel(gamma, kernel)
            params["gamma"] = "scale"  # to begin with
        resolved, source = resolve_kernel_and_source(
            X,
            kernel,
            sample_weight=sample_weight,
            kernel_params=kernel_params,
            caller=type(self).__name__,
            n_jobs=self.n_jobs,
            **params,
        )
        engine = resolve_engine(
            resolved, self.n_jobs, self.verbose, *task.hooks, source=source
        )
        source = source if targets is None else source.replace(targets=targets)
        if learns_gamma:
            gamma_stage, _ = progress_parts(engine.progress, 1.0, 2.0)
            with gamma_stage:
                engine.progress("width", 0, 1)
                resolved = learn_kernel(
                    gamma,
                    kernel,
                    resolved,
                    source,
                    engine,
                    size=self._max_landmarks(),
                    intercept=bool(getattr(self, "fit_intercept", True)),
                    seed=as_seed(self.random_state),
                )
        return resolved, source, engine

    def _max_landmarks(self) -> Any:
        """How many landmarks there may be, as far as the parameters tell."""
        sizes = getattr(self, self._n_landmarks_param)
        return max(sizes, default=0) if isinstance(sizes, (list, tuple)) else sizes

    def _select_landmarks(
        self,
        kernel: Kernel,
        source: Source,
        engine: Engine,
        stopping_rule: StoppingRule | None = None,
        *,
        passes_after: float,
        **options: Any,
    ) -> Landmarks:
        """Landmarks by the sampler, as many as asked for.

        What follows takes about as long as so many passes with all of them.
        """
        return run_sampler_from_params(
            kernel,
            source,
            self._stopping_rule() if stopping_rule is None else stopping_rule,
            self.sampler,
            random_state=self.random_state,
            engine=engine,
            nested=True,
            passes_after=passes_after,
            **options,
        )

    def _set_landmarks(
        self, landmarks: Landmarks, error: TraceError | None
    ) -> Landmarks:
        """Set what is fitted of them, warn of what is amiss; with their error."""
        landmarks = landmarks.with_error(error)
        warn_about_landmarks(landmarks)
        self.landmarks_ = drop_kernel_matrix(landmarks)
        self.approximation_error_ = landmarks.error
        self._set_gamma(landmarks)
        return landmarks

    def _set_gamma(self, landmarks: Landmarks) -> None:
        """Tell what was learnt; `gamma_` is set where widths were compared."""
        is_search = hasattr(self, "gammas")
        gamma = vars(self).get("gamma_") if is_search else self.gamma
        if is_learned_gamma(gamma):
            learned_gamma = gamma_of(landmarks.kernel)
            is_vector = isinstance(learned_gamma, tuple)
            self.gamma_ = (
                asarray_like(landmarks, np.array(learned_gamma))
                if is_vector
                else learned_gamma
            )
        elif not is_search:
            vars(self).pop("gamma_", None)

    def _basis_landmarks(self) -> Landmarks:
        """The points whose kernel values new rows are evaluated with."""
        return self.landmarks_

    def _resolve_new_rows(
        self, X: Any, like: Any, method: str
    ) -> tuple[Landmarks, Source, Engine]:
        """The landmarks, the source and the engine to evaluate new rows with.

        `like` is a fitted array, in whose library new rows must come too.
        """
        landmarks = self._basis_landmarks()
        name = f"{type(self).__name__}.{method}()"
        if not isinstance(landmarks.kernel, Precomputed):
            check_not_kernel_values(X, landmarks)
            X = self._validate_rows(X, reset=False)
            check_namespace(X, like, name)
            source = source_from_rows(X).replace(targets=None)  # not to be read
        else:
            if isinstance(X, PrecomputedAtLandmarks):
                matrix, columns = (
                    check_landmark_values(X, landmarks),
                    np.arange(len(landmarks)),
                )
            else:
                check_not_only_landmark_values(X, landmarks)
                matrix = as_dense_kernel_values(self._validate_rows(X, reset=False))
                columns = landmarks.points
            check_namespace(matrix, like, name)
            kernel = kernel_from_values(matrix)
            landmarks = landmarks.replace(kernel=kernel, points=columns)
            source = RowNumbers(matrix.shape[0])
        engine = resolve_engine(landmarks.kernel, self.n_jobs, self.verbose)
        return landmarks, source, engine

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        return tags


def asarray_like(landmarks: Landmarks, values: np.ndarray) -> Any:
    """Fitted values in the library of the rows, in float64 as they were found."""
    return arrays.from_host(
        values, landmarks.kernel.output_like(landmarks.points), values.dtype
    )


class BaseLandmarkTransformer(
    CallbackSupportMixin,
    BaseLandmarkEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """An estimator with `transform`: any library in, the precision of the rows out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@named_plainly
class ScoreMixin:
    """A mixin before scikit-learn's own: predictions may be on a device."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; of a classifier, the share that is right.

        Parameters
        ----------
        X : as for `predict`
            Rows.
        y : array-like or path
            Their targets or classes; None where the source has them.
        sample_weight : array-like or path, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            At most 1, the higher the better.
        """
        metric = accuracy_score if is_classifier(self) else r2_score
        X = infer_source(X, getattr(self, "_fitted_names", None))
        if check_targets_in_source(X, y, type(self).__name__):
            y = read_all_targets(X)
        elif y is None:
            raise ValueError(
                f"{type(self).__name__}.score requires y to be passed, but the target "
                "y is None."
            )
        predicted = here(self.predict(X))  # type: ignore[attr-defined]
        return metric(
            here(y), predicted, sample_weight=here(sample_weight, "sample_weight")
        )


def here(values: Any, name: str = "y") -> Any:
    """Targets, predictions or weights on the host: computed, read, or fetched."""
    return arrays.tree_to_host(load_if_dask(values, name))


def update_stream(
    estimator: Any,
    X: Any,
    task: CallbackTask,
    stopping_rule: StoppingRule,
    *,
    targets: np.ndarray | None = None,
    sample_weight: Any = None,
    steady: float = 1.0,
) -> tuple[Landmarks, Source, Engine]:
    """Landmarks of all rows so far, the batch as a source, and the engine."""
    previous, caller = estimator.__dict__.get("landmarks_"), type(estimator).__name__
    caller = f"{caller}.partial_fit"
    overrides: dict[str, Any] = {}
    if previous is not None:
        names = ("gamma", "degree", "coef0", "kernel_params")
        overrides = {"kernel": previous.kernel, **dict.fromkeys(names)}
        check_streamable(previous.kernel, estimator.sampler, caller)
    kernel, batch, engine = estimator._resolve_inputs(
        X, task, sample_weight, targets=targets, **overrides
    )
    check_streamable(kernel, estimator.sampler, caller)
    seed = 0  # goes with the rows that are kept
    if previous is not None:
        check_namespace(X, previous.points, f"{caller}()")
        check_batch_features(batch, previous)
    if previous is None or previous.reservoir is None:
        seed = as_seed(estimator.random_state)

    def select(source: Source, seed: int, goal: StoppingRule) -> Landmarks:
        return run_sampler_from_params(
            kernel,
            source,
            goal,
            estimator.sampler,
            random_state=seed,
            engine=engine,
            nested=True,
            passes_after=1.0,
        )

    landmarks = update_from_batch(
        previous,
        batch,
        select,
        stopping_rule,
        seed=seed,
        engine=engine,
        min_improvement=steady,
    )
    return landmarks, batch, engine

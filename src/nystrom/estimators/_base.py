"""`BaseLandmarkEstimator`: what every estimator shares.

Validates X, y, weights and parameters, selects landmarks, sets fitted attributes,
maps new rows; batches of a stream and scikit-learn's callbacks go through here too.
"""

from __future__ import annotations

from dataclasses import replace
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
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import _check_feature_names, _check_n_features

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import both_given_error, check_bool
from ..engines import Engine, Threads
from ..kernels import Kernel, Precomputed, PrecomputedAtLandmarks, PrecomputedCross
from ..kernels.names import gamma_of
from ..kernels.user import split_white_noise
from ..landmarks import Landmarks
from ..linalg.errors import TraceError
from ..samplers import FixedSize, StoppingRule, as_sampler
from ..samplers.weighted_sampling import SampledRows
from ..sources import RowNumbers, Source
from ._inputs import (
    check_feature_names_match,
    check_namespace,
    check_numeric_rows,
    check_rows,
    check_width,
    has_object_rows,
    open_rows,
)
from ._learning import (
    check_learnable_kernel,
    learn_kernel,
    metric_importances,
    move_landmarks,
)
from ._problem import (
    LANDMARK_COUNT,
    LEARN,
    LEARN_MATRIX,
    KernelProblem,
    as_dense_kernel_values,
    check_row_type,
    check_streamable,
    is_learned_gamma,
    resolve_kernel,
    source_from_rows,
    stopping_rule_from_params,
    update_landmarks,
    warn_about_landmarks,
)
from ._progress import CallbackSupportMixin, resolve_engine

#: What landmarks are called where all rows are, and the solution is exact.
EXACT = "exact"


def _are_same_points(moved: Landmarks, landmarks: Landmarks) -> bool:
    """Whether landmarks stayed where they were, but for rounding."""
    after, before = (
        arrays.to_host(p.toarray() if sp.issparse(p) else p)
        for p in (moved.points, landmarks.points)
    )
    before = before if before.dtype.kind == "f" else before.astype(np.float64)
    rounding = 8 * np.finfo(before.dtype).eps * np.abs(before).max(initial=0.0)
    return bool(np.all(np.abs(after - before) <= rounding))


def uses_exact_solver(
    stopping_rule: StoppingRule, sampler: Any, source: Source
) -> bool:
    """Whether all rows are landmarks: by their number alone, and rows of NumPy."""
    if (
        not isinstance(sampler, str)
        or not isinstance(stopping_rule, FixedSize)
        or source.n_rows > stopping_rule.n_landmarks
    ):
        return False
    rows = source.rows(0, 1)
    return not arrays.is_array_or_csr(rows) or arrays.namespace(rows) is np


def exact_landmarks(kernel: Kernel, source: Source) -> Landmarks:
    """All rows, with what it takes to evaluate K, and no error."""
    n = source.n_rows
    return SampledRows.all_of(n).as_landmarks(
        kernel,
        source,
        EXACT,
        error=TraceError.from_sums(0.0, 1.0, n),
        n_kernel_evaluations=kernel.gram_evaluations(n),
    )


def is_symmetric(matrix: Any) -> bool:
    """Whether a matrix is the same as its transpose, up to rounding."""
    is_square = matrix.shape[0] == matrix.shape[1] and arrays.namespace(matrix) is np
    return is_square and np.allclose(matrix, matrix.T, 0, 1e-6 * np.abs(matrix).max())


#: Where the documentation is: for links in scikit-learn's diagrams.
DOCUMENTATION_URL = "https://nystrom.readthedocs.io/en/stable"


class BaseLandmarkEstimator(CallbackSupportMixin, BaseEstimator):
    """An estimator with `kernel` and, once fitted, `landmarks_`."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None
    n_landmarks: Any
    sampler: Any
    max_spectral_error: float | None = None
    max_trace_error: float | None = None
    epsilon: Any = None  # of ridge regression: a bound on its risk, and the
    delta: Any = None  # probability that it does not hold
    optimize_landmarks: bool = False
    random_state: Any
    n_jobs: int | None
    verbose: int
    landmarks_: Any
    approximation_error_: Any
    n_features_in_: int
    #: Whether gamma, degree and coef0 are refused where the kernel has no name: by
    #: scikit-learn's Nystroem they are, its other classes pass over them.
    _rejects_unused_kernel_params = False
    #: Whether a WhiteKernel in a sum is noise of the targets, and added to alpha.
    _white_noise_is_alpha = False
    #: The parameter that says how many landmarks.
    _n_landmarks_param = "n_landmarks"
    #: Passes over all rows after the landmarks are selected, about, and selections.
    _model_passes = 1.0
    _n_selections = 1
    #: Parameters that are True or False.
    _bool_params: ClassVar[tuple[str, ...]] = ()
    _doc_link_module = "nystrom"
    _doc_link_template = f"{DOCUMENTATION_URL}/api/nystrom.{{estimator_name}}.html"

    def __getstate__(self) -> dict[str, Any]:
        """Requests of metadata as plain values: they lead back to the estimator."""
        state = super().__getstate__()
        if "_metadata_request" not in state:
            return state
        return {**state, "_metadata_request": state["_metadata_request"]._serialize()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_metadata_request" in state:
            request = MetadataRequest(owner=self)
            for method, requests in state["_metadata_request"].items():
                for name, alias in requests.items():
                    getattr(request, method).add_request(param=name, alias=alias)
            self._metadata_request = request

    def _validate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        reset: bool = True,
        **changed: Any,
    ) -> KernelProblem:
        """Check rows, targets, weights and parameters: what a fit works on.

        `changed` are parameters of the kernel that are not those of the estimator.
        """
        X = self._validate_rows(X, reset=reset)
        targets, is_single_target = self._validate_targets(X, y)
        problem = self._resolve_problem(X, targets, sample_weight, **changed)
        return replace(problem, is_single_target=is_single_target)

    def _validate_targets(self, X: Any, y: Any) -> tuple[Any, bool]:
        """(n, t) targets, None for none, and whether y had one dimension."""
        return None, False

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        """X checked by scikit-learn's rules, or as it is where its rows are objects.

        Paths become sources, whose rows are checked when they are read.
        """
        X = open_rows(X, None if reset else self._fitted_names)
        if isinstance(X, Source):
            self._check_source_features(X, reset=reset)
            return X
        if has_object_rows(X):
            self._forget_features(reset)
            return X
        # Names that came from a file are not missed in an array: rows of a file are
        # often compared with some that are in memory.
        from_file = not reset and vars(self).get("_names_from_source", False)
        if hasattr(X, "columns") or not from_file:
            _check_feature_names(self, X, reset=reset)
        X = check_numeric_rows(X, estimator=self)
        _check_n_features(self, X, reset=reset)
        return X

    def _check_source_features(self, source: Source, *, reset: bool) -> None:
        """Remember how many features there are, or compare with what was fitted."""
        n_features = source.n_features
        if reset:
            self._forget_features(reset)
            if n_features is not None:
                self.n_features_in_ = n_features
            if source.feature_names:
                self.feature_names_in_ = np.array(source.feature_names, dtype=object)
            self._names_from_source = bool(source.feature_names)
        else:
            expected = getattr(self, "n_features_in_", n_features)
            if n_features is not None:
                check_width(n_features, expected, f"{type(self).__name__} is expecting")
            check_feature_names_match(source.feature_names, self._fitted_names)

    def _forget_features(self, reset: bool) -> None:
        for name in ("n_features_in_", "feature_names_in_") if reset else ():
            self.__dict__.pop(name, None)

    @property
    def _fitted_names(self) -> list[str] | None:
        """What the features were called in `fit`, if they had names."""
        names = vars(self).get("feature_names_in_")
        return None if names is None else list(names)

    def _resolve_problem(
        self, X: Any, targets: Any = None, sample_weight: Any = None, **changed: Any
    ) -> KernelProblem:
        """Kernel, rows and engine, from the parameters or what is given instead.

        gamma="learn" is learnt from the targets.
        """
        for name in self._bool_params:
            check_bool(getattr(self, name), name)
        kernel, params, learned_gamma = self._kernel_with_params(
            targets is not None, **changed
        )
        problem = KernelProblem.from_params(
            X,
            kernel,
            targets=targets,
            sample_weight=sample_weight,
            caller=type(self).__name__,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            **params,
        )
        if learned_gamma is None:
            return problem
        return self._learn_gamma(problem, kernel, learned_gamma)

    def _with_gamma(
        self, problem: KernelProblem, gamma: Any, *, moves_landmarks: bool | None = None
    ) -> KernelProblem:
        """The same rows with a kernel of another width.

        A metric is learnt for landmarks that are moved, or not; None: as asked for.
        """
        kernel, params, learned_gamma = self._kernel_with_params(True, gamma=gamma)
        if isinstance(problem.kernel, Precomputed):
            return problem
        resolved = resolve_kernel(
            kernel, problem.source, type(self).__name__, self.n_jobs, **params
        )
        problem = replace(problem, kernel=resolved)
        if learned_gamma is None:
            return problem
        return self._learn_gamma(problem, kernel, learned_gamma, moves_landmarks)

    def _kernel_with_params(
        self, has_targets: bool, **changed: Any
    ) -> tuple[Any, dict[str, Any], str | None]:
        """The kernel as given, its parameters, and the gamma that is to be learnt."""
        kernel = self.kernel
        if self._white_noise_is_alpha:
            kernel, _ = split_white_noise(kernel)
        kernel = changed.pop("kernel", kernel)
        kernel_params = changed.pop("kernel_params", self.kernel_params)
        names = ("gamma", "degree", "coef0")
        params = {name: getattr(self, name) for name in names} | changed
        gamma, learned_gamma = params["gamma"], None
        is_named = isinstance(kernel, str) and kernel != "precomputed"
        if not is_named and not self._rejects_unused_kernel_params:
            params = {}
        if is_learned_gamma(gamma) and has_targets:
            check_learnable_kernel(gamma, kernel)
            learned_gamma, params["gamma"] = gamma, "scale"  # to begin with
        return kernel, params | {"kernel_params": kernel_params}, learned_gamma

    def _learn_gamma(
        self,
        problem: KernelProblem,
        name: Any,
        gamma: str,
        moves_landmarks: bool | None = None,
    ) -> KernelProblem:
        """The problem with the widths of its kernel, "scale" so far, learnt."""
        if moves_landmarks is None:
            moves_landmarks = bool(self.optimize_landmarks)
        return learn_kernel(
            problem,
            name,
            gamma,
            n_landmarks=self._max_landmarks(),
            intercept=bool(getattr(self, "fit_intercept", True)),
            seed=as_seed(self.random_state),
            moves_landmarks=moves_landmarks,
            for_classes=is_classifier(self),
        )

    def _max_landmarks(self) -> int | None:
        """How many landmarks there may be; None where the parameters do not tell."""
        sizes = getattr(self, self._n_landmarks_param)
        sizes = sizes if isinstance(sizes, (list, tuple)) else [sizes]
        are_known = all(isinstance(size, Integral) for size in sizes)
        return max(sizes, default=0) if are_known else None

    def _stopping_rule(self, max_spectral_error: float | None = None) -> StoppingRule:
        """How many landmarks there are to be."""
        if max_spectral_error is None:
            max_spectral_error = self.max_spectral_error
        stopping_rule = stopping_rule_from_params(
            getattr(self, self._n_landmarks_param),
            self.sampler,
            max_spectral_error=max_spectral_error,
            max_trace_error=self.max_trace_error,
            name=self._n_landmarks_param,
        )
        as_sampler(self.sampler, stopping_rule)  # refused, also if none is needed
        return stopping_rule

    def _select_landmarks(
        self, problem: KernelProblem, stopping_rule: StoppingRule | None = None
    ) -> Landmarks:
        """Landmarks by the sampler, as many as asked for; moved where that is asked.

        With epsilon as many as it takes, or none.
        """
        rule = self._stopping_rule() if stopping_rule is None else stopping_rule

        def select(problem: KernelProblem, sampler: Any) -> Landmarks:
            return problem.select_landmarks(
                rule,
                sampler,
                random_state=self.random_state,
                nested=True,
                delta=self.delta,
            )

        sampler, is_auto = self.sampler, False
        if self.optimize_landmarks and isinstance(sampler, str) and sampler == "auto":
            # Rows far from all others are no place to begin.
            sampler, is_auto = "uniform", True
        landmarks = select(problem, sampler)
        if self.epsilon is not None and landmarks.n_requested is not None:
            raise ValueError(
                f"epsilon={self.epsilon:g} takes {landmarks.n_requested} landmarks, "
                f"more than n_landmarks={self.n_landmarks}. Raise n_landmarks or pass "
                "None, allow a larger epsilon, or omit epsilon."
            )
        if not self.optimize_landmarks:
            return landmarks
        if not isinstance(rule, FixedSize):
            raise both_given_error("optimize_landmarks=True", str(rule), LANDMARK_COUNT)
        moved = move_landmarks(
            problem,
            landmarks,
            Threads(self.n_jobs),
            alpha=self._fixed_noise(),
            intercept=bool(getattr(self, "fit_intercept", True)),
            seed=as_seed(self.random_state),
        )
        if not _are_same_points(moved, landmarks):
            return moved
        # Nothing moved: as without the option, and no noise was learnt with them.
        if problem.learned_gamma == LEARN_MATRIX:  # so far its widths alone
            problem = self._with_gamma(problem, LEARN_MATRIX, moves_landmarks=False)
            landmarks = select(problem, self.sampler)
        elif is_auto:
            landmarks = select(problem, self.sampler)
        return landmarks.replace(ridge=None)

    def _fixed_noise(self) -> float | None:
        """The alpha that landmarks are optimised for; None: the best for them."""
        return None

    def _validate_batch(
        self, X: Any, y: Any = None, sample_weight: Any = None, **changed: Any
    ) -> KernelProblem:
        """A batch of a stream, with the kernel of the batches before."""
        previous = vars(self).get("landmarks_")
        caller = f"{type(self).__name__}.partial_fit"
        if previous is not None:
            check_streamable(previous.kernel, self.sampler, caller)
            names = ("gamma", "degree", "coef0", "kernel_params")
            changed |= {"kernel": previous.kernel, **dict.fromkeys(names)}
        if self.optimize_landmarks:
            raise ValueError(
                "partial_fit does not support optimize_landmarks; omit it, or use fit."
            )
        batch = self._validate(X, y, sample_weight, reset=previous is None, **changed)
        check_streamable(batch.kernel, self.sampler, caller)
        source = batch.source
        if source.targets is None:
            return batch
        # The targets of a batch are held.
        return replace(batch, source=source.replace(targets=source.targets[:]))

    def _update_landmarks(
        self,
        batch: KernelProblem,
        stopping_rule: StoppingRule,
        min_improvement: float = 1.0,
    ) -> Landmarks:
        """Landmarks of all rows of a stream so far, and a batch."""
        return update_landmarks(
            vars(self).get("landmarks_"),
            batch,
            stopping_rule,
            self.sampler,
            random_state=self.random_state,
            caller=f"{type(self).__name__}.partial_fit",
            nested=True,
            min_improvement=min_improvement,
        )

    def _set_landmarks(
        self, landmarks: Landmarks, error: TraceError | None
    ) -> Landmarks:
        """Set the attributes of landmarks, and warn; the landmarks with their error."""
        if landmarks.sampler != EXACT:  # there was a selection
            landmarks = landmarks.with_error(error)
            warn_about_landmarks(landmarks)
        self.landmarks_ = landmarks.without_kernel_matrix()
        self.approximation_error_ = landmarks.error
        # A search sets the width that was selected.
        is_search = hasattr(self, "gammas")
        rule = vars(self).get("gamma_") if is_search else self.gamma
        self.__dict__.pop("feature_importances_", None)
        if not is_search:
            self.__dict__.pop("gamma_", None)
        if is_learned_gamma(rule):
            gamma = gamma_of(landmarks.kernel)
            is_number = isinstance(gamma, float)
            self.gamma_ = (
                gamma if is_number else asarray_like(landmarks, np.array(gamma))
            )
            if rule != LEARN:
                importances = metric_importances(landmarks)
                self.feature_importances_ = asarray_like(landmarks, importances)
        return landmarks

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
        source: Source
        name = f"{type(self).__name__}.{method}()"
        if isinstance(landmarks.kernel, Precomputed):
            matrix, columns = self._validate_kernel_values(X, landmarks)
            check_namespace(matrix, like, name)
            # Only values of rows with themselves are symmetric, and have k(x, x).
            kernel = Precomputed if is_symmetric(matrix) else PrecomputedCross
            landmarks = landmarks.replace(kernel=kernel(matrix), points=columns)
            source = RowNumbers(matrix.shape[0])
        elif isinstance(X, PrecomputedAtLandmarks):
            raise ValueError(
                "kernels.PrecomputedAtLandmarks is for kernel='precomputed'; pass the "
                f"rows themselves where the kernel is {landmarks.kernel}."
            )
        else:
            X = self._validate_rows(X, reset=False)
            check_namespace(X, like, name)
            source = source_from_rows(X)
            if source.targets is not None:  # not to be read
                source = source.replace(targets=None)
            check_row_type(landmarks.kernel, source)
        engine = resolve_engine(landmarks.kernel, self.n_jobs, self.verbose)
        return landmarks, source, engine

    def _validate_kernel_values(
        self, X: Any, landmarks: Landmarks
    ) -> tuple[Any, np.ndarray]:
        """Kernel values of new rows, and the columns of the landmarks among them."""
        size = len(landmarks)
        if isinstance(X, PrecomputedAtLandmarks):
            matrix = as_dense_kernel_values(check_rows(X.values))
            if matrix.shape[1] != size:
                raise ValueError(
                    f"PrecomputedAtLandmarks has values of shape "
                    f"{tuple(matrix.shape)}; it takes one column for each of the "
                    f"{size} landmarks."
                )
            return matrix, np.arange(size)
        # As wide as there are landmarks: of these, or of any other rows.
        in_memory = () if isinstance(X, Source) else X
        n_columns = (getattr(X, "shape", None) or np.shape(in_memory))[-1:]
        if n_columns == (size,) and size != landmarks.n_rows:
            raise ValueError(
                f"X has {size} features, but with kernel='precomputed' new rows have "
                f"{landmarks.n_rows}: their kernel values with all training rows. For "
                f"values with the {size} landmarks only, pass "
                "nystrom.kernels.PrecomputedAtLandmarks(X)."
            )
        matrix = as_dense_kernel_values(self._validate_rows(X, reset=False))
        return matrix, landmarks.points

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = tags.array_api_support = True
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
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseLandmarkEstimator
):
    """An estimator with `transform`: any library in, the precision of the rows out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

"""`KernelLogisticRegression`: probabilities of classes, on landmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..approximation import estimated_error
from ..edge.warnings import warn, warn_alike
from ..engines.progress import parts
from ..methods.logistic.cost import best_cost
from ..methods.logistic.fit import Settings, feature_map, on_landmarks, reach
from ..methods.logistic.loss import log_probabilities, probabilities
from ..randomness import seed_of
from ..refusals import count, number
from ..sources import Source
from .callbacks import with_callbacks
from .classes import OnClasses
from .fitting import fitting
from .labels_in_source import ROWS
from .on_landmarks import in_library_of
from .ridge_base import Model
from .ridge_parameters import as_numbers

#: What follows the choice of landmarks, in passes with all of them that make Z.
PASSES_AFTER = 6.0


class KernelLogisticRegression(OnClasses):
    """Logistic regression with a kernel, on landmarks: probabilities of classes.

    `sklearn.linear_model.LogisticRegression` on the features of `Nystroem`, without
    ever holding these: ½‖w‖² + C·Σ loss is minimised from sums over blocks of rows. The
    first steps are made on a sample; then each is a pass of n·s kernel evaluations, and
    near Newton's, as its curvature is measured on the sample. More than two classes are
    fitted together (multinomial).

    Parameters
    ----------
    C : float or sequence of float, default=1.0
        The inverse strength of regularisation, as in scikit-learn: the loss of all rows
        counts C times. Of several the one with the least loss on rows left out is
        chosen, on at most 65 536 rows and one set of landmarks.
    kernel : str, callable or Kernel, default="rbf"
        As for `KernelRidge`.
    gamma : float, sequence of float, str or None, default="scale"
        As for `KernelRidge`.
    degree, coef0, kernel_params, n_landmarks, sampler, ridge, max_trace_error
        As for `KernelRidge`.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`.
    fit_intercept : bool, default=True
        Whether to fit a constant, which is not regularised.
    tol : float, default=1e-8
        Steps end when no more than this share of the objective is left to be gained, as
        estimated from gradient and curvature. Probabilities are then within about 0.001
        of those at the minimum; with 1e-6 they were off by up to 0.05.
    max_iter : int, default=100
        Steps at most; where they were not enough, a ConvergenceWarning says so.
    random_state, n_jobs, verbose
        As for `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    C_ : float
        The C that was used.
    losses_ : ndarray or None
        For each of several C, −log p of a row that was left out, on the mean.
    n_iter_ : int
        Steps on all rows, with the C that was used.
    dual_coef_, X_fit_, intercept_, landmarks_, approximation_error_, n_features_in_
        As for `KernelRidge`, with one column per class, or one for two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelLogisticRegression
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelLogisticRegression(
    ...     C=[1, 10, 100, 1000], gamma=1e-3, n_landmarks=200, random_state=0
    ... ).fit(X[:1200], y[:1200])
    >>> model.predict_proba(X[1200:]).shape
    (597, 10)
    >>> model.score(X[1200:], y[1200:]) > 0.95
    True
    """

    _balances_weights = True
    C_: float
    losses_: Any
    n_iter_: int | None

    def __init__(
        self,
        C: Any = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        class_weight: Any = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        ridge: float | None = None,
        max_trace_error: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.class_weight = class_weight
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and their classes.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like or path, of shape (n_samples,)
            Classes; None where the source has them, one number or text per row.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelLogisticRegression
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            costs, seed = _check_costs(self.C), seed_of(self.random_state)
            settings = Settings(
                fit_intercept=bool(self.fit_intercept),
                tolerance=number(self.tol, "tol", 0.0),
                most_iterations=count(self.max_iter, "max_iter"),
                seed=seed,
            )
            given = self._classes(X, y, sample_weight)
            if given.binarizer.y_type_.startswith("multilabel"):
                raise ValueError(
                    "y has several labels per row; fit a KernelLogisticRegression for "
                    "each of them: sklearn.multioutput.MultiOutputClassifier."
                )
            kernel, source, engine = self._resolved(
                given.X,
                task,
                given.weights,
                targets=given.Y,
                kernel=self.kernel,  # white noise is refused: there is no alpha
            )
            _check_weighted(source, given.binarizer.classes_)
            landmarks = self._chosen(kernel, source, engine, passes_after=PASSES_AFTER)
            mapping = feature_map(landmarks, source, float(costs.max()))
            C, self.losses_, start = float(costs[0]), None, None
            choosing, descending, _ = parts(engine.progress, len(costs) - 1, 1.0, 0.05)
            if len(costs) > 1:
                with choosing:
                    chosen = best_cost(mapping, source, costs, settings, engine)
                C, start = chosen.C, chosen.coef
                self.losses_ = in_library_of(landmarks, chosen.losses)
            with descending:
                reached = reach(mapping, source, C, settings, engine, start)
            if not reached.converged:
                if reached.n_iterations < self.max_iter:
                    advice = "No step goes further down: rounding hides it. Scale the "
                    advice += "features, so that kernel values are of similar size,"
                else:
                    advice = f"Raise max_iter={self.max_iter} or tol,"
                warn(
                    f"Not converged in {reached.n_iterations} steps: about "
                    f"{reached.left:.1g} of the objective is left to be gained, tol is "
                    f"{settings.tolerance:g}. {advice} or take a smaller C.",
                    ConvergenceWarning,
                )
            error = estimated_error(landmarks, source, engine)
            landmarks = self._keep_landmarks(landmarks, error)
            warn_alike(landmarks)
            found = on_landmarks(landmarks, source, mapping, reached.x)
            ravel = given.Y.shape[1] == 1
            self._keep_model(landmarks, Model(found, ravel, posterior=None))
            self._keep_classes(given.binarizer)
            self.C_, self.n_iter_ = C, reached.n_iterations
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _shares(self, method: str, log: bool) -> Callable[[np.ndarray], np.ndarray]:
        return log_probabilities if log else probabilities


def _check_weighted(source: Source, classes: np.ndarray) -> None:
    """Refuse a class whose rows all have weight 0: its constant has no finite value."""
    if not source.is_weighted:
        return
    n_rows = np.zeros(len(classes), dtype=int)
    for start in range(0, source.n_rows, ROWS):
        own = np.asarray(source.targets[start : start + ROWS]) > 0
        own = np.hstack([~own, own]) if own.shape[1] == 1 else own
        n_rows += own[source.weights[start : start + ROWS] > 0].sum(axis=0)
    if not n_rows.all():
        raise ValueError(
            f"The class {classes[n_rows.argmin()]} has no row of weight > 0; leave its "
            "rows out, or give one of them a weight."
        )


def _check_costs(C: Any) -> np.ndarray:
    """One or several finite numbers > 0."""
    costs = as_numbers(C)
    if costs.ndim > 1 or not costs.size or not np.all(np.isfinite(costs) & (costs > 0)):
        raise ValueError(
            f"C={C!r} is not allowed; it is a finite number > 0, or several of them to "
            "choose from."
        )
    return np.atleast_1d(costs)

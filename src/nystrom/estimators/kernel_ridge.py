"""`KernelRidge`: kernel ridge regression in linear time."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import RegressorMixin

from ..edge.showing import shown
from ..landmarks import Landmarks
from ..methods.ridge.fit import fit_ridge
from ..methods.ridge.risk import RiskBound
from ..randomness import seed_of
from ..trace_error import TraceError
from .by_epsilon import chosen_for_risk, goal_for
from .callbacks import with_callbacks
from .exact import is_exact
from .fitting import fitting
from .lazily import chunk_by_chunk
from .on_all_rows import OnAllRows
from .on_few_rows import OnFewRows
from .ridge_parameters import SOLVERS, check_alphas, check_solver
from .ridge_streams import fit_batch
from .score_method import Scoring

#: What follows the choice of landmarks, in passes with all of them that make Z.
PASSES_OF_CG = 8.0


class KernelRidge(Scoring, RegressorMixin, OnFewRows, OnAllRows):
    """Kernel ridge regression on landmarks.

    A drop-in for `sklearn.kernel_ridge.KernelRidge`, in O(n·s²) time with s landmarks
    and memory that does not grow with n. With no more rows than `n_landmarks`,
    scikit-learn's own class does the work, and the answer is exact.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1
        The ridge, one or one per target; 0 is least squares on the landmarks.
    kernel : str, callable or Kernel, default="linear"
        As for `Nystroem`. A `WhiteKernel` in a sum of scikit-learn's Gaussian-process
        kernels is noise of the targets, and added to alpha.
    gamma : float, sequence of float, str or None, default=None
        The width of the kernel, one or one per feature. From the rows: "scale" or
        "median". From rows and targets: "learn", one width, or "learn_each", one per
        feature, by the likelihood of 1000 rows' targets under a model of at most 250
        landmarks; never less likely than "scale" and "median" there. None is
        scikit-learn's default.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Zero coefficient of polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    n_landmarks : int or None, default=1000
        How many landmarks. With `epsilon`, `ridge` or `max_trace_error`, the most there
        may be; None for no limit.
    sampler : str, callable or array, default="auto"
        How landmarks are chosen, as for `Nystroem`.
    solver : {"auto", "direct", "cg", "full"}, default="auto"
        "direct" sums the Gram matrix of the features; "cg" makes a pass over the rows
        per step instead, which pays with many landmarks; "auto" counts operations.
        "full" solves (K + alpha·I)x = y on all n rows, to a relative residual of 1e-6,
        where landmarks are not enough: conjugate gradients in which the landmarks
        precondition, n²/2 kernel values per step unless K fits scikit-learn's
        `working_memory`. Rows of a file or of Dask are read once, and all work is done
        in this process; they are kept with the model, which makes n evaluations per
        prediction.
    epsilon : float, default=None
        As many landmarks as take the risk to at most 1 + 3·epsilon times that of exact
        kernel ridge regression (‖K − K̃‖₂ ≤ epsilon·alpha). Proven with `delta`.
    delta : float, default=None
        Failure probability for `epsilon` or `ridge`; implies the theory's constants.
    ridge : float, default=None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes.
    max_trace_error : float, default=None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes.
    fit_intercept : bool, default=False
        Whether to fit a constant, which the ridge does not shrink.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same landmarks for every storage and number of threads.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    dual_coef_ : array of shape (n_landmarks,) or (n_landmarks, n_targets)
        `k(X, X_fit_) @ dual_coef_ + intercept_` predicts.
    X_fit_ : array, CSR matrix or list
        The landmarks; all rows in exact mode, and after "full" all rows of weight > 0.
        For kernel="precomputed" the landmarks' column numbers.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without one.
    landmarks_ : Landmarks
        All that is known about the landmarks; prints as one line. After "full" those
        that precondition, with the error of K̃ in `landmarks_.error`.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K: exact after "direct", estimated on about 1024 rows after "cg",
        0 after "full"; its `at_most` is True where rounding leaves but a bound. None
        where the kernel is indefinite.
    risk_bound_ : RiskBound or None
        What is known about the risk beside exact kernel ridge regression, where the
        trace error or `delta` gives a bound. None with an intercept or weights, for
        which nothing is proven.
    solver_ : str
        "direct", "cg", "full", or "exact".
    n_iter_ : int or None
        Steps of conjugate gradients.
    residual_ : float or None
        ‖b − Ax‖/‖b‖ that "full" has reached, the largest of all targets, found by a
        product in float64; no prediction of a training row is further off than that
        times ‖b‖.
    gamma_ : float or ndarray of shape (n_features,)
        What gamma="learn" or "learn_each" has learnt; absent otherwise.
    n_features_in_ : int
        Number of features seen during fit.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (5000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(5000)
    >>> model = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=50)
    >>> model = model.set_params(random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict([[np.pi / 2]]) - 1) < 0.03)
    True

    On all rows, with 50 landmarks to precondition:

    >>> full = KernelRidge(kernel="rbf", gamma=1.0, alpha=0.1, n_landmarks=50)
    >>> full = full.set_params(solver="full", random_state=0).fit(X, y)
    >>> full.n_iter_ < 20, full.residual_ < 1e-6, full.dual_coef_.shape
    (True, True, (5000,))
    """

    landmarks_: Landmarks
    approximation_error_: TraceError | None
    risk_bound_: RiskBound | None
    solver_: str
    n_iter_: int | None
    residual_: float | None

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        solver: str = "auto",
        epsilon: Any = None,
        delta: Any = None,
        ridge: float | None = None,
        max_trace_error: float | None = None,
        fit_intercept: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.solver = solver
        self.epsilon = epsilon
        self.delta = delta
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. None where the source has them: `sources.open(path, target=...)`.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidge
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            for name in ("_running", "_full"):
                self.__dict__.pop(name, None)
            X, Y, ravel = self._rows_and_targets(X, y)
            alphas = check_alphas(self.alpha, Y.shape[1]) + self._white_noise()
            solver = check_solver(self.solver, alphas, (*SOLVERS, "full"))
            kernel, source, engine = self._resolved(X, task, sample_weight, targets=Y)
            goal = goal_for(self, float(alphas.min()))
            self.residual_ = None
            if is_exact(goal, self.sampler, source) and not self.fit_intercept:
                engine.progress("exact solution", 0, 1)
                self._fit_exactly(X, kernel, source, alphas, ravel)
            elif solver == "full":
                self._fit_fully(kernel, source, goal, engine, alphas, ravel)
            else:
                after = PASSES_OF_CG if solver == "cg" else 1.0
                landmarks = chosen_for_risk(self, kernel, source, goal, engine, after)
                fit = fit_ridge(
                    landmarks,
                    source,
                    alphas,
                    fit_intercept=self.fit_intercept,
                    solver=solver,
                    engine=engine,
                    seed=seed_of(self.random_state),
                )
                self._keep(
                    landmarks,
                    fit,
                    alphas,
                    ravel=ravel,
                    weighted=source.is_weighted,
                )
        return self

    @with_callbacks
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a further batch of a stream of rows and targets.

        All rows so far count, in O(batch · s²); memory does not grow with the number of
        batches. Few weighted rows are kept; landmarks are chosen anew among them and
        the new ones where that leaves a tenth less of K, and the sums over all rows are
        then carried over to the new landmarks' features. The first call fits; `fit`
        forgets the stream. Always by the Gram matrix (`solver="direct"`). A width from
        the data ("scale", "learn") is that of the first batch. A model that was fitted
        by `fit` kept no sums: it begins anew, with a warning.

        Parameters
        ----------
        X : array-like, CSR matrix, list, path or Source, (n_samples, n_features)
            The rows of the batch.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets; None where the source has them.
        sample_weight : float or array-like of shape (n_samples,), default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelRidge
            Fitted to all rows so far.
        """
        with fitting(self, X, y) as task:
            fit_batch(self, X, y, sample_weight, task)
        return self

    @chunk_by_chunk
    @shown
    def predict(
        self, X: Any, return_std: bool = False, noise: bool = False, out: Any = None
    ) -> Any:
        """Predict the targets of rows, with s kernel evaluations each.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows. For kernel="precomputed", their kernel values with all training rows,
            (n_samples, n_training), or `kernels.AtLandmarks` of those with the
            landmarks alone.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too: that of the
            Gaussian process with kernel K̃ and noise alpha, scaled to the targets.
            After solver="full" with K itself, by conjugate gradients for every few
            rows: each as long as the fit.
        noise : bool, default=False
            Whether the deviation includes the noise alpha of a new target. That of a
            `WhiteKernel` is always included, as in scikit-learn's
            `GaussianProcessRegressor`.
        out : str, Path or array, default=None
            Where predictions go, instead of a new array: a file whose name ends in
            `.npy`, `.parquet` or `.zarr`, written block by block, complete or not at
            all; or an array to be filled. With `return_std` twice as many columns: the
            predictions, and after them their deviations.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the precision of X; `out` where it is given.
        std : ndarray of the same shape
            Only with `return_std`, and without `out`.
        """
        return self._predict(X, return_std=return_std, noise=noise, out=out)

"""Landmarks of rows, and how many a ridge will take."""

from __future__ import annotations

from typing import Any

from ..edge.landmarks import goal_from
from ..edge.memory import explaining_memory
from ..edge.showing import shown_function
from ..landmarks import Landmarks
from ..samplers import Recursive, Ridge
from ..samplers.forecast import Forecast, forecast
from .problem import DEFAULT_LANDMARKS, Problem, check_needed_ridge


@shown_function
@explaining_memory("select_landmarks")
def select_landmarks(
    X: Any,
    *,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    n_landmarks: int | None = None,
    sampler: Any = "auto",
    ridge: float | None = None,
    max_trace_error: float | None = None,
    delta: float | None = None,
    constants: str | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Landmarks:
    """Landmark rows for the Nyström approximation of X's kernel matrix.

    Parameters
    ----------
    X : array-like, CSR matrix, data frame, list of objects or Source
        The rows. The square kernel matrix itself for kernel="precomputed".
    kernel : str, callable or Kernel
        A name as in scikit-learn ("rbf", "laplacian", "polynomial", …) or "matern",
        "matern12", "matern32", "matern52", "rational_quadratic"; a function of two
        rows; or a value from `nystrom.kernels`.
    gamma : float, sequence, "scale", "auto", "median" or None
        The kernel's width; one number per feature where the kernel is a function of
        distances. None: scikit-learn's default, 1/n_features for most.
    degree, coef0 : float or None
        Parameters of the polynomial and sigmoid kernels.
    kernel_params : dict or None
        Further parameters of a named kernel or of a callable.
    n_landmarks : int or None
        How many (all rows if there are no more). With `ridge` or `max_trace_error`, at
        most so many, None for no limit; without them None means 1000.
    sampler : str, callable or array
        "auto", "recursive", "accelerated", "leverage", "rpcholesky", "greedy",
        "kmeans", "uniform", a value from `nystrom.samplers`, row numbers, or an array
        of points.
    ridge : float or None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes (Algorithm 2). Without `delta`
        that is estimated by one more pass, and landmarks are added where they are not
        enough; `landmarks.evidence` says how it is known.
    max_trace_error : float or None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes: the shortest
        prefix of the sampler's order ("auto", "rpcholesky", "greedy", "uniform").
    delta : float or None
        Failure probability; implies the theory's constants.
    constants : {"practical", "theory"} or None
        Which constants; None: theory if `delta` is given.
    sample_weight : array-like of shape (n_rows,) or None
        A row of weight w counts as w rows; weight 0 excludes it.
    random_state : int, RandomState or None
        The same int gives the same landmarks, whatever the storage and threads.
    n_jobs : int or None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    landmarks : Landmarks
        Row numbers, points, weights, cost, and what is guaranteed.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> landmarks = select_landmarks(X, gamma=0.1, n_landmarks=20, random_state=0)
    >>> len(landmarks), landmarks.points.shape, landmarks.rank
    (20, (20, 3), 20)
    """
    goal = goal_from(
        n_landmarks,
        sampler,
        ridge=ridge,
        max_trace_error=max_trace_error,
        default=DEFAULT_LANDMARKS,
    )
    problem = Problem.of(
        "select_landmarks",
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return problem.chosen(
        goal, sampler, random_state=random_state, delta=delta, constants=constants
    )


@explaining_memory("landmarks_needed")
def landmarks_needed(
    X: Any,
    *,
    ridge: float,
    delta: float | None = None,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Forecast:
    """What `ridge` will take, from a thousand rows: landmarks, d_eff and seconds.

    An estimate, in a fraction of a second, without a pass over the rows. For
    `KernelRidge(alpha, epsilon=epsilon)` ask for ridge=epsilon·alpha. With `verbose=1`
    the same is told before landmarks are chosen.

    Parameters
    ----------
    X, kernel, gamma, degree, coef0, kernel_params, sample_weight, n_jobs
        As for `select_landmarks`.
    ridge : float
        λ > 0, for ‖K − K̃‖₂ ≤ λ.
    delta : float or None
        Failure probability; implies the theory's constants, which mean nearly all rows
        unless these are many times 16·d_eff·log(d_eff/delta).

    Returns
    -------
    forecast : Forecast
        `n_landmarks`, `effective_dimension`, `seconds`; prints as one line.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import landmarks_needed
    >>> X, _ = load_digits(return_X_y=True)
    >>> 200 < landmarks_needed(X, gamma=1e-3, ridge=30.0).n_landmarks < 500
    True
    >>> landmarks_needed(X, gamma=1e-3, ridge=30.0, delta=0.01).n_landmarks
    1797
    """
    check_needed_ridge(ridge)
    problem = Problem.of(
        "landmarks_needed",
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
    )
    delta = Recursive(delta=delta).proven_delta
    return forecast(problem.kernel, problem.source, Ridge(ridge), delta, problem.engine)

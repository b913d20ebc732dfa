"""The paper as functions: select landmarks, leverage scores, effective dimension, the
operator K̃, spectral embedding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays as arrays
from ._precision import min_cholesky_ridge
from ._random import as_seed
from ._validation import check_int, check_positive
from .estimators._inputs import check_rows
from .estimators._problem import (
    KernelProblem,
    check_landmark_width,
    stopping_rule_from_params,
)
from .estimators._progress import with_progress_bar
from .estimators._warnings import (
    warn_about_landmarks,
    warn_indefinite,
)
from .landmarks import Landmarks, check_landmarks
from .linalg.cross_kernel import CrossKernel
from .linalg.operator import Approximation
from .linalg.residuals import (
    KernelSpectrum,
    kernel_matrix,
    prepare_residuals,
    ridge_inverse_root,
    sampled_leverage_scores,
    weighted_gram,
)
from .models.pca import fit_spectral_embedding
from .samplers import Recursive, SpectralTolerance
from .samplers.cost import Forecast, forecast

#: Landmarks where the user names neither their number nor a ridge.
DEFAULT_LANDMARKS = 1000


def _problem(
    caller: str,
    X: Any,
    kernel: Any = None,
    landmarks: Landmarks | None = None,
    **params: Any,
) -> tuple[KernelProblem, Landmarks | None]:
    """What a user passed, checked; the kernel of landmarks stands before another."""
    if landmarks is None:
        return KernelProblem.from_params(
            check_rows(X), kernel, caller=caller, **params
        ), None
    check_landmarks(landmarks)
    for name in ("gamma", "degree", "coef0", "kernel_params"):
        params.pop(name, None)
    problem = KernelProblem.from_params(
        check_rows(X), landmarks.kernel, caller=caller, **params
    )
    if not problem.kernel.traits.uses_row_numbers:
        check_landmark_width(problem.source, landmarks.points)
        return problem, landmarks
    if problem.source.n_rows != landmarks.n_rows:
        raise ValueError(
            f"The landmarks are row numbers of a kernel matrix of {landmarks.n_rows} "
            f"rows, but X has {problem.source.n_rows}."
        )
    landmarks = landmarks.replace(kernel=problem.kernel)
    return problem, landmarks


def _to_row_library(values: np.ndarray, problem: KernelProblem) -> Any:
    """Results where the rows are, in their precision; on the host as they are."""
    like = problem.kernel.output_like(problem.source.original.rows(0, 1))
    on_host = arrays.is_on_host(like)
    return values if on_host else arrays.from_host(values, like, like.dtype)


@with_progress_bar(passes=0.0, n_selections=1)
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
    max_spectral_error: float | None = None,
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
        How many (all rows if there are no more). With `max_spectral_error` or
        `max_trace_error`, at most so many, None for no limit;
        without them None means 1000.
    sampler : str, callable or array
        "auto", "recursive", "accelerated", "leverage", "rpcholesky", "greedy",
        "kmeans", "uniform", a value from `nystrom.samplers`, row numbers, or an array
        of points.
    max_spectral_error : float or None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes (Algorithm 2). Without `delta`
        that is estimated by one more pass, and landmarks are added where they are not
        enough; `landmarks.certificate` says how it is known.
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
    stopping_rule = stopping_rule_from_params(
        n_landmarks,
        sampler,
        max_spectral_error=max_spectral_error,
        max_trace_error=max_trace_error,
        default=DEFAULT_LANDMARKS,
    )
    problem, _ = _problem(
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
    landmarks = problem.select_landmarks(
        stopping_rule,
        sampler,
        random_state=random_state,
        delta=delta,
        constants=constants,
    )
    warn_about_landmarks(landmarks)
    return landmarks


@with_progress_bar()
def estimate_n_landmarks(
    X: Any,
    *,
    max_spectral_error: float,
    delta: float | None = None,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Forecast:
    """Estimate the landmarks, d_eff and seconds that `max_spectral_error` takes.

    An estimate from a thousand rows, in a fraction of a second. For
    `KernelRidge(alpha, epsilon=epsilon)` ask for
    max_spectral_error=epsilon·alpha. `verbose=1` prints the same before landmarks are
    selected.

    Parameters
    ----------
    X, kernel, gamma, degree, coef0, kernel_params, sample_weight, n_jobs
        As for `select_landmarks`.
    max_spectral_error : float
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
    >>> from nystrom import estimate_n_landmarks
    >>> X, _ = load_digits(return_X_y=True)
    >>> options = {"gamma": 1e-3, "max_spectral_error": 30.0}
    >>> 200 < estimate_n_landmarks(X, **options).n_landmarks < 500
    True
    >>> estimate_n_landmarks(X, **options, delta=0.01).n_landmarks
    1797
    """
    check_positive(max_spectral_error, "max_spectral_error")
    problem, _ = _problem(
        "estimate_n_landmarks",
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
    return forecast(
        problem.kernel,
        problem.source,
        SpectralTolerance(max_spectral_error),
        delta,
        problem.engine,
    )


@with_progress_bar()
def leverage_scores(
    X: Any,
    *,
    ridge: float,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    landmarks: Landmarks | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """The λ-ridge leverage scores of X's rows, (K(K + λI)⁻¹)ᵢᵢ.

    Exact from the whole kernel matrix, O(n³) time; or, with `landmarks`, estimated from
    them with s kernel evaluations per row. Landmarks with weights stand for all rows
    (Lemma 6, section 4.2); without weights the estimates are never below the exact
    scores.

    Parameters
    ----------
    X, kernel, gamma, degree, coef0, kernel_params, sample_weight, n_jobs, verbose
        As for `select_landmarks`; with `landmarks` their kernel is used.
    ridge : float
        λ > 0.
    landmarks : Landmarks or None
        A sample of the rows to estimate from.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        In [0, 1]; their sum is the effective dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import effective_dimension, leverage_scores
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> scores = leverage_scores(X, gamma=0.5, ridge=1.0)
    >>> bool(np.isclose(scores.sum(), effective_dimension(X, gamma=0.5, ridge=1.0)))
    True
    """
    return _leverage_scores(
        "leverage_scores",
        ridge,
        X,
        kernel,
        landmarks,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )


@with_progress_bar()
def effective_dimension(
    X: Any,
    *,
    ridge: float,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    landmarks: Landmarks | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> float:
    """d_eff(λ) = tr K(K + λI)⁻¹, the sum of the ridge leverage scores.

    Exact, or estimated from `landmarks`; the parameters are those of `leverage_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import effective_dimension
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> 1 < effective_dimension(X, gamma=0.5, ridge=1.0) < 300
    True
    """
    scores = _leverage_scores(
        "effective_dimension",
        ridge,
        X,
        kernel,
        landmarks,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return float(arrays.tree_to_host(scores).sum())


def _leverage_scores(
    caller: str, ridge: float, *rows_and_kernel: Any, **params: Any
) -> Any:
    """Of every row: exact, or from the landmarks that there are."""
    check_positive(ridge, "ridge")
    problem, landmarks = _problem(caller, *rows_and_kernel, **params)
    if landmarks is None:
        return _to_row_library(_exact_leverage_scores(problem, ridge), problem)
    kernel, source = problem.kernel, problem.source
    w = np.ones(len(landmarks)) if landmarks.weights is None else landmarks.weights
    if source.is_weighted and landmarks.indices is not None:
        w = w * np.sqrt(source.weights_of(landmarks.indices))
    SKS = weighted_gram(kernel.gram(landmarks.points), w)
    safe_ridge = max(ridge, min_cholesky_ridge(SKS))
    columns = CrossKernel(kernel, landmarks.points)
    prepared = prepare_residuals(
        columns, source, ridge_inverse_root(SKS, w, safe_ridge)
    )
    scores = sampled_leverage_scores(
        prepared, source, safe_ridge, engine=problem.engine
    )
    return _to_row_library(np.minimum(1.0, scores), problem)


def _exact_leverage_scores(problem: KernelProblem, ridge: float) -> np.ndarray:
    """From the whole kernel matrix."""
    kernel, source = problem.kernel, problem.source
    K = kernel_matrix(kernel, source)
    spectrum = KernelSpectrum.from_kernel_matrix(K, kernel.dtype(source.rows(0, 1)))
    psd = kernel.traits.psd
    if psd is False or (psd is None and spectrum.indefinite):
        warn_indefinite(kernel, "their negative part counts as 0")
    return spectrum.scores(ridge)


def approximate(
    X: Any,
    landmarks: Landmarks,
    *,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Approximation:
    """K̃ = KS(SᵀKS)⁺SᵀK for the rows of X as an operator that knows its error.

    Parameters
    ----------
    X : as for `select_landmarks`
        The rows; the square kernel matrix for landmarks of a precomputed kernel.
    landmarks : Landmarks
        From `select_landmarks`, or `estimator.landmarks_`.
    sample_weight, n_jobs, verbose
        As for `select_landmarks`; weights count in the trace error.

    Returns
    -------
    approximation : Approximation
        With `features()`, `@ v`, `diagonal()`, `trace()`, `eigh(k)`, `solve(b, ridge)`,
        `trace_error`, `spectral_error()`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import approximate, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> landmarks = select_landmarks(X, gamma=0.1, n_landmarks=50, random_state=0)
    >>> approximation = approximate(X, landmarks)
    >>> approximation.trace_error < 0.01 * 500
    True
    """
    check_landmarks(landmarks)
    problem, found = _problem(
        "approximate",
        X,
        landmarks=landmarks,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    assert found is not None  # they were given
    return Approximation(problem.source, found, problem.engine)


@with_progress_bar(passes=3.0, n_selections=1)
def spectral_embedding(
    X: Any,
    n_components: int = 8,
    *,
    kernel: Any = "rbf",
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    landmarks: Landmarks | None = None,
    n_landmarks: int | None = None,
    sampler: Any = "auto",
    drop_first: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Coordinates of rows by the leading eigenvectors of the normalised affinity.

    As `sklearn.manifold.spectral_embedding` of K, with K̃ in place of K: the
    eigenvectors u of D^(−½)K̃D^(−½), D being the row sums, as u/√d. In linear time,
    without an n × n matrix.

    Parameters
    ----------
    X, kernel, gamma, degree, coef0, kernel_params, n_jobs, verbose
        As for `select_landmarks`; the kernel must not be negative.
    n_components : int
        How many coordinates.
    landmarks : Landmarks or None
        Landmarks chosen before; their kernel is used.
    n_landmarks, sampler, random_state
        How to choose them otherwise; None means 1000.
    drop_first : bool
        Whether to leave out the first eigenvector, which is constant.

    Returns
    -------
    coordinates : ndarray of shape (n_rows, n_components)
        Fewer columns where K̃ has a lower rank.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nystrom import spectral_embedding
    >>> X, y = make_moons(3000, noise=0.05, random_state=0)
    >>> u = spectral_embedding(X, 1, gamma=50.0, n_landmarks=200, random_state=0)
    >>> bool(abs(((u[:, 0] > 0) == y).mean() - 0.5) > 0.45)
    True
    """
    n_components = check_int(n_components, "n_components")
    problem, landmarks = _problem(
        "spectral_embedding",
        X,
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        landmarks=landmarks,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    if landmarks is None:
        stopping_rule = stopping_rule_from_params(
            n_landmarks, sampler, default=DEFAULT_LANDMARKS
        )
        landmarks = problem.select_landmarks(
            stopping_rule, sampler, random_state=random_state
        )
        warn_about_landmarks(landmarks)
    n_dropped, seed = int(drop_first), as_seed(random_state)
    _, coordinates = fit_spectral_embedding(
        landmarks, problem.source, n_components + n_dropped, problem.engine, seed=seed
    )
    return _to_row_library(coordinates[:, n_dropped:], problem)

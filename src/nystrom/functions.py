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
    warn_about_landmarks,
    warn_indefinite,
)
from .estimators._progress import call_context
from .landmarks import Landmarks, check_landmarks
from .linalg.cross_kernel import CrossKernel
from .linalg.operator import Approximation
from .linalg.residuals import (
    KernelSpectrum,
    kernel_matrix,
    prepare_residuals,
    residuals,
    residuals_to_scores,
    ridge_inverse_root,
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
    if landmarks is not None:
        check_landmarks(landmarks)
        kernel = landmarks.kernel
        for name in ("gamma", "degree", "coef0", "kernel_params"):
            params.pop(name, None)
    problem = KernelProblem.from_params(check_rows(X), kernel, caller=caller, **params)
    if landmarks is None:
        return problem, None
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
    """Select landmark rows for the Nyström approximation of a kernel matrix.

    Read more in the :doc:`user guide </landmarks>`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows; also a list of objects, a path or a `Source`. For kernel="precomputed",
        the square kernel matrix.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature; "scale", "auto" or
        "median" computes it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float or None, default=None
        Degree of the polynomial kernel.
    coef0 : float or None, default=None
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further parameters of a named kernel or of a callable.
    n_landmarks : int or None, default=None
        Number of landmarks; all rows if there are no more. With `max_spectral_error` or
        `max_trace_error` it is an upper limit, and None means no limit; otherwise None
        means 1000.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_spectral_error : float or None, default=None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`
        (Algorithm 2 of the paper). Without `delta` the bound is checked by one more
        pass and landmarks are added if needed; `landmarks.certificate` says how it was
        verified.
    max_trace_error : float or None, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K,
        for the samplers "auto", "rpcholesky", "greedy" and "uniform".
    delta : float or None, default=None
        Failure probability of the guarantee. It implies the constants of the proofs.
    constants : {"practical", "theory"} or None, default=None
        Constants of the paper's algorithms. None means theory if `delta` is given,
        practical otherwise.
    sample_weight : float, array-like of shape (n_samples,) or path, default=None
        Weights of the rows. A row of weight w counts as w rows; weight 0 excludes it.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    landmarks : Landmarks
        Indices, points, weights, errors, cost and guarantee.

    See Also
    --------
    Nystroem : Landmarks and features behind scikit-learn's interface.
    approximate : The approximation K̃ as an operator.
    estimate_n_landmarks : How many landmarks an error needs.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> landmarks = select_landmarks(X, gamma=0.1, n_landmarks=20, random_state=0)
    >>> len(landmarks), landmarks.points.shape, landmarks.rank
    (20, (20, 3), 20)
    """
    with call_context("select_landmarks", verbose, work=(0.0, 1)):
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
    """Estimate how many landmarks a spectral error needs.

    The estimate uses a thousand rows and runs in a fraction of a second. For
    `KernelRidge(alpha, epsilon=epsilon)`, use max_spectral_error=epsilon·alpha.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows; also a list of objects, a path or a `Source`. For kernel="precomputed",
        the square kernel matrix.
    max_spectral_error : float
        The bound λ in ‖K − K̃‖₂ ≤ λ, positive.
    delta : float or None, default=None
        Failure probability. It implies the constants of the proofs, which select nearly
        all rows of a small data set.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature; "scale", "auto" or
        "median" computes it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float or None, default=None
        Degree of the polynomial kernel.
    coef0 : float or None, default=None
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further parameters of a named kernel or of a callable.
    sample_weight : float, array-like of shape (n_samples,) or path, default=None
        Weights of the rows. A row of weight w counts as w rows; weight 0 excludes it.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.

    Returns
    -------
    forecast : Forecast
        `n_landmarks`, `effective_dimension` and `seconds`; prints as one line.

    See Also
    --------
    select_landmarks : Select the landmarks.

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
    with call_context("estimate_n_landmarks", 0):
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
    """Compute the ridge leverage scores of rows.

    The score of row i at ridge λ is (K(K + λI)⁻¹)ᵢᵢ. Scores are exact, from the whole
    kernel matrix in O(n³) time; or, with `landmarks`, estimated with s kernel
    evaluations per row (Lemma 6 of the paper). Estimates from landmarks without weights
    are never below the exact scores.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows; also a list of objects, a path or a `Source`. For kernel="precomputed",
        the square kernel matrix.
    ridge : float
        The ridge λ, positive.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature; "scale", "auto" or
        "median" computes it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float or None, default=None
        Degree of the polynomial kernel.
    coef0 : float or None, default=None
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further parameters of a named kernel or of a callable.
    landmarks : Landmarks or None, default=None
        Sample of the rows to estimate from. Its kernel is used.
    sample_weight : float, array-like of shape (n_samples,) or path, default=None
        Weights of the rows. A row of weight w counts as w rows; weight 0 excludes it.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    scores : ndarray of shape (n_samples,)
        Scores in [0, 1]. Their sum is the effective dimension.

    See Also
    --------
    effective_dimension : The sum of the scores.

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
    """Compute the effective dimension, the sum of the ridge leverage scores.

    The effective dimension at ridge λ is tr K(K + λI)⁻¹. It is exact, or estimated from
    `landmarks`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows; also a list of objects, a path or a `Source`. For kernel="precomputed",
        the square kernel matrix.
    ridge : float
        The ridge λ, positive.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature; "scale", "auto" or
        "median" computes it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float or None, default=None
        Degree of the polynomial kernel.
    coef0 : float or None, default=None
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further parameters of a named kernel or of a callable.
    landmarks : Landmarks or None, default=None
        Sample of the rows to estimate from. Its kernel is used.
    sample_weight : float, array-like of shape (n_samples,) or path, default=None
        Weights of the rows. A row of weight w counts as w rows; weight 0 excludes it.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    dimension : float
        Between 0 and the number of rows.

    See Also
    --------
    leverage_scores : The scores of all rows.

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
    caller: str, ridge: float, *rows_and_kernel: Any, verbose: int, **params: Any
) -> Any:
    """Of every row: exact, or estimated from landmarks where there are any."""
    with call_context(caller, verbose):
        check_positive(ridge, "ridge")
        problem, landmarks = _problem(
            caller, *rows_and_kernel, verbose=verbose, **params
        )
        if landmarks is None:
            scores = _exact_leverage_scores(problem, ridge)
        else:
            scores = _estimated_leverage_scores(problem, landmarks, ridge)
        return _to_row_library(scores, problem)


def _estimated_leverage_scores(
    problem: KernelProblem, landmarks: Landmarks, ridge: float
) -> np.ndarray:
    """From kernel values with the landmarks."""
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
    residual = residuals(prepared, source, engine=problem.engine, name="scores")
    scores = residuals_to_scores(residual, source.weights, safe_ridge)
    return np.minimum(1.0, scores)


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
    """Return the Nyström approximation K̃ of rows as an operator.

    K̃ = KS(SᵀKS)⁺SᵀK for the rows of X and the landmarks S. It is never formed.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows; the square kernel matrix for landmarks of a precomputed kernel.
    landmarks : Landmarks
        Landmarks from `select_landmarks` or `estimator.landmarks_`.
    sample_weight : float, array-like of shape (n_samples,) or path, default=None
        Weights of the rows in the trace error.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    approximation : Approximation
        Operator with `features()`, `@ v`, `diagonal()`, `trace()`, `eigh(k)`, `solve(b,
        ridge)`, `trace_error` and `spectral_error()`.

    See Also
    --------
    select_landmarks : Select the landmarks.

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
    """Compute the leading eigenvectors of the normalised affinity of rows.

    As `sklearn.manifold.spectral_embedding` of K, with K̃ in place of K: the
    eigenvectors u of D^(−½)K̃D^(−½), where D has the row sums, divided by √d. It runs
    in linear time.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows. The kernel must not be negative.
    n_components : int, default=8
        Number of coordinates.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature; "scale", "auto" or
        "median" computes it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float or None, default=None
        Degree of the polynomial kernel.
    coef0 : float or None, default=None
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict or None, default=None
        Further parameters of a named kernel or of a callable.
    landmarks : Landmarks or None, default=None
        Landmarks that were selected before. Their kernel is used.
    n_landmarks : int or None, default=None
        Number of landmarks to select otherwise; None means 1000.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    drop_first : bool, default=True
        Whether to drop the first eigenvector, which is constant.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    coordinates : ndarray of shape (n_samples, n_components)
        Fewer columns if the rank of K̃ is lower.

    See Also
    --------
    KernelKMeans : Spectral clustering with affinity_normalize=True.
    sklearn.manifold.spectral_embedding : The same with an n × n affinity.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from nystrom import spectral_embedding
    >>> X, y = make_moons(3000, noise=0.05, random_state=0)
    >>> u = spectral_embedding(X, 1, gamma=50.0, n_landmarks=200, random_state=0)
    >>> bool(abs(((u[:, 0] > 0) == y).mean() - 0.5) > 0.45)
    True
    """
    with call_context("spectral_embedding", verbose, work=(3.0, 1)):
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
            landmarks,
            problem.source,
            n_components + n_dropped,
            problem.engine,
            seed=seed,
        )
        return _to_row_library(coordinates[:, n_dropped:], problem)

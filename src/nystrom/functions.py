"""The paper as functions: landmarks, leverage scores, effective dimension, K̃."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays as arrays
from .approximation import Approximation
from .columns import Columns
from .edge.engine import engine_for
from .edge.kernel import kernel_and_source
from .edge.landmarks import choose_landmarks, goal_from
from .edge.memory import explaining_memory
from .edge.rows import check_rows
from .edge.showing import shown_function
from .edge.warnings import warn_about, warn_indefinite
from .engines.progress import expect
from .factor import ridge_root, weighted
from .kernels import Kernel, Precomputed
from .landmarks import Landmarks
from .methods.spectral_embedding import embedding
from .precision import least_ridge
from .randomness import seed_of
from .refusals import count
from .residuals import prepare
from .samplers import Recursive, Ridge
from .samplers.forecast import Forecast, forecast
from .samplers.goal import check_ridge
from .scores import Spectrum, kernel_matrix, sample_scores
from .sources import Source

#: Landmarks where the user names neither their number nor a ridge.
DEFAULT_LANDMARKS = 1000


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
    gamma : float, sequence, "scale", "median" or None
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
    resolved, source = kernel_and_source(
        check_rows(X),
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        caller="select_landmarks",
        n_jobs=n_jobs,
    )
    engine = engine_for(resolved, n_jobs, verbose, source=source)
    landmarks = choose_landmarks(
        resolved,
        source,
        goal,
        sampler,
        random_state=random_state,
        engine=engine,
        delta=delta,
        constants=constants,
    )
    warn_about(landmarks)
    return landmarks


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
    _check_needed_ridge(ridge)
    resolved, source = kernel_and_source(
        check_rows(X),
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        caller="landmarks_needed",
        n_jobs=n_jobs,
    )
    sampler = Recursive(delta=delta)
    engine = engine_for(resolved, n_jobs, 0, source=source)
    return forecast(resolved, source, Ridge(ridge), sampler.proven_delta, engine)


@shown_function
@explaining_memory("leverage_scores")
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
    names = {"gamma": gamma, "degree": degree, "coef0": coef0}
    _check_needed_ridge(ridge)
    resolved, source = _rows_and_kernel(
        X, kernel, names, kernel_params, landmarks, sample_weight, n_jobs
    )
    engine = engine_for(resolved, n_jobs, verbose, source=source)
    if landmarks is None:
        engine.progress("exact scores", 0, 1)
        K = kernel_matrix(resolved, source)
        spectrum = Spectrum.of(K, resolved.dtype(source.rows(0, 1)))
        psd = resolved.traits.psd
        if psd is False or (psd is None and spectrum.indefinite):
            warn_indefinite(resolved, "their negative part counts as 0")
        return _such_as(source, resolved, spectrum.scores(ridge))
    s = len(landmarks)
    w = np.ones(s) if landmarks.weights is None else landmarks.weights
    if source.is_weighted and landmarks.indices is not None:
        w = w * np.sqrt(source.weights_of(landmarks.indices))
    SKS = weighted(resolved.gram(landmarks.points), w)
    safe = max(ridge, least_ridge(SKS))
    columns = Columns(resolved, landmarks.points)
    ready = prepare(columns, source, ridge_root(SKS, w, safe))
    expect(engine.progress, 1)
    scores = np.minimum(1.0, sample_scores(ready, source, safe, engine=engine))
    return _such_as(source, resolved, scores)


@shown_function
@explaining_memory("effective_dimension")
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
    scores = leverage_scores(
        X,
        ridge=ridge,
        kernel=kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        landmarks=landmarks,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    return float(arrays.fetched(scores).sum())


@shown_function
@explaining_memory("spectral_embedding")
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
    n_components = count(n_components, "n_components")
    names = {"gamma": gamma, "degree": degree, "coef0": coef0}
    resolved, source = _rows_and_kernel(
        X, kernel, names, kernel_params, landmarks, None, n_jobs
    )
    engine = engine_for(resolved, n_jobs, verbose, source=source)
    if landmarks is None:
        goal = goal_from(n_landmarks, sampler, default=DEFAULT_LANDMARKS)
        landmarks = choose_landmarks(
            resolved,
            source,
            goal,
            sampler,
            random_state=random_state,
            engine=engine,
            passes_after=3.0,
        )
        warn_about(landmarks)
    elif resolved.traits.by_number:
        landmarks = landmarks.updated(kernel=resolved)
    first = int(drop_first)
    _, coordinates = embedding(
        landmarks, source, n_components + first, engine, seed=seed_of(random_state)
    )
    return _such_as(source, resolved, coordinates[:, first:])


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
    _check_landmarks(landmarks)
    kernel, source = kernel_and_source(
        check_rows(X),
        landmarks.kernel,
        sample_weight=sample_weight,
        caller="approximate",
    )
    _check_width(source, landmarks)
    if kernel.traits.by_number:
        landmarks = landmarks.updated(kernel=kernel)
    engine = engine_for(kernel, n_jobs, verbose, source=source)
    return Approximation(source, landmarks, engine)


def _such_as(source: Source, kernel: Kernel, values: np.ndarray) -> Any:
    """Results where the rows are, in their precision; on the host as they are."""
    like = kernel.like(source.given.rows(0, 1))
    on_host = arrays.on_host(like)
    return values if on_host else arrays.from_host(values, like, like.dtype)


def _rows_and_kernel(
    X: Any,
    kernel: Any,
    names: dict[str, Any],
    kernel_params: dict[str, Any] | None,
    landmarks: Landmarks | None,
    sample_weight: Any,
    n_jobs: int | None,
) -> tuple[Kernel, Source]:
    if landmarks is not None:
        _check_landmarks(landmarks)
        kernel, kernel_params = landmarks.kernel, None
        names = dict.fromkeys(names)
    resolved, source = kernel_and_source(
        check_rows(X),
        kernel,
        kernel_params=kernel_params,
        sample_weight=sample_weight,
        caller="leverage_scores",
        n_jobs=n_jobs,
        **names,
    )
    if landmarks is not None:
        _check_width(source, landmarks)
    return resolved, source


def _check_needed_ridge(ridge: float) -> None:
    if ridge is None:
        raise ValueError("ridge=None is not allowed here; λ is a finite number > 0.")
    check_ridge(ridge)


def _check_landmarks(landmarks: Any) -> None:
    if not isinstance(landmarks, Landmarks):
        raise TypeError(
            f"landmarks={landmarks!r} are not landmarks; pass what select_landmarks "
            "returned, or an estimator's landmarks_. Row numbers and points become "
            "landmarks by select_landmarks(X, sampler=...)."
        )


def _check_width(source: Source, landmarks: Landmarks) -> None:
    if isinstance(landmarks.kernel, Precomputed) and source.n_rows != landmarks.n_rows:
        raise ValueError(
            f"The landmarks are row numbers of a kernel matrix of {landmarks.n_rows} "
            f"rows, but X has {source.n_rows}."
        )
    shape: tuple[int, ...] = getattr(landmarks.points, "shape", ())
    if (
        source.n_features is not None
        and len(shape) == 2
        and shape[1] != source.n_features
    ):
        raise ValueError(
            f"X has {source.n_features} features, but the landmarks have {shape[1]}."
        )

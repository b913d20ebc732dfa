"""Coordinates by the eigenvectors of the normalised affinity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..edge.landmarks import goal_from
from ..edge.memory import explaining_memory
from ..edge.showing import shown_function
from ..landmarks import Landmarks
from ..methods.spectral_embedding import embedding
from ..randomness import seed_of
from ..refusals import count
from .problem import DEFAULT_LANDMARKS, Problem


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
    problem = Problem.of(
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
    landmarks = problem.landmarks
    if landmarks is None:
        goal = goal_from(n_landmarks, sampler, default=DEFAULT_LANDMARKS)
        landmarks = problem.chosen(
            goal, sampler, random_state=random_state, passes_after=3.0
        )
    first, seed = int(drop_first), seed_of(random_state)
    _, coordinates = embedding(
        landmarks, problem.source, n_components + first, problem.engine, seed=seed
    )
    return problem.such_as_rows(coordinates[:, first:])

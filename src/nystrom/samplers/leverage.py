"""Algorithm 1: sampling by exact ridge leverage scores, from the whole of K."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..engines import Engine, single_threaded_blas
from ..kernels import Kernel
from ..landmarks import Guarantee, Landmarks
from ..leverage import Spectrum, kernel_matrix
from ..sources import Source
from .draws import (
    Drawn,
    all_rows,
    as_landmarks,
    at_most_rows,
    exactly,
    kept_by_coins,
)
from .options import check_delta, check_ridge, uses_theory
from .rules import PracticalRidge, PracticalSize, coin_probabilities
from .uniform import uniform_instead


@dataclass(frozen=True)
class Leverage:
    """RLS-Nyström sampling with exact scores (Algorithm 1).

    O(n²) kernel evaluations and O(n³) time: for checking the others, and for few rows.

    Parameters
    ----------
    constants : {"practical", "theory"} or None
        None: theory if `delta` is given, else practical.
    delta : float or None
        The guarantee fails with probability at most delta; below 1/8.
    ridge : float or None
        λ > 0: as many rows as it takes. None: with practical constants λ is the tail of
        the spectrum that `n_landmarks` stands for, with the theory's it is the smallest
        λ for which `n_landmarks` rows are expected.
    """

    constants: str | None = None
    delta: float | None = None
    ridge: float | None = None

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        check_delta(self.delta, 1 / 8, "1/8")
        uses_theory(self.constants, self.delta)

    def __call__(
        self,
        kernel: Kernel,
        source: Source,
        n_landmarks: int | None,
        *,
        seed: int,
        engine: Engine,
    ) -> Landmarks:
        theory = uses_theory(self.constants, self.delta)
        name = "leverage (theory)" if theory else "leverage"
        size = source.n_rows if n_landmarks is None else n_landmarks
        if self.ridge is None and size >= source.n_rows:
            return all_rows(kernel, source, name)
        if kernel.psd is False:
            return uniform_instead(kernel, source, size, seed, name)
        with single_threaded_blas():
            K = kernel_matrix(kernel, source)
            spectrum = Spectrum.of(K, kernel.dtype(source.rows(0, 1)))
            evaluations = kernel.gram_evaluations(source.n_rows)
            if kernel.psd is None and spectrum.indefinite:
                return uniform_instead(kernel, source, size, seed, name, evaluations)
            delta = (self.delta or 0.01) if theory else None
            ridge, drawn = _draw(spectrum, self.ridge, delta, n_landmarks, seed)
        proven = theory and drawn.n_wanted is None
        return as_landmarks(
            drawn,
            kernel,
            source,
            name,
            ridge=ridge,
            effective_dimension=spectrum.effective_dimension(ridge),
            n_kernel_evaluations=evaluations,
            guarantee=(
                Guarantee(ridge, 1 - delta, source.weights is not None)
                if proven and delta
                else None
            ),
        )


def _draw(
    spectrum: Spectrum,
    ridge: float | None,
    delta: float | None,
    n_landmarks: int | None,
    seed: int,
) -> tuple[float, Drawn]:
    """λ and the rows, for each of the four cases."""
    if ridge is None and delta is None:
        assert n_landmarks is not None
        ridge = spectrum.tail_ridge(PracticalSize(n_landmarks).k)
        return ridge, exactly(n_landmarks, spectrum.scores(ridge), seed)
    if ridge is None:
        assert n_landmarks is not None
        ridge = _ridge_for_size(spectrum, n_landmarks, delta)  # type: ignore[arg-type]
        n_landmarks = None  # expected, not a cap
    scores = spectrum.scores(ridge)
    if delta is None:
        p = PracticalRidge(ridge).probabilities(scores, 0)
    else:
        p = coin_probabilities(scores, delta)
    kept = kept_by_coins(p, seed, spectrum.effective_dimension(ridge))
    return ridge, at_most_rows(kept, p, n_landmarks, seed)


def _ridge_for_size(spectrum: Spectrum, n_landmarks: int, delta: float) -> float:
    """The smallest λ, to 1 %, at which Algorithm 1 expects at most so many rows."""
    low = spectrum.tail_ridge(len(spectrum.eigenvalues))
    high = max(low, float(spectrum.eigenvalues.sum()))
    while coin_probabilities(spectrum.scores(high), delta).sum() > n_landmarks:
        high *= 2
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        expected = coin_probabilities(spectrum.scores(middle), delta).sum()
        low, high = (middle, high) if expected > n_landmarks else (low, middle)
    return high

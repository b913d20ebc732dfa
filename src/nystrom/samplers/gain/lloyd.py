"""Landmarks that are not rows: the default's, moved by one guarded Lloyd step.

For kernels that fall with a distance the landmarks may leave the rows. Moving each
towards the mean of the rows nearest to it lowers the trace error by a tenth to a
quarter; the spectral error may rise, and more steps make it worse. So there is one
step, of the length that fresh rows show to be best, and none if they do not gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines.progress import parts
from ...kernels import Kernel
from ...landmarks import Landmarks
from ...precision import least_ridge
from ...randomness import Purpose, first_rows
from ...residuals import prepare, residuals
from ...ridge_root import ridge_root
from ...sources import Block, Source
from ...sources import weights as row_weights
from ..choosing import Sampler, Work
from ..draws import all_rows
from ..goal import Size
from ..sifting import Part
from .by_gain import LOOKS, GainPivoted
from .plan import ON_POOLS

#: Rows per landmark whose means are taken.
ROWS_PER_LANDMARK = 40
#: Fresh rows to try it on: a quarter of all, within these bounds.
FRESH_ROWS = (256, 6000)
#: Lengths of the step that are tried.
LENGTHS = (1.0, 0.75, 0.5, 0.25)
#: How long it takes, in passes over all rows, for each landmark per row.
MOVING = 100.0
#: A step must gain so many standard errors on the fresh rows.
SURE = 3.0


@dataclass(frozen=True)
class KMeans(Sampler):
    """The landmarks of "auto", moved towards the means of their nearest rows.

    Lower trace error per landmark; the landmarks are then no rows of the data and have
    no row numbers. For dense vectors and kernels that fall with a distance (RBF,
    Matérn, rational quadratic, Laplacian, and sums, products and multiples of these).

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import samplers, select_landmarks
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> options = {"n_landmarks": 20, "random_state": 0}
    >>> chosen = select_landmarks(X, sampler=samplers.KMeans(), **options)
    >>> len(chosen), chosen.sampler
    (20, 'kmeans')
    """

    name = "kmeans"
    all_rows_will_do = False  # what it cannot move is refused all the same

    def choose(self, work: Work, goal: Size) -> Landmarks:
        _check(work.kernel, work.source)
        if goal.n_landmarks >= work.source.n_rows:  # every row: K̃ = K already
            every = all_rows(work.kernel, work.source, self.name)
            return replace(every, indices=None, weights=None, probabilities=None)
        choosing, moving = parts(work.engine.progress, ON_POOLS, MOVING)
        with choosing:
            start = GainPivoted().choose(work, goal)
        with moving:
            return _moved(start, work, self.name)


def _check(kernel: Kernel, source: Source) -> None:
    if not kernel.traits.of_distance:
        why = (
            "a precomputed kernel cannot be evaluated at new points"
            if kernel.traits.by_number
            else f"{kernel} is not known to fall with a distance"
        )
        raise ValueError(
            f"sampler='kmeans' moves the landmarks off the rows, and {why}. Use "
            "sampler='auto', or one of the kernels RBF, Matern, RationalQuadratic, "
            "Laplacian."
        )
    if source.n_features is None or not arrays.is_array(source.rows(0, 1)):
        raise ValueError(
            "sampler='kmeans' needs dense rows of numbers: the mean of CSR rows is not "
            "sparse. Use sampler='auto', or X.toarray()."
        )


def _moved(start: Landmarks, work: Work, name: str) -> Landmarks:
    """Each landmark moved towards the mean of its rows, if fresh rows gain by it."""
    n, s = work.source.n_rows, len(start)
    near = _uniform_rows(work, min(n, ROWS_PER_LANDMARK * s), level=len(LOOKS) + 1)
    fresh = _uniform_rows(work, int(np.clip(n // 4, *FRESH_ROWS)), level=len(LOOKS) + 2)
    Z = arrays.host_values(start.points)
    step = _means_of_cells(start, Z, near, work) - Z
    lefts = {}
    for length in (0.0, *LENGTHS):
        points = arrays.from_host(Z + length * step, start.points)
        lefts[length] = _left(points, fresh, work)
    length = _best_length(lefts)
    note = f"moved {length:g} of the way to the means" if length else "not moved"
    work.ledger.note(note)
    points = arrays.from_host(Z + length * step, start.points)
    return Landmarks(points, work.kernel, name, n)


def _uniform_rows(work: Work, size: int, level: int) -> Part:
    n = work.source.n_rows
    rows = first_rows(work.seed, Purpose.FRESH, n, size, level=level)
    return Part.of(work.source, np.sort(rows), work.engine, work.ledger)


def _means_of_cells(
    start: Landmarks, Z: np.ndarray, near: Source, work: Work
) -> np.ndarray:
    """The mean of the rows nearest to each landmark, itself counted as one of them."""
    shared = (start.columns(), len(Z))
    found = work.engine.reduce(_nearest_sums, near, shared, "means")
    sums, counts = arrays.fetched(found)
    work.ledger.evaluated(near.n_rows * len(Z))
    return (sums + Z) / (counts + 1)[:, None]


def _nearest_sums(block: Block, columns: Columns, n_points: int) -> tuple[Array, Array]:
    K, X = columns(block.X), arrays.widen(block.X)
    xp = arrays.namespace(K)
    # The kernel falls with the distance: nearest is where it is largest.
    nearest = xp.argmax(K, axis=1)
    # A row whose kernel values all vanish is near to none.
    w = arrays.from_host(block.weights, X) * arrays.as_float(xp.max(K, axis=1) > 0)
    return arrays.sums_by_label(X, nearest, n_points, w)


def _left(points: Any, fresh: Source, work: Work) -> np.ndarray:
    """What these landmarks leave of the fresh rows, as they count."""
    K = work.kernel.gram(points)
    work.ledger.evaluated(work.kernel.gram_evaluations(len(K)))
    ridge = least_ridge(K)
    root = ridge_root(K, np.ones(len(K)), ridge)
    ready = prepare(Columns(work.kernel, points), fresh, root, ledger=work.ledger)
    left = residuals(ready, fresh, engine=work.engine.quiet(), name="fresh rows")
    # The ridge itself leaves up to λ of a row that is spanned, and rounding far less
    # than that: no step gains by either.
    return row_weights.weighted(fresh.weights, np.where(left > 2 * ridge, left, 0.0))


def _best_length(lefts: dict[float, np.ndarray]) -> float:
    """The length that leaves least, if it surely leaves less than no step."""
    best, still = 0.0, lefts[0.0]
    for length in LENGTHS:
        gain = still - lefts[length]
        error = np.std(gain) / np.sqrt(len(gain))
        if gain.mean() > SURE * error and lefts[length].sum() < lefts[best].sum():
            best = length
    return best

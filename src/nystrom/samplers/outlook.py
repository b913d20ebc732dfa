"""How long choosing will take, for who follows it: in passes with all landmarks.

A pass over all rows with all landmarks is what most fits are made of, and what the time
of choosing is told in. Rough numbers, measured at 30 000 rows with 400 landmarks and at
200 000 with 200; they move a bar, and nothing else depends on them.
"""

from __future__ import annotations

from typing import Any

from .gain.lloyd import MOVING
from .gain.plan import DRAWING, ON_POOLS, REFRESHING_ALL
from .goal import Goal, MaxTraceError, Ridge

#: By the sampler's name: passes, and further ones for each landmark per row, which is
#: work on pools whose size follows from the number of landmarks alone.
PASSES: dict[str, tuple[float, float]] = {
    "auto": (DRAWING + REFRESHING_ALL, ON_POOLS),
    "accelerated": (1.0, 0.0),
    "greedy": (0.3, 10.0),
    "kmeans": (DRAWING + REFRESHING_ALL, ON_POOLS + MOVING),
    "recursive": (2.0, 0.0),
    "rpcholesky": (0.3, 10.0),
    "uniform": (0.0, 0.1),
    "given rows": (0.0, 0.1),
    "given points": (0.0, 0.1),
}
#: Where the number of landmarks is found on the way: levels, and looks at what is left;
#: a pass at every doubling, and one to find the shortest prefix.
FOR_RIDGE, FOR_TRACE_ERROR = 1.5, 4.5
#: Of a sampler that is not known here.
OF_ANOTHER = (1.0, 0.0)


def passes_to_choose(sampler: Any, goal: Goal, n_rows: int) -> float:
    """About as long as so many passes over all rows with all landmarks."""
    if isinstance(goal, Ridge):
        return FOR_RIDGE
    if isinstance(goal, MaxTraceError):
        return FOR_TRACE_ERROR
    name = getattr(sampler, "name", "")
    share = min(1.0, goal.n_landmarks / max(1, n_rows))
    if name == "leverage":  # all of K, and its eigenvalues
        return 1 / max(share, 1e-6)
    passes, on_pools = PASSES.get(name, OF_ANOTHER)
    return passes + on_pools * share

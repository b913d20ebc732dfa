"""The rows that widths are learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _arrays as arrays
from ...engines import Engine
from ...randomness import Purpose, first_rows, race, uniforms
from ...sources import Source
from ...tried import fetch
from .likelihood import Observed

#: Rows that are looked at, and landmarks among them.
ROWS, POINTS = 1000, 250


@dataclass(frozen=True, eq=False)
class Looked:
    """Some rows with their targets, the first of them landmarks."""

    X: Any  # float64 and centred, or CSR
    observed: Observed
    n_landmarks: int

    @classmethod
    def at(
        cls,
        source: Source,
        engine: Engine,
        *,
        size: int,
        intercept: bool,
        dense: bool,
        seed: int,
    ) -> Looked:
        """Rows drawn uniformly from a source with targets; at most `size` landmarks."""
        n = source.n_rows
        if source.is_weighted:  # rows of weight 0 are as if they were not there
            counts = (source.weights > 0).astype(np.float64)
            rows, _ = race(counts, uniforms(seed, Purpose.LOOK, 0, n), ROWS)
        else:
            rows = first_rows(seed, Purpose.LOOK, n, ROWS)
        Y = np.asarray(arrays.to_host(source.targets[rows]), np.float64)
        observed = Observed.of(Y, source.weights_of(rows), intercept=intercept)
        X = _held(fetch(source, rows, engine), dense)
        return cls(X, observed, min(size, POINTS, len(rows)))

    @property
    def says_nothing(self) -> bool:
        """Whether nothing can be learnt: few rows, or no target that varies."""
        return len(self.observed.targets) < 3 or not self.observed.targets.shape[1]


def _held(X: Any, dense: bool) -> Any:
    """Rows here, in float64 and about their median; CSR rows as they are."""
    if sp.issparse(X) and not dense:
        return X.astype(np.float64)
    X = arrays.host_values(X)  # of CSR rows too
    return X - np.median(X, axis=0)

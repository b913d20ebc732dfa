"""tr(K − K̃)/tr K: the one definition, exact or estimated, with the rows' weights.

What is left of the rows and their k(x, x) come from whichever pass has them; what they
make is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .html import falling_line, table
from .sources import weights as row_weights

#: A value whose rounding may be a larger share of it is told as a bound.
RESOLVED = 0.02


@dataclass(frozen=True)
class TraceError:
    """tr(K − K̃)/tr K, and how it was found.

    Where rounding hides the value, `at_most` is True and `value` is an upper bound,
    rounding included.
    """

    value: float
    standard_error: float  # 0 where all rows were used
    n_rows: int  # the rows it was computed on
    exact: bool  # whether these were all rows
    #: The same of every prefix of the landmarks, where it is known.
    path: np.ndarray | None = field(default=None, repr=False, compare=False)
    rounding: float = 0.0  # how far the value may be off, as a share of tr K too
    at_most: bool = False

    @classmethod
    def of_all(
        cls,
        left: float,
        whole: float,
        n_rows: int,
        squares: np.ndarray | None = None,
        rounding: float = 0.0,
    ) -> TraceError:
        """Exact: `left` of the sum `whole` of w·k(x, x) over all rows.

        `rounding` is how far `left` may be off.

        `squares` are the sums of w·z² by column of Z, one per landmark, where the
        columns nest: what is left by fewer landmarks is what all leave and the squares
        of the columns that are missing. Added up from the end: taking them off tr K
        would lose what is small.
        """
        share = max(0.0, left) / whole if whole > 0 else 0.0
        off = float(rounding / whole) if whole > 0 else 0.0
        at_most = bool(off > RESOLVED * share)
        share = share + off if at_most else share
        path = None
        if squares is not None:
            after = np.cumsum(squares[:0:-1])[::-1] / (whole if whole > 0 else 1.0)
            path = share + np.concatenate([after, [0.0]])
        return cls(
            share, 0.0, n_rows, exact=True, path=path, rounding=off, at_most=at_most
        )

    def of_prefix(self, size: int) -> TraceError | None:
        """The error of the first landmarks alone, where it is known."""
        if self.path is None:
            return None
        value = float(self.path[size - 1])
        at_most = bool(self.rounding > RESOLVED * value)
        return replace(self, value=value, path=self.path[:size], at_most=at_most)

    @classmethod
    def of_some(
        cls,
        left: np.ndarray,
        whole: np.ndarray,
        weights: np.ndarray,
        n_rows: int,
        rounding: float = 0.0,
    ) -> TraceError:
        """Estimated from some of n rows, drawn uniformly without replacement.

        `rounding`, a share of tr K, is part of the standard error.
        """
        m = len(left)
        left = row_weights.weighted(weights, left)
        whole = row_weights.weighted(weights, whole)
        if whole.sum() <= 0:
            return cls(0.0, 0.0, m, exact=m == n_rows)
        ratio = float(left.sum() / whole.sum())
        spread = float(np.std(left - ratio * whole)) / np.sqrt(m) / whole.mean()
        # Without replacement: no error is left once all rows are in.
        spread *= np.sqrt(1 - m / n_rows)
        if m == n_rows:
            total = float(whole.sum())
            return cls.of_all(float(left.sum()), total, m, rounding=rounding * total)
        spread = np.hypot(spread, rounding)
        return cls(ratio, float(spread), m, exact=False, rounding=rounding)

    @classmethod
    def of_drawn(
        cls, left: float, variance: float, whole: float, n_rows: int, rounding: float
    ) -> TraceError:
        """Estimated: `left`, and its variance, from rows drawn by unequal chances.

        `whole` is that of all rows; `rounding`, a share of it, is part of the standard
        error.
        """
        if whole <= 0:
            return cls(0.0, 0.0, n_rows, exact=False)
        spread = float(np.hypot(np.sqrt(variance) / whole, rounding))
        value = max(0.0, left) / whole
        return cls(value, spread, n_rows, exact=False, rounding=rounding)

    def joined(self, whole: float, left: float, more: float, n_more: int) -> TraceError:
        """With more rows, that add `more` to the sum `whole` and leave `left` of it."""
        total = whole + more
        if total <= 0:
            return replace(self, n_rows=self.n_rows + n_more, path=None)
        share = whole / total
        value = share * self.value + max(0.0, left) / total
        return replace(
            self,
            value=value,
            rounding=share * self.rounding,
            at_most=bool(share * self.rounding > RESOLVED * value),
            standard_error=share * self.standard_error,
            n_rows=self.n_rows + n_more,
            path=None,
        )

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.at_most:
            return f"≤ {self.value:.2g} (up to rounding)"
        if self.exact:
            return f"{self.value:.3g} (exact)"
        return f"{self.value:.3g} ± {self.standard_error:.1g} ({self.n_rows} rows)"

    def picture(self) -> str:
        """The error of every prefix as a small line, where it is known; else ""."""
        if self.path is None:
            return ""
        first, last, size = self.path[0], self.path[-1], len(self.path)
        said = f"relative trace error of 1 landmark, {first:.2g}, to {size}, {last:.2g}"
        return falling_line(self.path, said)

    def _repr_html_(self) -> str:
        return table(
            "tr(K − K̃)/tr K", [("relative trace error", f"{self}")], self.picture()
        )

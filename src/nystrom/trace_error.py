"""tr(K − K̃)/tr K: the one definition, exact or estimated, with the rows' weights.

What is left of the rows and their k(x, x) come from whichever pass has them; what they
make is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .sources import weights as row_weights


@dataclass(frozen=True)
class TraceError:
    """tr(K − K̃)/tr K, and how it was found."""

    value: float
    standard_error: float  # 0 where all rows were used
    n_rows: int  # the rows it was computed on
    exact: bool  # whether these were all rows

    @classmethod
    def of_all(cls, left: float, whole: float, n_rows: int) -> TraceError:
        """Exact: `left` of the sum `whole` of w·k(x, x) over all rows."""
        share = max(0.0, left) / whole if whole > 0 else 0.0
        return cls(share, 0.0, n_rows, exact=True)

    @classmethod
    def of_some(
        cls, left: np.ndarray, whole: np.ndarray, weights: np.ndarray, n_rows: int
    ) -> TraceError:
        """Estimated from some of n rows, drawn uniformly without replacement."""
        m = len(left)
        left = row_weights.weighted(weights, left)
        whole = row_weights.weighted(weights, whole)
        if whole.sum() <= 0:
            return cls(0.0, 0.0, m, exact=m == n_rows)
        ratio = float(left.sum() / whole.sum())
        spread = float(np.std(left - ratio * whole)) / np.sqrt(m) / whole.mean()
        # Without replacement: no error is left once all rows are in.
        spread *= np.sqrt(1 - m / n_rows)
        return cls(ratio, float(spread), m, exact=m == n_rows)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.exact:
            return f"{self.value:.3g} (exact)"
        return f"{self.value:.3g} ± {self.standard_error:.1g} ({self.n_rows} rows)"

"""Products with a triangular matrix, which skip most of its zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _arrays as arrays
from ._arrays import Array
from .operands import Operand

#: Blocks that a matrix is cut into: with 8 a triangle takes 56 % of the multiply-adds
#: of a square, and the products are still large.
N_BLOCKS = 8
#: Columns that a block has at least.
LEAST_WIDTH = 64


@dataclass(frozen=True, eq=False)
class ColumnBlocks:
    """B in blocks of columns, each without the rows below its last that is not 0.

    K·B is then a product per block with as many columns of K as the block has rows.
    """

    parts: tuple[Operand, ...]
    n_columns: int

    @classmethod
    def of(cls, B: np.ndarray, dtype: np.dtype | None = None) -> ColumnBlocks:
        """The blocks of a matrix on the host, as operands for blocks of K."""
        r = B.shape[1]
        dtype = B.dtype if dtype is None else dtype
        filled = B != 0
        parts = []
        width = max(LEAST_WIDTH, -(-r // N_BLOCKS))
        for start in range(0, r, width):
            stop = min(start + width, r)
            rows = np.flatnonzero(filled[:, start:stop].any(axis=1))
            height = int(rows[-1]) + 1 if len(rows) else 1
            with np.errstate(over="ignore"):
                part = np.ascontiguousarray(B[:height, start:stop], dtype)
            parts.append(Operand(part))
        return cls(tuple(parts), r)

    def product(self, K: Array) -> Array:
        """K·B, where K is."""
        if isinstance(K, np.ndarray):
            return self._product_in_place(K)
        made = [K[:, : len(part)] @ part.beside(K) for part in self.parts]
        return arrays.side_by_side(made) if made else K[:, :0]

    def _product_in_place(self, K: np.ndarray) -> np.ndarray:
        """Each block where it belongs: putting them together would cost a copy."""
        parts = [part.values for part in self.parts]
        dtype = np.result_type(K, *parts)
        out = np.empty((len(K), self.n_columns), dtype)
        start = 0
        for part in parts:
            height, width = part.shape
            np.matmul(K[:, :height], part, out=out[:, start : start + width])
            start += width
        return out

    def squared_norms(self, K: Array) -> Array:
        """‖k·B‖² of each row of K, in float64; nothing wider than a block is made."""
        total = arrays.zeros(K.shape[0], K)
        for part in self.parts:
            right = part.values if arrays.on_host(K) else part.beside(K)
            product = K[:, : len(part)] @ right
            total = total + arrays.widen(arrays.squared_norms(product))
        return total

"""Products with a triangular matrix, which skip most of its zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _arrays as arrays
from ._arrays import Array

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

    parts: tuple[Array, ...]
    n_columns: int

    @classmethod
    def of(
        cls, B: np.ndarray, like: Array = None, dtype: np.dtype | None = None
    ) -> ColumnBlocks:
        """The blocks of a matrix on the host, as operands for blocks such as `like`."""
        r = B.shape[1]
        like = np.empty(0) if like is None else like
        dtype = B.dtype if dtype is None else dtype
        filled = B != 0
        parts = []
        width = max(LEAST_WIDTH, -(-r // N_BLOCKS))
        for start in range(0, r, width):
            stop = min(start + width, r)
            rows = np.flatnonzero(filled[:, start:stop].any(axis=1))
            height = int(rows[-1]) + 1 if len(rows) else 1
            parts.append(arrays.from_host(B[:height, start:stop], like, dtype))
        return cls(tuple(parts), r)

    def product(self, K: Array) -> Array:
        """K·B."""
        if isinstance(K, np.ndarray):
            return self._product_in_place(K)
        made = [K[:, : part.shape[0]] @ part for part in self.parts]
        return arrays.side_by_side(made) if made else K[:, :0]

    def _product_in_place(self, K: np.ndarray) -> np.ndarray:
        """Each block where it belongs: putting them together would cost a copy."""
        dtype = np.result_type(K, *self.parts)
        out = np.empty((len(K), self.n_columns), dtype)
        start = 0
        for part in self.parts:
            height, width = part.shape
            np.matmul(K[:, :height], part, out=out[:, start : start + width])
            start += width
        return out

    def squared_norms(self, K: Array) -> np.ndarray:
        """‖k·B‖² of each row of K, on the host; nothing wider than a block is made."""
        total = np.zeros(K.shape[0])
        for part in self.parts:
            product = K[:, : part.shape[0]] @ part
            total += arrays.to_host(arrays.squared_norms(product))
        return total

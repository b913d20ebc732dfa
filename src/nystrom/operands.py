"""Small matrices that blocks are multiplied with, wherever the blocks are."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays as arrays
from ._arrays import Array


class Operand:
    """A small array on the host, at hand on every device that it is asked for on.

    It is brought there once, not for every block. Other processes get what is on the
    host, and bring it to devices of their own.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._there: dict[Any, Array] = {}

    def beside(self, block: Array, dtype: Any = None) -> Array:
        """In the library, on the device and in the precision of a block, or another."""
        dtype = block.dtype if dtype is None else arrays.own_dtype(dtype, block)
        key = (*arrays.place(block), str(dtype))
        if key not in self._there:
            self._there[key] = arrays.from_host(self.values, block, dtype)
        return self._there[key]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the values."""
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Operand, (self.values,)

"""K·V for all rows, pair of blocks by pair of blocks.

K is symmetric: a block on one side of the diagonal stands for two, and is evaluated
once. Where all of them fit the working memory they are held, else evaluated again for
every product: n²/2 kernel values, of which the exp takes most of the time while the
rows have few features.

float32 values take a quarter to a third of the time of float64 ones. A product may be
off by their rounding; whoever needs it exactly asks for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from ... import _arrays as arrays
from ..._arrays import Array
from ...columns import Columns
from ...engines import Engine
from ...kernels import Kernel
from ...ledger import Ledger
from ...operands import Operand
from ...refusals import check_finite
from ...samplers.gain.part import narrowed
from ...sources import Block, Held

#: Rows of a block: two sides of so many stay in the cache between exp and product.
SIDE = 512
#: Share of the working memory that K may take; the preconditioner takes the rest.
SHARE = 0.75


class AllPairs:
    """V ↦ KV: quickly by calling it, exactly by `exactly`."""

    def __init__(self, kernel: Kernel, points: Any, engine: Engine) -> None:
        # Every row is a point too: they are held here, and so is the work.
        self.engine, rows = engine.local, narrowed(kernel, points, Ledger())
        self.quick = Blocks.of(kernel, rows, wide=False)
        self.exact = self.quick
        if self.quick.narrow:
            self.exact = Blocks.of(kernel, points, wide=True)
        self._hold(kernel.traits.by_number)

    def _hold(self, given: bool) -> None:
        """Keep the blocks that fit, in float64 if they do; a given K is kept anyway."""
        n, memory = self.quick.n_rows, get_config()["working_memory"] * 2**20
        self.held: HeldBlocks | None = None
        for blocks in () if given else (self.exact, self.quick):
            size = 4 if blocks.narrow else 8
            if size * n * (n + SIDE) / 2 <= SHARE * memory:
                self.held = HeldBlocks.of(blocks, self.engine)
                self.quick = blocks
                break

    @property
    def is_exact(self) -> bool:
        """Whether the quick product is the exact one."""
        return self.quick is self.exact

    def __call__(self, V: np.ndarray) -> np.ndarray:
        return self._product(self.quick, V)

    def exactly(self, V: np.ndarray) -> np.ndarray:
        """KV from float64 values."""
        return self._product(self.exact, V)

    def _product(self, blocks: Blocks, V: np.ndarray) -> np.ndarray:
        # float32 has neither very large numbers nor very small ones.
        size = np.abs(V).max(axis=0, initial=0.0)
        size[~(size > 0)] = 1.0
        held = self.held is not None and blocks is self.quick
        shared = (self.held if held else blocks, Operand(V / size))
        found = self.engine.reduce(
            _held_products if held else _products,
            blocks.source,
            shared,
            "products with K",
        )
        if not np.isfinite(found.sum()):
            check_finite(found)
        return found * size


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of K on one side of its diagonal, made when they are asked for."""

    source: Held
    parts: list[Columns]  # of SIDE rows each

    @classmethod
    def of(cls, kernel: Kernel, points: Any, *, wide: bool) -> Blocks:
        """Those of some rows with themselves."""
        n = arrays.count_rows(points)
        pieces = (
            arrays.slice_rows(points, a, min(a + SIDE, n)) for a in range(0, n, SIDE)
        )
        return cls(Held(points), [Columns(kernel, piece, wide) for piece in pieces])

    @property
    def n_rows(self) -> int:
        """Rows of K."""
        return self.source.n_rows

    @property
    def narrow(self) -> bool:
        """Whether values are float32."""
        return self.parts[0].narrow

    def beside(self, block: Block) -> Iterator[tuple[slice, slice, Array]]:
        """(rows, columns, K there), from the diagonal to the right."""
        end = block.start + len(block)
        for start in range(block.start, end, SIDE):
            rows = slice(start, min(start + SIDE, end))
            X = arrays.slice_rows(block.X, start - block.start, rows.stop - block.start)
            for i in range(start // SIDE, len(self.parts)):
                columns = slice(i * SIDE, min((i + 1) * SIDE, self.n_rows))
                yield rows, columns, self.parts[i](X)


def _products(block: Block, blocks: Blocks, V: Operand) -> np.ndarray:
    out = np.zeros(V.shape)
    for rows, columns, K in blocks.beside(block):
        there = V.beside(K)
        out[rows] += arrays.host_values(K @ there[columns])
        if columns.start > rows.start:
            out[columns] += arrays.host_values(K.T @ there[rows])
    return out


class HeldBlocks:
    """The same blocks, kept: for every SIDE rows all that is right of the diagonal."""

    anywhere = False  # a sink in this process

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.strips: dict[int, np.ndarray] = {}

    @classmethod
    def of(cls, blocks: Blocks, engine: Engine) -> HeldBlocks:
        """All of them, evaluated once."""
        held = cls(blocks.n_rows)
        engine.map(_strips, blocks.source, held, (blocks,), "kernel matrix")
        return held

    def open(self) -> None:
        """Nothing is to be made ready."""

    def put(self, start: int, rows: dict[int, np.ndarray]) -> None:
        """Keep the strips of a tile."""
        self.strips.update(rows)

    def close(self, complete: bool) -> None:
        """Nothing is to be ended."""


def _strips(block: Block, blocks: Blocks) -> dict[int, np.ndarray]:
    strips: dict[int, np.ndarray] = {}
    dtype = blocks.parts[0].dtype
    for rows, columns, K in blocks.beside(block):
        if rows.start not in strips:
            shape = rows.stop - rows.start, blocks.n_rows - rows.start
            strips[rows.start] = np.empty(shape, dtype)
        right = slice(columns.start - rows.start, columns.stop - rows.start)
        strips[rows.start][:, right] = arrays.to_host(K)
    return strips


def _held_products(block: Block, held: HeldBlocks, V: Operand) -> np.ndarray:
    out = np.zeros(V.shape)
    for start in range(block.start, block.start + len(block), SIDE):
        K = held.strips[start]
        there, end = V.beside(K), start + len(K)
        out[start:end] += K @ there[start:]
        out[end:] += K[:, len(K) :].T @ there[start:end]
    return out

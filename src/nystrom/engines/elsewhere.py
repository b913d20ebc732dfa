"""What engines have in common whose workers are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .engine import Engine
from .threads import Threads


class Elsewhere(Engine):
    """What is held in this process is worked on by its threads."""

    @property
    def local(self) -> Engine:
        """Threads of this process."""
        engine = Threads(progress=self.progress)
        engine.passes = self.passes
        return engine

    def each(
        self, f: Callable, items: Sequence[Any], multiply_adds: float
    ) -> list[Any]:
        """f of each item, on threads of this process."""
        return self.local.each(f, items, multiply_adds)

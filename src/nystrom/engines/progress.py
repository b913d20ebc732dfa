"""Who follows the passes, and how the work ahead is told to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

#: What every engine calls: (stage, tiles done, tiles in all).
Hook = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """`verbose=0`."""


class Followers:
    """Several hooks as one. A bar among them is told of the work ahead, too."""

    def __init__(self, *hooks: Hook) -> None:
        self.hooks = hooks

    def __call__(self, stage: str, done: int, total: int) -> None:
        for hook in self.hooks:
            hook(stage, done, total)

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """So much of what is left of the work."""
        with ExitStack() as stack:
            for hook in self._asked("part"):
                stack.enter_context(hook.part(share))
            yield

    def expect(self, passes: float, *, about: bool = False) -> None:
        """So many passes are ahead."""
        for hook in self._asked("expect"):
            hook.expect(passes, about=about)

    def note(self, text: str) -> None:
        """A line for who reads along; a stage of its own for all others."""
        for hook in self.hooks:
            note(hook, text)

    def _asked(self, name: str) -> list[Any]:
        return [hook for hook in self.hooks if hasattr(hook, name)]


def parts(hook: Hook | None, *weights: float) -> list[AbstractContextManager[Any]]:
    """The work ahead in parts that take about so long, to be entered in this order.

    A hook that shows no share of the whole is told nothing of it.
    """
    ask, left = getattr(hook, "part", None), float(sum(weights))
    found: list[AbstractContextManager[Any]] = []
    for weight in weights:
        share = min(1.0, weight / left) if left > 0 else 1.0
        found.append(nullcontext() if ask is None else ask(share))
        left -= weight
    return found


def expect(hook: Hook, passes: float, *, about: bool = False) -> None:
    """So many passes are ahead, as long as each other; more of them if `about`."""
    if hasattr(hook, "expect"):
        hook.expect(passes, about=about)


def note(hook: Hook, text: str) -> None:
    """Something for people to read; a hook of any kind hears of it as a stage."""
    if hasattr(hook, "note"):
        hook.note(text)
    else:
        hook(text, 1, 1)

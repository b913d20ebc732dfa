"""What has been sent to the workers of a cluster, and is there still."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .travelling import Part

#: What is sent stays there for so many passes, in case it is wanted again, and goes in
#: pieces of so many bytes.
PASSES_KEPT, PIECE = 4, 2**26


class Sent:
    """Parts of sources at the workers, by their content: none is sent twice.

    By content, since rows that are held here may be written to between two fits.
    """

    def __init__(self) -> None:
        self._there: dict[bytes, tuple[Any, int]] = {}  # future, pass it was for
        self._number = 0  # of the passes so far

    def there(
        self,
        parts: Iterable[Part | None],
        send: Callable[[list[Part]], list[Any]],
    ) -> list[Any]:
        """A future for each part of a pass; those that are missing are sent."""
        self._number = number = self._number + 1
        marks: list[bytes | None] = []
        missing: dict[bytes, Part] = {}
        size = 0
        for part in parts:
            if part is None:
                marks.append(None)
                continue
            mark, n_bytes = part.fingerprint()
            marks.append(mark)
            if mark in self._there:
                self._there[mark] = self._there[mark][0], number
            elif mark not in missing:
                missing[mark] = part
                size += n_bytes
            if size > PIECE:
                self._send(missing, number, send)
                size = 0
        if missing:
            self._send(missing, number, send)
        found = [None if mark is None else self._there[mark][0] for mark in marks]
        for mark, (_, last) in list(self._there.items()):
            if last <= number - PASSES_KEPT:
                del self._there[mark]
        return found

    def _send(self, missing: dict[bytes, Part], number: int, send: Callable) -> None:
        futures = send(list(missing.values()))
        for mark, future in zip(missing, futures, strict=True):
            self._there[mark] = future, number
        missing.clear()

    def clear(self) -> None:
        """All of it is gone."""
        self._there.clear()

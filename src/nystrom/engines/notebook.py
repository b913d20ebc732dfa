"""A place in the output of a notebook's cell whose text can change.

Carriage returns would do while somebody watches; but a notebook that is run by a
program, or saved and converted, keeps every text that was written over.
"""

from __future__ import annotations

from typing import Any


def reads(stream: Any) -> bool:
    """Whether what is written to the stream goes to a notebook."""
    return type(stream).__module__.startswith("ipykernel")


class Place:
    """One output of a cell, in plain text."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """This text, and no other."""
        from IPython.display import display

        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

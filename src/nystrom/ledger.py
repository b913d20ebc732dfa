"""What a piece of work has cost so far, and what its reader should know."""

from __future__ import annotations

from typing import Any


class Ledger:
    """Travels with the work: whoever evaluates the kernel writes it down here."""

    n_evaluations: int
    n_passes: int

    def __init__(self) -> None:
        self.n_evaluations = 0
        self.n_passes = 0
        self.notes: list[str] = []

    def evaluated(self, n_entries: int) -> None:
        """So many entries of K were evaluated."""
        self.n_evaluations += n_entries

    def passed(self, source: Any) -> None:
        """All rows of a source were gone through, unless it is part of another."""
        self.n_passes += not source.is_part

    def fetched(self, source: Any) -> None:
        """Some rows of a source were fetched, which takes a pass if it is a file."""
        self.n_passes += not source.at_hand

    def note(self, text: str) -> None:
        """Something the reader should know; once."""
        if text not in self.notes:
            self.notes.append(text)

"""What a piece of work has cost so far, and what its reader should know."""

from __future__ import annotations


class Ledger:
    """Travels with the work: whoever evaluates the kernel writes it down here."""

    def __init__(self) -> None:
        self.n_evaluations = 0
        self.notes: list[str] = []

    def evaluated(self, n_entries: int) -> None:
        """So many entries of K were evaluated."""
        self.n_evaluations += n_entries

    def note(self, text: str) -> None:
        """Something the reader should know; once."""
        if text not in self.notes:
            self.notes.append(text)

"""One line of text redrawn in place, on a terminal or in a notebook; whole lines in a
log.

Of several lines on one stream the first is drawn; the others are written above it
when they end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO


def is_notebook_stream(stream: Any) -> bool:
    """Whether what is written to the stream goes to a notebook."""
    return type(stream).__module__.startswith("ipykernel")


class NotebookOutput:
    """One output of a cell, in plain text."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """This text, and no other."""
        from IPython.display import display

        content = {"text/plain": text}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


#: Held while a line is written: fits in several threads share the streams.
STREAM_LOCK = threading.RLock()
#: The lines that are being drawn now, one for each stream.
_active_lines: list[StatusLine] = []


class StatusLine:
    """A line on a stream, by default standard error."""

    stream: TextIO  # None where there is no standard error
    live: bool

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = _is_interactive(self.stream)
        self._notebook_output = (
            NotebookOutput() if is_notebook_stream(self.stream) else None
        )
        self._length = 0  # of what stands there

    def begin(self) -> None:
        """From now on this is the line that is drawn, unless there is one."""
        with STREAM_LOCK:
            if any(line.stream is self.stream for line in _active_lines):
                self.live = False
            elif self.live:
                _active_lines.append(self)

    def draw(self, text: str) -> None:
        """Put the text in the place of what stands there."""
        text = self.truncate(text)
        if self._notebook_output is not None:
            self._notebook_output.show(text)
            return
        self._write("\r" + text.ljust(self._length))  # spaces cover what was longer
        self._length = len(text)

    def end(self, text: str) -> None:
        """The last text, and a new line; nothing where there is no text."""
        with STREAM_LOCK:
            if self.live:
                _active_lines.remove(self)
                if text:
                    self.draw(text)
                    if self._notebook_output is None:
                        self._write("\n")
                self.live = False
            elif text:
                self.write(text)

    def write(self, text: str) -> None:
        """A whole line, above the one that is drawn."""
        if self._notebook_output is not None:
            NotebookOutput().show(text)
            return
        with write_above_status_line(self.stream):
            self._write(text + "\n")

    def truncate(self, text: str) -> str:
        """The text, if it is shorter than the line; else what of it is."""
        max_length = self.columns
        return text if len(text) <= max_length else text[: max_length - 1] + "…"

    @property
    def columns(self) -> int:
        """How long a line may be without a second one: the last column stays free."""
        try:
            n_columns = os.get_terminal_size(self.stream.fileno()).columns
        except (AttributeError, OSError, ValueError):  # a notebook, a test
            n_columns = 0
        if n_columns == 0 or "COLUMNS" in os.environ:
            n_columns = shutil.get_terminal_size().columns
        return max(10, n_columns) - 1

    def can_encode(self, characters: str) -> bool:
        """Whether the stream has these characters."""
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        try:
            characters.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def _write(self, text: str) -> None:
        # No fit fails because of a closed pipe, or because there is no stream.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def _clear(self) -> None:
        if self._notebook_output is None:  # else it is apart from what is written
            self._write("\r" + " " * self._length + "\r")
            self._length = 0


@contextlib.contextmanager
def write_above_status_line(stream: TextIO | None = None) -> Iterator[None]:
    """Room for something else on the stream: what is drawn there comes after it."""
    stream = sys.stderr if stream is None else stream
    with STREAM_LOCK:
        for line in _active_lines:
            if line.stream is stream:
                line._clear()
        yield


def _is_interactive(stream: TextIO | None) -> bool:
    """Whether somebody sees the line change."""
    if multiprocessing.parent_process() is not None:
        return False  # workers of one terminal would write into each other's lines
    if is_notebook_stream(stream):
        return True
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False

"""Complete or not there at all: written beside its place, then moved."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a file, or a folder, to write in place of another one.

    Whoever looks at `path` finds all of it, or what was there before: it is written
    under another name beside it, and moved once all went well. After an error, or
    Ctrl-C, nothing is left behind.

    Parameters
    ----------
    path : str or path
        Where it is to be in the end. A link is followed, not replaced.

    Yields
    ------
    beside : Path
        Where to write it.

    Examples
    --------
    >>> import tempfile
    >>> from nystrom.sinks import replacing
    >>> place = Path(tempfile.mkdtemp()) / "page.html"
    >>> with replacing(place) as beside:
    ...     _ = beside.write_text("<p>all of it</p>")
    >>> [file.name for file in place.parent.iterdir()]
    ['page.html']
    """
    place = Path(os.path.realpath(path))
    beside = name_beside(place)
    try:
        yield beside
        move(beside, place)
    finally:
        discard(beside)


def name_beside(path: Path) -> Path:
    """A name in the same folder that nothing has, and that no listing shows."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def move(made: Path, path: Path) -> None:
    """Put a file, or a folder, in its place once it is on the disk."""
    for file in [made] if made.is_file() else made.rglob("*"):
        if file.is_file():
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
    if path.is_dir():  # no system call replaces a folder that has something in it
        old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
        os.replace(path, old)
        try:
            os.replace(made, path)
        except BaseException:
            os.replace(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.replace(made, path)
    if os.name == "posix":  # the name, too, is on the disk then
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def discard(made: Path) -> None:
    """Throw away what was written and not moved."""
    if made.is_dir():
        shutil.rmtree(made, ignore_errors=True)
    else:
        made.unlink(missing_ok=True)

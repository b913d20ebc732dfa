"""Text files as programs for tables write them: signs between values, encodings."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from .failures import CommandError

#: What is between values, by how a name ends, where the first line does not say.
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
#: Files that are compressed, by how their names end.
OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def opened(path: str | Path, mode: str = "rt", name: str | None = None) -> TextIO:
    """A text file, compressed where its name (or the `name` that it will have) says."""
    opener = OPENERS.get(Path(name or path).suffix.lower(), open)
    # Spreadsheets begin files with a mark, which is no part of the first name.
    encoding = "utf-8-sig" if "r" in mode else "utf-8"
    return opener(path, mode, encoding=encoding, newline="")


def separator_of(path: str) -> str:
    """What the name of a file says is between values."""
    ends = [end.lower() for end in Path(path).suffixes]
    return next((SEPARATORS[end] for end in ends if end in SEPARATORS), ",")


def separator_in(path: str, first_line: str | None = None) -> str:
    """What is between the names of a first line: European programs write semicolons."""
    usual = separator_of(path)
    if first_line is None:
        try:
            with opened(path) as text:
                first_line = next((line for line in text if line.strip()), "")
        except (UnicodeError, EOFError, OSError, lzma.LZMAError):
            return usual  # whoever reads all of it will tell
    outside = "".join(first_line.split('"')[::2])
    return max(",;\t|", key=lambda sign: (outside.count(sign), sign == usual))


def check_encoding(path: str) -> None:
    """Refuse text that is not UTF-8, with its line and what to do."""
    with OPENERS.get(Path(path).suffix.lower(), open)(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                wide = number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff")
                other = "UTF-16" if wide else "WINDOWS-1252"
                raise CommandError(
                    f"{path}, line {number}: this is not UTF-8 text, but perhaps "
                    f"{other}. Save it as UTF-8 (in a spreadsheet: as CSV UTF-8), or "
                    f"convert it: iconv -f {other} -t UTF-8 {path} > new.csv"
                ) from None

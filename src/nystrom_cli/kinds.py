"""What a file is, by its name."""

from __future__ import annotations

from pathlib import Path

from .failures import CommandError
from .plain_text import SEPARATORS

COMPRESSED = (".gz", ".bz2", ".xz")


def kind_of(path: str) -> str:
    """ "parquet" or "csv", by the name of a file; "-" is CSV."""
    ends = [end.lower() for end in Path(path).suffixes]
    if len(ends) > 1 and ends[-1] in COMPRESSED:
        ends = [end for end in ends[:-1] if end in SEPARATORS]
    if path == "-" or (ends and ends[-1] in SEPARATORS):
        return "csv"
    if ends and ends[-1] in (".parquet", ".pq"):
        return "parquet"
    raise CommandError(
        f"{path}: the name must say what the file is: .csv, .tsv, .csv.gz or .parquet; "
        '"-" is CSV from standard input or to standard output.'
    )


def shown(path: str) -> str:
    """What a table is called in messages."""
    return "Standard input" if path == "-" else path

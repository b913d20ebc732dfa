"""A file that is put in place when it is complete, or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacement_of(target: Path) -> Iterator[BinaryIO]:
    """A file to write, put in place of `target` if all went well, else removed."""
    temporary = target.with_name(f".{uuid.uuid4().hex}.nystrom.tmp")
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

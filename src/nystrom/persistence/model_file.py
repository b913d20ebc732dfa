"""The zip that a model file is: what it says of itself, and the estimator in it."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

from ..saved_names import python_name, to_python
from ..unpacking import UnpackingError, check_arrays, check_entries, check_schema
from .errors import ModelFileError

#: Counts up when a file can no longer be read by the versions before. Format 1, which
#: named modules, was never released.
FORMAT = 2
#: The entry that tells a model file from any other zip.
ABOUT = "nystrom.json"
#: What skops writes: which values there are, of which classes, and where their arrays.
SCHEMA = "schema.json"
#: The versions that a file tells.
WRITERS = ["nystrom", "scikit-learn", "numpy"]
PACKAGE = sys.modules["nystrom"]


def as_path(path: Any) -> Path:
    """A path to a file, as users pass one."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path is a str or a path such as pathlib.Path, not {type(path).__name__}."
        )
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    return Path(path)


def read_about(file: BinaryIO, path: Any) -> dict[str, Any]:
    """What `nystrom.json` says, if the file is whole and of a format known here."""
    begins, length = file.read(4), os.fstat(file.fileno()).st_size
    try:
        with ZipFile(file) as archive:
            check_entries(archive, length)
            entries = archive.namelist()
            broken = archive.testzip()  # reads all, and compares the checksums
            about = json.loads(archive.read(ABOUT)) if ABOUT in entries else {}
    except MemoryError:
        raise
    except UnpackingError as error:
        raise damaged(path, str(error)) from error
    except Exception as error:
        if b"PK\x03\x04".startswith(begins):
            raise damaged(path, f"it was cut short or changed ({error})") from error
        pickled = " It looks like a pickle, which can run any code."
        raise foreign(path, pickled if begins[0] == 0x80 else "") from None
    if broken is not None:
        raise damaged(path, f"{broken} in it is not as it was written")
    if ABOUT not in entries:
        by_skops = " It is a skops file without it: use skops.io.load."
        raise foreign(path, by_skops if SCHEMA in entries else "")
    number = about.get("format") if isinstance(about, dict) else None
    if type(number) is not int or number < 1:
        raise damaged(path, f"{ABOUT} in it has no format number")
    if number != FORMAT:
        old = f"No release wrote format {number}: fit the model again and save it."
        raise ModelFileError(
            f"{path} has format {number}, written by nystrom {about.get('nystrom')}; "
            f"nystrom {PACKAGE.__version__} reads format {FORMAT}. "
            + ("Upgrade nystrom." if number > FORMAT else old)
        )
    return about


def read_model(file: BinaryIO, allowed: Collection[str]) -> Any:
    """The estimator in a model file, if it needs no more than these names."""
    import skops.io

    schema = schema_of(file)
    check_schema(schema)
    with ZipFile(file) as archive:
        check_arrays(archive, schema)
    to_python(schema)
    # skops reads only whole files: the arrays are copied, once and in memory.
    copy = io.BytesIO()
    copied(file, copy, {SCHEMA: schema})
    return skops.io.load(copy, trusted=sorted(map(python_name, allowed)))


def schema_of(file: BinaryIO) -> dict[str, Any]:
    """Which values are in a file, of which classes."""
    with ZipFile(file) as archive:
        return json.loads(archive.read(SCHEMA))


def copied(source: BinaryIO, target: BinaryIO, entries: dict[str, Any]) -> None:
    """Copy a model file with these entries in place of its own, one by one."""
    with ZipFile(source) as old, ZipFile(target, "w") as new:
        for name in dict.fromkeys(old.namelist()):
            if name not in entries:
                new.writestr(name, old.read(name))
        for name, content in entries.items():
            new.writestr(name, json.dumps(content))


def damaged(path: Any, what: str) -> ModelFileError:
    """What is said of a file that is not as it was written."""
    return ModelFileError(
        f"{path} is damaged or incomplete: {what}. Copy it again from where it came, "
        "or save the model again."
    )


def foreign(path: Any, hint: str) -> ModelFileError:
    """What is said of a file that `save` has not written."""
    return ModelFileError(
        f"{path} is not a model file. load reads the files that nystrom.save wrote, "
        f"zip files with an entry {ABOUT}.{hint}"
    )

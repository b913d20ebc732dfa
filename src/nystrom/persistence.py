"""Model files: `save` writes a fitted estimator, `load` reads it and runs no code.

A model file is a skops zip, names and arrays instead of a pickle, with one more
entry, `nystrom.json`: format number and versions. Classes of this package go by the
names of `_model_schema.py`. Anything else that a file names is refused before it is
imported. A file is read back before it is put in place.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard
from zipfile import ZipFile

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from ._model_schema import (
    DamagedFileError,
    allowed_names,
    check_arrays,
    check_entries,
    check_schema,
    iter_nodes,
    python_name,
    to_python_names,
    to_saved_names,
)
from .estimators._progress import warn
from .sources.output import atomic_write

__all__ = [
    "FORMAT",
    "ModelFileError",
    "ModelVersionWarning",
    "UntrustedTypesError",
    "load",
    "save",
]


class ModelFileError(ValueError):
    """Raised if a file is damaged, of another format, or not a model file."""


class UntrustedTypesError(ValueError):
    """Raised if a model file needs classes or functions that are not trusted.

    Attributes
    ----------
    names : list of str
        Full names of these classes and functions.
    """

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class ModelVersionWarning(InconsistentVersionWarning):
    """Warns that another version of nystrom or scikit-learn wrote a model file.

    It is a subclass of scikit-learn's `InconsistentVersionWarning`.
    """

    def __init__(self, message: str) -> None:
        Warning.__init__(self, message)

    __str__ = Warning.__str__


#: Counts up when a file can no longer be read by the versions before. Format 1, which
#: named modules, was never released.
FORMAT = 2
#: The entry that distinguishes a model file from any other zip.
METADATA_ENTRY = "nystrom.json"
#: What skops writes: which values there are, of which classes, and where their arrays.
SCHEMA_ENTRY = "schema.json"


def _current_versions() -> dict[str, str]:
    """The versions that a file records."""
    return {
        "nystrom": sys.modules["nystrom"].__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _is_file_object(path: Any) -> TypeGuard[BinaryIO]:
    """Whether this is an open file of bytes, or something like it."""
    is_text = isinstance(path, io.TextIOBase)
    return hasattr(path, "read") and hasattr(path, "write") and not is_text


def check_path(path: Any) -> Path:
    """A path to a file, as users pass one."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            "path is a str or a path such as pathlib.Path, or a file that is open in "
            f"binary mode, not {type(path).__name__}."
        )
    if "://" in str(path):
        raise ValueError(
            f"{path} is a URL; open it, such as by fsspec.open(url, 'wb'), and pass "
            "the open file."
        )
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    return Path(path)


def read_metadata(file: BinaryIO, path: Any) -> dict[str, Any]:
    """What `nystrom.json` says, if the file is whole and of a format known here."""
    head, n_bytes = file.read(4), file.seek(0, os.SEEK_END)
    try:
        with ZipFile(file) as archive:
            check_entries(archive, n_bytes)
            bad_entry = archive.testzip()  # reads all, and compares the checksums
            is_model = METADATA_ENTRY in archive.namelist()
            metadata = json.loads(archive.read(METADATA_ENTRY)) if is_model else {}
    except (MemoryError, DamagedFileError):
        raise
    except Exception as error:
        if b"PK\x03\x04".startswith(head):
            raise DamagedFileError(f"it was cut short or changed ({error})") from error
        bad_entry, is_model, metadata = None, False, {}
    if bad_entry is not None:
        raise DamagedFileError(f"{bad_entry} in it is not as it was written")
    if not is_model:
        raise ModelFileError(
            f"{path} is not a model file. load reads the files that nystrom.save "
            f"wrote, zip files with an entry {METADATA_ENTRY}. For others use the "
            "library that wrote them."
        )
    format_number = metadata.get("format") if isinstance(metadata, dict) else None
    if type(format_number) is not int or format_number < 1:
        raise DamagedFileError(f"{METADATA_ENTRY} in it has no format number")
    if format_number != FORMAT:
        raise ModelFileError(
            f"{path} has format {format_number}, written by nystrom "
            f"{metadata.get('nystrom')}; nystrom {_current_versions()['nystrom']} "
            f"reads format {FORMAT}. Load it with a version that reads its format, or "
            "fit the model again and save it."
        )
    return metadata


def read_model(file: BinaryIO, allowed: Collection[str]) -> Any:
    """The estimator in a model file, if it needs no more than these names."""
    import skops.io

    schema = read_schema(file)
    check_schema(schema)
    with ZipFile(file) as archive:
        check_arrays(archive, schema)
    to_python_names(schema)
    # skops reads only whole files: the arrays are copied, once and in memory.
    copy = io.BytesIO()
    copy_with_entries(file, copy, {SCHEMA_ENTRY: schema})
    return skops.io.load(copy, trusted=sorted(map(python_name, allowed)))


def read_schema(file: BinaryIO) -> dict[str, Any]:
    """Which values are in a file, of which classes."""
    with ZipFile(file) as archive:
        return json.loads(archive.read(SCHEMA_ENTRY))


def copy_with_entries(
    source: BinaryIO, target: BinaryIO, entries: dict[str, Any]
) -> None:
    """Copy a model file with these entries in place of its own, one by one."""
    with ZipFile(source) as old, ZipFile(target, "w") as new:
        for name in dict.fromkeys(old.namelist()):
            if name not in entries:
                new.writestr(name, old.read(name))
        for name, content in entries.items():
            new.writestr(name, json.dumps(content))


def save(estimator: Any, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Save an estimator to a file that `load` reads.

    The file is written completely or not at all: it is written beside `path`, read
    back, and then moved into place.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator: one of this package, or a pipeline or search with
        one inside. Functions, such as your own kernel, are saved by name and must be
        defined at the top level of a module.
    path : str, path-like or binary file
        File to write; an existing one is replaced. An open file, such as
        `io.BytesIO()`, is written from its current position.

    See Also
    --------
    load : Read the file.
    export_onnx : A graph that runs without Python.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import Nystroem, load, save
    >>> X, y = load_digits(return_X_y=True)
    >>> features = Nystroem(gamma=1e-3, n_components=50, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(features, Path(folder) / "digits.nystrom")
    ...     loaded = load(Path(folder) / "digits.nystrom")
    >>> bool((loaded.transform(X) == features.transform(X)).all())
    True
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        kind = "a class" if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"save takes a scikit-learn estimator, not {kind}; for other objects use "
            "numpy.save or skops.io.dump."
        )
    if _is_file_object(path):
        buffer = io.BytesIO()
        _write_model(estimator, buffer)
        path.write(buffer.getbuffer())
        return
    target = check_path(path)
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The folder {folder} does not exist; create it first, or save to a "
            "folder that exists."
        )
    try:
        with atomic_write(target) as temporary, open(temporary, "x+b") as file:
            _write_model(estimator, file)
    except Exception as error:
        interrupt = _find_interrupt(error)
        if interrupt is None:
            raise
        raise interrupt from None


def _find_interrupt(error: BaseException | None) -> BaseException | None:
    """Ctrl-C, where that was the reason: a zip that is not finished complains of it."""
    while isinstance(error, Exception):
        error = error.__cause__ or error.__context__
    return error


def _write_model(estimator: Any, file: BinaryIO) -> None:
    """Write the model file, and make sure that it can be read."""
    import skops.io

    name = type(estimator).__name__
    metadata = {"format": FORMAT, **_current_versions(), "estimator": name}
    dumped = io.BytesIO()
    with _explain_errors(name):
        skops.io.dump(estimator, dumped)
    schema = read_schema(dumped)
    _check_recoverable(schema, name)
    to_saved_names(schema, name)
    entries = {SCHEMA_ENTRY: schema, METADATA_ENTRY: metadata}
    copy_with_entries(dumped, file, entries)
    dumped.close()  # its memory is needed for reading
    with _explain_errors(name):
        # Some of what skops writes it cannot read: better found now than later.
        read_model(file, skops.io.get_untrusted_types(file=file))


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    """Whatever skops says about a thing it cannot save, as one kind of error."""
    try:
        yield
    except (OSError, MemoryError, Warning):
        raise
    except Exception as error:
        raise TypeError(
            f"This {name} cannot be saved, as it holds something that cannot be "
            f"written without pickle: {error}. Remove it, or use pickle or joblib."
        ) from error


def _check_recoverable(schema: dict[str, Any], name: str) -> None:
    """Refuse what skops saves by a name, or as text, that does not lead back to it."""
    for path, node in iter_nodes(schema, name):
        if node["__loader__"] in ("FunctionNode", "TypeNode"):
            module = sys.modules.get(node["__module__"])
            value = getattr(module, node["__class__"], None)
            # The object itself lives on in the estimator, so its id is still its own.
            if id(value) != node["__id__"]:
                raise TypeError(
                    f"{path} is {node['__module__']}.{node['__class__']}, which "
                    "cannot be found again by that name: a lambda, or defined inside "
                    "a function or class. Define it at the top level of a module."
                )
        elif node["__loader__"] == "DictNode":
            key_types = [key["__class__"] for key in node["key_types"]["content"]]
            # bool("False") is True, None has no text, and 1 and "1" have the same.
            if {"bool", "bool_", "NoneType"} & {*key_types} or len(key_types) != len(
                node["content"]
            ):
                raise TypeError(
                    f"{path} is a dict whose keys cannot be saved as text; use only "
                    "str, or only whole numbers, as keys."
                )


def load(
    path: str | os.PathLike[str] | BinaryIO, *, trusted: Collection[str] = ()
) -> Any:
    """Load an estimator that `save` wrote.

    No code runs except that of this package, NumPy, SciPy and scikit-learn, and of what
    `trusted` names.

    Parameters
    ----------
    path : str, path-like or binary file
        File to read. An open file is read from its current position.
    trusted : sequence of str, default=()
        Full names of further classes and functions that the file may use, such as
        "my_module.my_kernel". Their modules are imported. A file that needs others is
        refused, and the error names them.

    Returns
    -------
    estimator : estimator
        The estimator. On the same machine its output is the same to the last bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another format, or not a model file.
    UntrustedTypesError
        If the file needs a class or function that is not trusted.

    Warns
    -----
    ModelVersionWarning
        If another version of nystrom or scikit-learn wrote the file.

    See Also
    --------
    save : Write a file; the example there loads it.

    Examples
    --------
    >>> import io
    >>> from nystrom import KernelPCA, load, save
    >>> file = io.BytesIO()
    >>> save(KernelPCA(2, kernel="rbf"), file)
    >>> _ = file.seek(0)
    >>> load(file)
    KernelPCA(kernel='rbf', n_components=2)
    """
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    is_collection = isinstance(trusted, Collection) and not isinstance(trusted, str)
    if not is_collection or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted={trusted!r} is not allowed; trusted is a sequence of full names, "
            'such as ["my_module.my_kernel"].'
        )
    opened: BinaryIO
    if _is_file_object(path):
        opened = io.BytesIO(path.read())
    elif check_path(path).exists():
        opened = open(check_path(path), "rb")  # noqa: SIM115 (closed below)
    else:
        raise FileNotFoundError(
            f"There is no file {path}; give the path of a file that save wrote."
        )
    allowed = {*trusted, *allowed_names()}
    metadata: dict[str, Any] = {}
    with opened as file:
        try:
            metadata = read_metadata(file, path)
            estimator = read_model(file, allowed)
            _warn_if_versions_differ(metadata, path)
            return estimator
        except UntrustedTypesFoundException:
            names = sorted(set(skops.io.get_untrusted_types(file=file)) - allowed)
        except (MemoryError, Warning, ModelFileError):
            raise
        except DamagedFileError as error:
            raise ModelFileError(
                f"{path} is damaged or incomplete: {error}. Copy it again, or save "
                "the model again."
            ) from error
        except Exception as error:
            recorded = (name for name in _current_versions() if name in metadata)
            versions = ", ".join(f"{name} {metadata[name]}" for name in recorded)
            raise ModelFileError(
                f"{path} is complete, but cannot be loaded here: {error}. It was "
                f"saved by {versions}; load it with these versions, and with the "
                "modules of trusted names on the path."
            ) from error
    listed = ", ".join(f'"{name}"' for name in names)
    raise UntrustedTypesError(
        f"{path} uses {', '.join(names)}, which is not trusted. If you know the "
        f"origin of the file and what it uses, pass trusted=[{listed}].",
        tuple(names),
    )


def _warn_if_versions_differ(metadata: dict[str, Any], path: Any) -> None:
    """Warn where other versions wrote the file, which may understand it otherwise."""
    current = _current_versions()
    differing = [
        f"{name} {metadata.get(name)} (here {current[name]})"
        for name in ("nystrom", "scikit-learn")
        if metadata.get(name) != current[name]
    ]
    if differing:
        warn(
            f"{path} was saved by {' and '.join(differing)}. Its predictions may "
            "differ, or break. Load it with the version that saved it, or fit the "
            "model again and save it.",
            ModelVersionWarning,
        )

"""Model files: `save` writes a fitted estimator, `load` reads it and runs no code.

A model file is a zip as skops writes it, names and arrays instead of a pickle, with one
more entry, `nystrom.json`: the number of the format and the versions that wrote it.
Classes of this package go by the names of `saved_names`, in place of their modules.
What may be in a file is decided by exact names, these and those of scikit-learn's
estimators; whatever else a file names is refused before any of it is imported.
"""

from __future__ import annotations

import io
import json
import os
import sys
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from .edge.warnings import warn
from .saved_names import allowed_names, parts, python_name, to_python, to_saved
from .unpacking import UnpackingError, check_arrays, check_entries, check_schema

#: Counts up when a file can no longer be read by the versions before. Format 1, which
#: named modules, was never released.
FORMAT = 2
#: The entry that tells a model file from any other zip.
ABOUT = "nystrom.json"
#: What skops writes: which values there are, of which classes, and where their arrays.
SCHEMA = "schema.json"
_PACKAGE = sys.modules["nystrom"]
_WRITERS = ["nystrom", "scikit-learn", "numpy"]


class ModelFileError(ValueError):
    """A file that is damaged, of another format, or not a model file."""


class UntrustedTypesError(ValueError):
    """A model file needs classes or functions that nobody said to trust: `names`."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class ModelVersionWarning(InconsistentVersionWarning):
    """A model file was written by another version of nystrom or of scikit-learn.

    Whoever has an eye on scikit-learn's `InconsistentVersionWarning` sees it too.
    """

    def __init__(self, message: str) -> None:
        Warning.__init__(self, message)

    __str__ = Warning.__str__


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Save an estimator, fitted or not, to a file that `load` reads.

    The file is complete or it is not there: it is written beside `path`, read back, and
    only then put in place of what was there before.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator: one of this package, or a pipeline or search with
        one inside. Functions in it, such as a kernel of your own, are saved by name, so
        they must be defined at the top level of a module.
    path : str or path
        The file to write; one that exists is replaced.

    See Also
    --------
    load : Read the file.

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
        given = "a class" if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"save takes a scikit-learn estimator, not {given}; for other objects use "
            "numpy.save or skops.io.dump."
        )
    # A link is followed, not replaced.
    target = Path(os.path.realpath(_as_path(path)))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist; make it first, or save to a "
            "folder that exists."
        )
    with replacement_of(target) as file:
        _write(estimator, file)


def load(path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> Any:
    """Load an estimator that `save` wrote.

    No code runs but that of this package, NumPy, SciPy and scikit-learn, and of what
    `trusted` names.

    Parameters
    ----------
    path : str or path
        The file.
    trusted : sequence of str, default=()
        The full names of further classes and functions that the file may use, such as
        "my_module.my_kernel". Their modules are imported. A file that needs others is
        refused, and the error names them.

    Returns
    -------
    estimator : estimator
        As it was saved; its output is the same to the last bit on the same machine.

    See Also
    --------
    save : Write such a file; the example there loads it.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another format, or not a model file.
    UntrustedTypesError
        If the file needs a class or function that is not trusted.

    Warns
    -----
    ModelVersionWarning
        If another version of nystrom or scikit-learn wrote the file. It is a subclass
        of scikit-learn's `InconsistentVersionWarning`, by which parts of scikit-learn
        in the file warn by themselves.
    """
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    several = isinstance(trusted, Collection) and not isinstance(trusted, str)
    if not several or not all(isinstance(name, str) for name in trusted):
        raise TypeError(
            f"trusted={trusted!r} is not allowed; trusted is a sequence of full names, "
            'such as ["my_module.my_kernel"].'
        )
    source = _as_path(path)
    if not source.exists():
        raise FileNotFoundError(
            f"There is no file {path}; give the path of a file that save wrote."
        )
    allowed = {*trusted, *allowed_names()}
    with open(source, "rb") as file:
        about = _read_about(file, path)
        try:
            estimator = _read(file, allowed)
            _warn_of_versions(about, path)
            return estimator
        except UntrustedTypesFoundException:
            names = sorted(set(skops.io.get_untrusted_types(file=file)) - allowed)
        except (MemoryError, Warning):
            raise
        except UnpackingError as error:
            raise _damaged(path, str(error)) from error
        except Exception as error:
            versions = ", ".join(f"{k} {v}" for k, v in about.items() if k in _WRITERS)
            raise ModelFileError(
                f"{path} is whole, but cannot be loaded here: {error}. It was saved "
                f"by {versions}; load it with these versions, and with the modules of "
                "trusted names on the path."
            ) from error
    listed = ", ".join(f'"{name}"' for name in names)
    raise UntrustedTypesError(
        f"{path} uses {', '.join(names)}, which a model file may not use unless you "
        "say so. If you know where the file comes from, and what these do, pass "
        f"trusted=[{listed}].",
        tuple(names),
    )


def _warn_of_versions(about: dict[str, Any], path: Any) -> None:
    """Say so where other versions wrote the file, which may understand it otherwise."""
    here = {"nystrom": _PACKAGE.__version__, "scikit-learn": sklearn.__version__}
    others = {name: about.get(name) for name in here if about.get(name) != here[name]}
    if others:
        then = " and ".join(f"{name} {version}" for name, version in others.items())
        now = " and ".join(f"{name} {here[name]}" for name in others)
        warn(
            f"{path} was saved by {then}; here is {now}. What it answers may differ, "
            "or break. Load it with the version that saved it, or fit the model again "
            "and save it.",
            ModelVersionWarning,
        )


def _as_path(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path is a str or a path such as pathlib.Path, not {type(path).__name__}."
        )
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; give the name of a file in it.")
    return Path(path)


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


def _write(estimator: Any, file: BinaryIO) -> None:
    """Write the model file, and make sure that it can be read."""
    import skops.io

    name = type(estimator).__name__
    versions = [_PACKAGE.__version__, sklearn.__version__, np.__version__]
    about = {"format": FORMAT, **dict(zip(_WRITERS, versions, strict=True))}
    dumped = io.BytesIO()
    with _explaining(name):
        skops.io.dump(estimator, dumped)
    schema = _schema_of(dumped)
    _refuse_what_is_lost(schema, name)
    to_saved(schema, name)
    _copy(dumped, file, {SCHEMA: schema, ABOUT: {**about, "estimator": name}})
    dumped.close()  # its memory is needed for reading
    with _explaining(name):
        # Some of what skops writes it cannot read: better found now than later.
        _read(file, skops.io.get_untrusted_types(file=file))


def _read(file: BinaryIO, allowed: Collection[str]) -> Any:
    """The estimator in a model file, if it needs no more than these names."""
    import skops.io

    schema = _schema_of(file)
    check_schema(schema)
    with ZipFile(file) as archive:
        check_arrays(archive, schema)
    to_python(schema)
    # skops reads only whole files: the arrays are copied, once and in memory.
    copy = io.BytesIO()
    _copy(file, copy, {SCHEMA: schema})
    return skops.io.load(copy, trusted=sorted(map(python_name, allowed)))


def _schema_of(file: BinaryIO) -> dict[str, Any]:
    with ZipFile(file) as archive:
        return json.loads(archive.read(SCHEMA))


def _copy(source: BinaryIO, target: BinaryIO, entries: dict[str, Any]) -> None:
    """Copy a model file with these entries in place of its own, one by one."""
    with ZipFile(source) as old, ZipFile(target, "w") as new:
        for name in dict.fromkeys(old.namelist()):
            if name not in entries:
                new.writestr(name, old.read(name))
        for name, content in entries.items():
            new.writestr(name, json.dumps(content))


@contextmanager
def _explaining(name: str) -> Iterator[None]:
    """Whatever skops says about a thing it cannot save, as one kind of error."""
    try:
        yield
    except (OSError, MemoryError, Warning):
        raise
    except RecursionError as error:
        raise TypeError(
            f"This {name} cannot be saved, as something in it leads back to itself, "
            "which is what set_fit_request and the like leave behind. Save it before "
            "these are called, and call them after load; or use pickle or joblib."
        ) from error
    except Exception as error:
        raise TypeError(
            f"This {name} cannot be saved, as it holds something that cannot be "
            f"written without pickle: {error}. Take it out, or use pickle or joblib."
        ) from error


def _refuse_what_is_lost(schema: dict[str, Any], name: str) -> None:
    """Refuse what skops saves by a name, or as text, that does not lead back to it."""
    for where, part in parts(schema, name):
        if part["__loader__"] in ("FunctionNode", "TypeNode"):
            module = sys.modules.get(part["__module__"])
            found = getattr(module, part["__class__"], None)
            # The object itself lives on in the estimator, so its id is still its own.
            if id(found) != part["__id__"]:
                raise TypeError(
                    f"{where} is {part['__module__']}.{part['__class__']}, which "
                    "cannot be found again by that name: a lambda, or defined inside "
                    "a function or class. Define it at the top level of a module."
                )
        elif part["__loader__"] == "DictNode":
            kinds = [key["__class__"] for key in part["key_types"]["content"]]
            # bool("False") is True, None has no text, and 1 and "1" have the same.
            if {"bool", "bool_", "NoneType"} & {*kinds} or len(kinds) != len(
                part["content"]
            ):
                raise TypeError(
                    f"{where} is a dict whose keys cannot be saved as text; use only "
                    "str, or only whole numbers, as keys."
                )


def _read_about(file: BinaryIO, path: Any) -> dict[str, Any]:
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
        raise _damaged(path, str(error)) from error
    except Exception as error:
        if b"PK\x03\x04".startswith(begins):
            raise _damaged(path, f"it was cut short or changed ({error})") from error
        pickled = " It looks like a pickle, which can run any code."
        raise _foreign(path, pickled if begins[0] == 0x80 else "") from None
    if broken is not None:
        raise _damaged(path, f"{broken} in it is not as it was written")
    if ABOUT not in entries:
        by_skops = " It is a skops file without it: use skops.io.load."
        raise _foreign(path, by_skops if SCHEMA in entries else "")
    number = about.get("format") if isinstance(about, dict) else None
    if type(number) is not int or number < 1:
        raise _damaged(path, f"{ABOUT} in it has no format number")
    if number != FORMAT:
        old = f"No release wrote format {number}: fit the model again and save it."
        raise ModelFileError(
            f"{path} has format {number}, written by nystrom {about.get('nystrom')}; "
            f"nystrom {_PACKAGE.__version__} reads format {FORMAT}. "
            + ("Upgrade nystrom." if number > FORMAT else old)
        )
    return about


def _damaged(path: Any, what: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is damaged or incomplete: {what}. Copy it again from where it came, "
        "or save the model again."
    )


def _foreign(path: Any, hint: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is not a model file. load reads the files that nystrom.save wrote, "
        f"zip files with an entry {ABOUT}.{hint}"
    )

"""`save`: an estimator to a file that was read back before it is put in place."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import sklearn

from ..saved_names import parts, to_saved
from ..sinks import replacing
from .model_file import (
    ABOUT,
    FORMAT,
    PACKAGE,
    SCHEMA,
    WRITERS,
    as_path,
    copied,
    read_model,
    schema_of,
)


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
    target = as_path(path)
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The folder {folder} does not exist; make it first, or save to a folder "
            "that exists."
        )
    try:
        with replacing(target) as beside, open(beside, "x+b") as file:
            _write(estimator, file)
    except Exception as error:
        stopped = _interrupt_behind(error)
        if stopped is None:
            raise
        raise stopped from None


def _interrupt_behind(error: BaseException | None) -> BaseException | None:
    """Ctrl-C, where that was the reason: a zip that is not finished complains of it."""
    while isinstance(error, Exception):
        error = error.__cause__ or error.__context__
    return error


def _write(estimator: Any, file: BinaryIO) -> None:
    """Write the model file, and make sure that it can be read."""
    import skops.io

    name = type(estimator).__name__
    versions = [PACKAGE.__version__, sklearn.__version__, np.__version__]
    about = {"format": FORMAT, **dict(zip(WRITERS, versions, strict=True))}
    dumped = io.BytesIO()
    with _explaining(name):
        skops.io.dump(estimator, dumped)
    schema = schema_of(dumped)
    _refuse_what_is_lost(schema, name)
    to_saved(schema, name)
    copied(dumped, file, {SCHEMA: schema, ABOUT: {**about, "estimator": name}})
    dumped.close()  # its memory is needed for reading
    with _explaining(name):
        # Some of what skops writes it cannot read: better found now than later.
        read_model(file, skops.io.get_untrusted_types(file=file))


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

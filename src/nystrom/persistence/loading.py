"""`load`: an estimator from a file, and no code but what is trusted."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import sklearn

from ..edge.warnings import warn
from ..saved_names import allowed_names
from ..unpacking import UnpackingError
from .errors import ModelFileError, ModelVersionWarning, UntrustedTypesError
from .model_file import PACKAGE, WRITERS, as_path, damaged, read_about, read_model


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
    source = as_path(path)
    if not source.exists():
        raise FileNotFoundError(
            f"There is no file {path}; give the path of a file that save wrote."
        )
    allowed = {*trusted, *allowed_names()}
    with open(source, "rb") as file:
        about = read_about(file, path)
        try:
            estimator = read_model(file, allowed)
            _warn_of_versions(about, path)
            return estimator
        except UntrustedTypesFoundException:
            names = sorted(set(skops.io.get_untrusted_types(file=file)) - allowed)
        except (MemoryError, Warning):
            raise
        except UnpackingError as error:
            raise damaged(path, str(error)) from error
        except Exception as error:
            versions = ", ".join(f"{k} {v}" for k, v in about.items() if k in WRITERS)
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
    here = {"nystrom": PACKAGE.__version__, "scikit-learn": sklearn.__version__}
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

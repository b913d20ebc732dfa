"""`show_versions`: the versions to put into a bug report."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from threadpoolctl import threadpool_info

#: What this package is built on, then what it works with where it is installed.
REQUIRED_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
    "array-api-compat",
    "skops",
)
OPTIONAL_PACKAGES = (
    "pyarrow",
    "h5py",
    "zarr",
    "dask",
    "distributed",
    "torch",
    "matplotlib",
)


def show_versions() -> None:
    """Print the versions of Python, this package and its dependencies.

    Include the output in a bug report. Nothing is imported to find the versions.

    Examples
    --------
    >>> import nystrom
    >>> nystrom.show_versions()  # doctest: +ELLIPSIS
    nystrom ...
    """
    rows = {
        "nystrom": sys.modules["nystrom"].__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "machine": platform.platform(),
        **{name: _installed_version(name) or "missing" for name in REQUIRED_PACKAGES},
        **{
            name: found
            for name in OPTIONAL_PACKAGES
            if (found := _installed_version(name))
        },
    }
    for library in threadpool_info():
        version = f" {library['version']}" if library.get("version") else ""
        threads = f"{library['num_threads']} threads"
        rows[f"{library['user_api']}: {library['prefix']}"] = f"{threads}{version}"
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

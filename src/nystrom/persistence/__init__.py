"""Model files: `save` writes a fitted estimator, `load` reads it and runs no code.

A model file is a skops zip, names and arrays instead of a pickle, with one more
entry, `nystrom.json`: format number and versions. Classes of this package go by the
names of `persistence.table`. Anything else that a file names is refused before it is
imported.
"""

from .files import (
    FORMAT,
    ModelFileError,
    ModelVersionWarning,
    UntrustedTypesError,
    load,
    save,
)

__all__ = [
    "FORMAT",
    "ModelFileError",
    "ModelVersionWarning",
    "UntrustedTypesError",
    "load",
    "save",
]

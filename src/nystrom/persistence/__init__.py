"""Model files: `save` writes a fitted estimator, `load` reads it and runs no code.

A model file is a zip as skops writes it, names and arrays instead of a pickle, with one
more entry, `nystrom.json`: the number of the format and the versions that wrote it.
Classes of this package go by the names of `saved_names`, in place of their modules.
What may be in a file is decided by exact names, these and those of scikit-learn's
estimators; whatever else a file names is refused before any of it is imported.
"""

from .errors import ModelFileError, ModelVersionWarning, UntrustedTypesError
from .loading import load
from .model_file import FORMAT
from .saving import save

__all__ = [
    "FORMAT",
    "ModelFileError",
    "ModelVersionWarning",
    "UntrustedTypesError",
    "load",
    "save",
]

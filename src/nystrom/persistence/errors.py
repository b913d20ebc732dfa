"""What is wrong with a model file, and what is amiss."""

from __future__ import annotations

from sklearn.exceptions import InconsistentVersionWarning


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

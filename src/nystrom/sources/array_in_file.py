"""Arrays in files that hold several: a matrix, and others with as many rows.

Columns of the matrix are numbers. The name of another array stands for its only column:
targets and weights mostly lie there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .file_errors import FileError, no_numbers
from .stored import Names, Stored, regular_bounds


class ArrayInFile(Stored):
    """The columns of one matrix of a file, and the other arrays beside it."""

    by_rows = True

    def __init__(self, path: str, dataset: str | None) -> None:
        super().__init__(path)
        with self.opened() as arrays:
            self.dataset = self._chosen(arrays, dataset)
            matrix = arrays[self.dataset]
            n_rows, width = matrix.shape
            self._dtypes = {
                name: np.dtype(array.dtype)
                for name, array in arrays.items()
                if name == self.dataset or array.shape in ((n_rows,), (n_rows, 1))
            }
            step = (getattr(matrix, "shards", None) or matrix.chunks or (1,))[0]
        self.names = tuple(range(width))
        self.bounds = regular_bounds(n_rows, step, width)
        beside = [repr(name) for name in self._dtypes if name != self.dataset]
        self.also = f", or the name of another array: {', '.join(beside)}"
        self.also = self.also if beside else ""

    @abstractmethod
    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """The arrays of the file by their names, while it is open."""
        yield {}

    @property
    def options(self) -> Hashable:
        return self.dataset

    def has(self, name: Any) -> bool:
        beside = isinstance(name, str) and name in self._dtypes
        return name in self.names or (beside and name != self.dataset)

    def dtype(self, names: Names) -> np.dtype:
        kinds = {name: self._dtypes[self._array_of(name)] for name in names}
        for name, kind in kinds.items():
            if kind.kind not in "biuf":
                raise no_numbers(self.path, name, kind)
        return np.result_type(*kinds.values())

    def read(self, chunk: int, names: Names) -> np.ndarray:
        start, stop = map(int, self.bounds[chunk : chunk + 2])
        numbers = [name for name in names if name in self.names]
        columns: dict[Any, np.ndarray] = {}
        with self.opened() as arrays:
            if numbers:
                least, most = min(numbers), max(numbers) + 1
                block = arrays[self.dataset][start:stop, least:most]
                if tuple(range(least, most)) == names:
                    self._check_chunks(arrays, names, start, stop)
                    return block
                columns = {name: block[:, name - least] for name in numbers}
            for name in set(names) - set(numbers):
                columns[name] = arrays[name][start:stop].reshape(-1)
            self._check_chunks(arrays, names, start, stop)
        return np.stack([columns[name] for name in names], axis=1)

    def _check_chunks(
        self, arrays: dict[str, Any], names: Names, start: int, stop: int
    ) -> None:
        """After rows were read: refuse what has changed, where chunks are files."""

    def _array_of(self, name: Any) -> str:
        return name if isinstance(name, str) else self.dataset

    def _chosen(self, arrays: dict[str, Any], dataset: str | None) -> str:
        """The matrix: the one that is named, or the only one there is."""
        matrices = [name for name, array in arrays.items() if len(array.shape) == 2]
        if dataset is not None:
            dataset = dataset.strip("/")
        if dataset in matrices:
            return dataset  # type: ignore[return-value]
        listed = ", ".join(f"{n!r} {tuple(a.shape)}" for n, a in arrays.items())
        if dataset is None and len(matrices) > 1:  # (n, 1) targets are none
            matrices = [name for name in matrices if arrays[name].shape[1] > 1]
        if dataset is None and len(matrices) == 1:
            return matrices[0]
        raise FileError(
            f"{self.path}: dataset={dataset!r} names no matrix of rows; there are "
            f"{listed or 'no arrays'}. Give dataset= one of two dimensions."
        )

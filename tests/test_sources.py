"""Every source gives the same rows, whatever they are stored in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from lists import SOURCES

from nystrom import sources
from nystrom.sources import CachedRows, Subset, as_source
from nystrom.sources import base as row_weights

#: Rows of whole numbers, no two alike, exact in every dtype; some zeros for CSR.
ROWS = np.arange(35).reshape(7, 5) % 7


@dataclass
class Opaque:
    """An object that NumPy knows nothing of."""

    value: int


def memory_map(X, folder):
    np.save(folder / "rows.npy", X.astype(np.float32))
    return np.load(folder / "rows.npy", mmap_mode="r")


def between_numbers(X, _=None):
    """As in a message, whose memory begins anywhere."""
    return np.frombuffer(b"." + X.tobytes(), X.dtype, offset=1).reshape(X.shape)


#: name: (how ROWS are stored, the dtype of the rows that come back)
STORED: dict[str, tuple[Any, Any]] = {
    "float64": (lambda X, _: X.astype(np.float64), np.float64),
    "float32": (lambda X, _: X.astype(np.float32), np.float32),
    "float16": (lambda X, _: X.astype(np.float16), np.float32),
    "long double": (lambda X, _: X.astype(np.longdouble), np.float64),
    "int8": (lambda X, _: X.astype(np.int8), np.float64),
    "uint64": (lambda X, _: X.astype(np.uint64), np.float64),
    "big endian": (lambda X, _: X.astype(">f8"), np.float64),
    "Fortran order": (lambda X, _: np.asfortranarray(X, np.float32), np.float32),
    "between numbers": (lambda X, _: between_numbers(X * 1.0), np.float64),
    "every other row": (lambda X, _: np.repeat(X, 2, axis=0)[::2] * 1.0, np.float64),
    "every other column": (lambda X, _: np.repeat(X * 1.0, 2, axis=1)[:, ::2], float),
    "backwards": (lambda X, _: np.flip(X * 1.0).copy()[::-1, ::-1], np.float64),
    "read-only memory map": (memory_map, np.float32),
    "list of lists": (lambda X, _: X.tolist(), np.float64),
    "list of arrays": (lambda X, _: list(X.astype(np.float32)), np.float32),
    "array of numbers as objects": (lambda X, _: X.astype(object), np.float64),
    "pandas": (lambda X, _: pd.DataFrame(X.astype(np.float32)), np.float32),
    "pandas, mixed": (
        lambda X, _: pd.DataFrame(X).astype({0: "float32", 1: "Int64", 2: "float64"}),
        np.float64,
    ),
    "polars": (lambda X, _: pl.DataFrame(X.astype(np.float64)), np.float64),
    "csr": (lambda X, _: sp.csr_array(X.astype(np.float32)), np.float32),
    "csr matrix of integers": (lambda X, _: sp.csr_matrix(X), np.float64),
    "csc": (lambda X, _: sp.csc_array(X * 1.0), np.float64),
    "coo": (lambda X, _: sp.coo_array(X * 1.0), np.float64),
}


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


@pytest.mark.parametrize("kind", STORED)
def test_every_storage_gives_the_same_rows(kind, tmp_path):
    store, dtype = STORED[kind]
    source = as_source(store(ROWS, tmp_path))
    assert (source.n_rows, source.n_features) == ROWS.shape
    for start, stop in [(0, 7), (0, 1), (2, 6), (6, 7)]:
        rows = source.rows(start, stop)
        assert rows.dtype == dtype
        assert rows.dtype.isnative
        np.testing.assert_array_equal(dense(rows), ROWS[start:stop])
    for numbers in [[3], [6, 0, 2, 0], list(range(7)), []]:
        rows = source.take(np.array(numbers, dtype=int))
        assert rows.dtype == dtype
        np.testing.assert_array_equal(dense(rows), ROWS[numbers])
    if not sp.issparse(rows):
        # The layout decides how products round: rows one after the other, always, and
        # none that NumPy would copy first.
        for rows in (source.rows(1, 5), source.take(np.array([4, 1]))):
            assert rows.flags.c_contiguous
            assert rows.flags.aligned


def listed(rows):
    """Rows of whatever kind as a list, to compare."""
    if isinstance(rows, tuple):
        return [list(pair) for pair in zip(*map(listed, rows), strict=True)]
    return [np.asarray(row).tolist() for row in dense(rows)]


#: What the rows of a source are, where they are not those it was made of.
ARE_THEMSELVES = {
    "RowNumbers": list(range(7)),
    "Pair": [[row, row[::-1]] for row in ROWS.tolist()],
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_rows_that_it_is_asked_for(kind):
    source = SOURCES[kind](ROWS * 1.0)
    expected = ARE_THEMSELVES.get(kind, ROWS.tolist())
    assert source.n_rows == 7
    assert source.n_features in (5, None)
    assert as_source(source) is source
    for start, stop in [(0, 7), (0, 1), (2, 6), (6, 7), (3, 3)]:
        assert listed(source.rows(start, stop)) == expected[start:stop]
        assert listed(source.block(start, stop).X) == expected[start:stop]
    for numbers in [[3], [6, 0, 2, 0], list(range(7)), []]:
        found = source.take(np.array(numbers, dtype=int))
        assert listed(found) == [expected[i] for i in numbers]


#: A pair of blocks is not rows that could be held.
PARTS = [(kind, part) for kind in SOURCES for part in (Subset, CachedRows.of)]
PARTS.remove(("Pair", CachedRows.of))


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_every_source_has_parts(kind, part):
    source = SOURCES[kind](ROWS * 1.0).replace(weights=np.arange(7.0))
    expected = ARE_THEMSELVES.get(kind, ROWS.tolist())
    some = part(source, np.array([1, 4, 6]))
    assert (some.n_rows, some.n_features) == (3, source.n_features)
    assert listed(some.rows(0, 3)) == [expected[i] for i in (1, 4, 6)]
    assert listed(some.rows(1, 2)) == [expected[4]]
    assert listed(some.take(np.array([2, 0, 2]))) == [expected[i] for i in (6, 1, 6)]
    assert some.block(1, 3).weights.tolist() == [4, 6]
    assert some.is_weighted
    assert not part(source.replace(weights=None), np.array([1, 4, 6])).is_weighted


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_may_be_given_weights_and_targets(kind):
    source = SOURCES[kind](ROWS * 1.0)
    given = source.replace(weights=np.arange(7.0), targets=ROWS[:, :2])
    block = given.block(2, 5)
    assert block.start == 2
    assert block.weights.tolist() == [2, 3, 4]
    assert block.targets.tolist() == ROWS[2:5, :2].tolist()
    assert listed(block.X) == listed(source.rows(2, 5))
    assert given.is_weighted
    assert given.total_weight == 21
    assert given.weights_of(np.array([6, 0])).tolist() == [6, 0]
    assert source.targets is None
    assert as_source(source, np.ones(7)).block(1, 3).weights.tolist() == [1, 1]


@pytest.mark.parametrize("kind", SOURCES)
def test_rows_without_weights_count_once_and_take_no_memory(kind):
    source = SOURCES[kind](ROWS * 1.0)
    assert not source.is_weighted
    assert source.total_weight == 7
    some = source.weights_of(np.array([6, 0]))
    for weights in (source.weights, source.block(2, 5).weights, some):
        assert set(weights.tolist()) == {1.0}
        assert weights.strides == (0,)
    assert (len(source.weights), len(some)) == (7, 2)
    assert len(source.block(2, 5).weights) == 3


def test_arrays_that_need_no_copy_are_not_copied():
    X = ROWS * 1.0
    assert np.shares_memory(as_source(X).rows(2, 5), X)


def test_a_memory_map_stays_on_disk(tmp_path):
    mapped = memory_map(ROWS, tmp_path)
    source = as_source(mapped)
    assert source.X is mapped
    source.rows(0, 7)
    assert not mapped.flags.writeable


OBJECTS = {
    "strings": ["ACGT", "", "A", "AC"],
    "lists of different lengths": [[1], [1, 2], [], [3, 4, 5]],
    "text in lists of equal length": [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]],
    "objects": [Opaque(i) for i in range(4)],
    "dicts": [{"a": i} for i in range(4)],
    "tuple of strings": ("a", "b", "c", "d"),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_handed_out_as_they_are(kind):
    things = OBJECTS[kind]
    source = as_source(things)
    assert (source.n_rows, source.n_features) == (4, None)
    assert source.rows(1, 3) == list(things[1:3])
    assert source.take(np.array([3, 0, 3])) == [things[3], things[0], things[3]]
    subset = Subset(source, np.array([1, 3]))
    assert subset.rows(0, 2) == [things[1], things[3]]
    assert subset.take(np.array([1])) == [things[3]]


@pytest.mark.parametrize(
    "column",
    [np.array(["a", "b"]), np.array(["a", None], object), pd.Series(["a", "b"])],
)
def test_a_column_of_text_is_rows_of_objects(column):
    source = as_source(column)
    assert isinstance(source, sources.ObjectRows)
    assert source.rows(0, 2) == list(column)


def test_one_weight_for_all_rows_counts():
    """Only ones cost nothing; twos, stored as one number too, do not count as ones."""
    twos = np.broadcast_to(np.float64(2.0), 5)
    assert row_weights.are_unit_weights(row_weights.unit_weights(5))
    assert not row_weights.are_unit_weights(twos)
    assert row_weights.weighted_sum(twos, np.ones(5)) == 10


def test_sparse_rows_are_canonical():
    """Others sort and add up in place, and would take the columns from the values."""
    X = sp.csr_array((np.arange(1.0, 5), [2, 0, 1, 1], [0, 2, 4]), shape=(2, 3))
    rows = as_source(X).rows(0, 2)
    assert rows.has_canonical_format
    np.testing.assert_array_equal(rows.toarray(), [[2, 0, 1], [0, 7, 0]])
    np.testing.assert_array_equal(X.indices, [2, 0, 1, 1])

"""Model files that would take far more to read than they have: refused before."""

import json
import re
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.damage import archive, arrays, schema

from nystrom import KernelKMeans, KernelRidge, Nystroem, load, save
from nystrom.persistence import ModelFileError

X = np.random.default_rng(0).standard_normal((40, 3))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.nystrom"
    save(Nystroem(n_components=5, random_state=0).fit(X), path)
    return path


def refused(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match="is damaged or incomplete") as error:
        load(path)
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (archive.bomb, "in it is compressed"),
        (archive.overlapping, "entries declare|cut short or changed"),
        (schema.many_references, "belongs to several values"),
        (schema.doubling, "refer to each other"),
        (arrays.sparse_bomb, "unpacks from"),
    ],
    ids=lambda way: getattr(way, "__name__", ""),
)
def test_files_that_unpack_to_more_are_refused(way, message, path):
    data = path.read_bytes()
    for seed in range(5):
        refused(path, way(np.random.default_rng(seed), data), message)


@pytest.mark.parametrize("shape", [(10**18,), (10**9, 10**9), (-1,), (4, 3), (2**62,)])
def test_an_array_that_declares_more_than_there_is_is_refused(shape, path):
    entries = archive.entries_of(path.read_bytes())
    name = next(name for name in entries if name.endswith(".npy"))
    entries[name] = arrays.with_header(entries[name], shape=shape)
    refused(path, archive.zipped(entries), r"declares -?\d+ bytes of an array, but has")


def test_a_sparse_class_is_not_called(path):
    entries = archive.entries_of(path.read_bytes())
    number = schema.node("JsonNode", "builtins", "str", json.dumps([10**9, 1]))
    called = schema.node(
        "ConstructorFromReduceNode",
        "scipy.sparse._lil",
        "lil_array",
        schema.node("TupleNode", "builtins", "tuple", [number]),
    )
    entries["schema.json"] = json.dumps({**called, "protocol": 2})
    refused(path, archive.zipped(entries), "not a sparse matrix as save writes it")


def test_columns_that_a_matrix_does_not_have_are_refused(path):
    save(Nystroem(n_components=5, random_state=0).fit(sp.csr_array(X)), path)
    entries = archive.entries_of(path.read_bytes())
    (name,) = (name for name in entries if name.endswith(".npz"))
    path.with_suffix(".npz").write_bytes(entries[name])
    matrix = sp.load_npz(path.with_suffix(".npz"))
    matrix.indices[0] = 10**6
    sp.save_npz(path.with_suffix(".npz"), matrix)
    entries[name] = path.with_suffix(".npz").read_bytes()
    path.write_bytes(archive.zipped(entries))
    with pytest.raises(ModelFileError, match="indices"):
        load(path)


def test_files_that_save_wrote_are_as_they_were(path):
    # Values that are there twice, and a matrix that compresses well.
    rows = sp.csr_array(np.ones((3000, 2)))
    for model in (
        Nystroem(n_components=5, random_state=0).fit(rows),
        KernelRidge(n_landmarks=8, random_state=0).fit(X, X[:, 0]),
        Nystroem(kernel_params={"a": (X, X), "b": [X, (X,)]}),
    ):
        save(model, path)
        assert repr(load(path)) == repr(model)
    with zipfile.ZipFile(path) as written:
        assert len(written.namelist()) == 3  # X once


@pytest.mark.parametrize("kind", ["f8,i4", "O", "S3"])
def test_centres_of_another_type_do_not_end_the_process(kind, path):
    model = KernelKMeans(2, affinity_normalize=True, n_landmarks=8, random_state=0)
    save(model.fit(X), path)
    loaded = load(path)
    assert np.array_equal(loaded.predict(X), model.labels_)
    centers = loaded._clusters.centers.cluster_centers_
    loaded._clusters.centers.cluster_centers_ = np.zeros(centers.shape, kind)
    with suppress(TypeError, ValueError):
        loaded.predict(X)

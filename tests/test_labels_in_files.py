"""Targets that are columns of files: classes as text, several numbers, other views."""

import pickle

import numpy as np
import pandas as pd
import pytest
from files import FORMATS
from pyarrow import parquet
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
    sources,
)
from nystrom.sources import FileError

N_ROWS = 2500
KINDS = np.array(["ash", "beech", "zürgelbaum, hoch"])
ENDINGS = [".parquet", ".csv", ".arrow"]
pytestmark = pytest.mark.usefixtures("small_chunks")


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3))


@pytest.fixture
def labels(X):
    # Sorted by class, so that no block has all of them.
    order = np.argsort(np.abs(X[:, 0]), kind="stable")
    X[:] = X[order]
    return KINDS[np.searchsorted([0.4, 1.0], np.abs(X[:, 0]))]


def classifier(**options):
    given = {"kernel": "rbf", "gamma": 0.5, "n_landmarks": 40, "random_state": 0}
    return KernelRidgeClassifier(0.1, **{**given, **options})


def written(folder, ending, X, name="rows", **columns):
    path = folder / f"{name}{ending}"
    FORMATS[ending[1:]][1](path, X, 300, **columns)
    return path


# --- classes that are text ----------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_text_is_classes(ending, X, labels, tmp_path):
    path = written(tmp_path, ending, X, label=labels)
    source = sources.open(path, target="label")
    assert source.n_features == 3
    model = classifier().fit(source)
    expected = classifier().fit(X, labels)
    np.testing.assert_array_equal(model.classes_, KINDS)
    np.testing.assert_array_equal(model.landmarks_.indices, expected.landmarks_.indices)
    found = model.predict(source)
    np.testing.assert_array_equal(found, expected.predict(X))
    assert found.dtype.kind == "U"
    assert accuracy_score(labels, found) > 0.7
    assert model.score(source) == expected.score(X, labels)


@pytest.mark.parametrize("ending", ENDINGS)
def test_places_among_other_classes_are_not_taken_for_these(ending, rng, tmp_path):
    """A file that was read by itself, then beside one with classes before its own."""
    X = rng.standard_normal((600, 3))
    first = np.where(X[:300, 0] > 0, "cat", "dog")
    second = np.where(X[300:, 0] > 0, "ant", "cow")
    paths = [
        written(tmp_path, ending, X[:300], "f1", y=first),
        written(tmp_path, ending, X[300:], "f2", y=second),
    ]
    alone = sources.open(paths[0], target="y")
    some = np.array([3, 1, 2])
    before = alone.targets[:300], alone.targets[some]
    both = sources.open(paths, target="y")
    labels = both.targets.names[both.targets[:600][:, 0].astype(int)]
    np.testing.assert_array_equal(labels, np.append(first, second))
    labels = both.targets.names[both.targets[some][:, 0].astype(int)]
    np.testing.assert_array_equal(labels, first[some])
    assert both.targets.of.fingerprint() != alone.targets.of.fingerprint()
    again = sources.open(paths[0], target="y")
    np.testing.assert_array_equal(again.targets[:300], before[0])
    np.testing.assert_array_equal(again.targets[some], before[1])
    model = classifier().fit(both)
    expected = classifier().fit(X, np.append(first, second))
    np.testing.assert_array_equal(model.predict(both), expected.predict(X))


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_of_a_folder_have_one_list_of_classes(ending, X, labels, tmp_path):
    """The first of them has not all classes."""
    for part, rows in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        written(tmp_path, ending, X[rows], f"part{part}", label=labels[rows])
    source = sources.open(tmp_path, target="label")
    model = classifier().fit(source)
    np.testing.assert_array_equal(model.classes_, KINDS)
    np.testing.assert_array_equal(
        model.predict(X), classifier().fit(X, labels).predict(X)
    )
    several = sources.open(sorted(tmp_path.iterdir()), target="label")
    np.testing.assert_array_equal(classifier().fit(several).classes_, KINDS)


def test_sources_with_other_classes_are_not_stacked(X, labels, tmp_path):
    halves = np.array_split(np.arange(N_ROWS), 2)
    parts = [
        written(tmp_path, ".parquet", X[rows], f"part{i}", label=labels[rows])
        for i, rows in enumerate(halves)
    ]
    apart = [sources.open(path, target="label") for path in parts]
    with pytest.raises(ValueError, match="different texts as classes; open"):
        sources.open(apart)


def test_a_categorical_column_is_text(X, labels, tmp_path):
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(
        label=pd.Categorical(labels, categories=KINDS[::-1])
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    model = classifier().fit(sources.open(tmp_path / "rows.parquet", target="label"))
    np.testing.assert_array_equal(model.classes_, KINDS)
    np.testing.assert_array_equal(
        model.predict(X), classifier().fit(X, labels).predict(X)
    )


@pytest.mark.parametrize("model", [KernelRidge(), KernelRidgeCV(), KernelCCA()])
def test_text_is_no_number_to_be_predicted(model, X, labels, tmp_path):
    source = sources.open(
        written(tmp_path, ".parquet", X, label=labels), target="label"
    )
    with pytest.raises(ValueError, match=r"text \(such as 'ash'\).*Classifier"):
        model.fit(source)


@pytest.mark.parametrize("ending", ENDINGS)
def test_text_among_the_features_is_refused(ending, X, labels, tmp_path):
    path = written(tmp_path, ending, X, label=labels, y=X[:, 0])
    with pytest.raises(FileError, match=r"column 'label'.*(not numbers|not a number)"):
        KernelRidge(n_landmarks=5).fit(sources.open(path, target="y"))
    with pytest.raises(FileError, match="column 'label'"):
        sources.open(path, target=["label", "y"]).targets[:10]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_missing_label_is_named(ending, X, labels, tmp_path):
    labels = labels.astype(object)
    labels[1234] = None
    path = tmp_path / f"rows{ending}"
    frame = pd.DataFrame(X).rename(columns=str).assign(label=labels)
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    with pytest.raises(FileError, match="column 'label', row 1234: a value is missing"):
        sources.open(path, target="label")


def test_a_slip_among_numbers_is_no_text(X, tmp_path):
    y = X[:, 0].astype(str)
    y[7] = "1.2.3"
    path = written(tmp_path, ".csv", X, y=y)
    with pytest.raises(FileError, match=r"'y', row 7: '1\.2\.3' is not a"):
        KernelRidge(n_landmarks=5).fit(sources.open(path, target="y"))


def test_text_that_is_no_class(tmp_path):
    texts = [f"row {i}" for i in range(10_001)]
    path = written(tmp_path, ".parquet", np.zeros((10_001, 1)), label=texts)
    with pytest.raises(FileError, match="more than 10000 different texts"):
        sources.open(path, target="label")


# --- several numbers ----------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_several_targets(ending, X, tmp_path):
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
    path = written(tmp_path, ending, X, a=Y[:, 0], b=Y[:, 1])
    options = {"kernel": "rbf", "gamma": 0.3, "n_landmarks": 40, "random_state": 0}
    for kind in (KernelRidge, KernelRidgeCV):
        found = kind(**options).fit(sources.open(path, target=["a", "b"]))
        expected = kind(**options).fit(X, Y)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-8)
        score = found.score(sources.open(path, target=["a", "b"]))
        assert score == pytest.approx(expected.score(X, Y))
    one = KernelRidge(**options).fit(sources.open(path, target=["b"], columns=["x0"]))
    assert one.predict(X[:5, :1]).shape == (5, 1)


# --- where results go ---------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
@pytest.mark.parametrize(
    "model",
    [
        Nystroem(n_components=7, random_state=0),
        KernelPCA(2, kernel="rbf", n_landmarks=30, random_state=0),
        KernelPCA(2, kernel="rbf", n_landmarks=N_ROWS, random_state=0),
        KernelKMeans(3, n_landmarks=30, random_state=0),
    ],
    ids=["nystroem", "pca", "exact pca", "kmeans"],
)
def test_fit_transform_into_a_file(model, ending, X, tmp_path):
    X = X[:400] if getattr(model, "n_landmarks", 0) == N_ROWS else X
    rows = X if len(X) < N_ROWS else written(tmp_path, ".parquet", X)
    out = tmp_path / f"out{ending}"
    assert model.fit_transform(rows, out=out) == out
    expected = model.fit_transform(X)
    back = sources.open(out)
    np.testing.assert_allclose(back.rows(0, back.n_rows), expected, atol=1e-9)
    if ending == ".parquet":
        names = parquet.read_schema(out).names
        assert names == model.get_feature_names_out().tolist()
    held = np.empty_like(expected)
    assert model.fit_transform(X, out=held) is held
    np.testing.assert_allclose(held, expected, atol=1e-9)


def test_a_file_that_cannot_be_written_is_refused_before_the_fit(X, tmp_path):
    for model in (Nystroem(), KernelPCA(), KernelKMeans()):
        with pytest.raises(ValueError, match=r"ending='\.txt' is unknown"):
            model.fit_transform(X, out=tmp_path / "rows.txt")
        assert not hasattr(model, "landmarks_")


@pytest.mark.parametrize("n_targets", [None, 1, 3])
@pytest.mark.parametrize("n_landmarks", [40, 400])
def test_predictions_with_deviations_into_a_file(n_targets, n_landmarks, X, tmp_path):
    X = X[:400]
    Y = np.sin(X[:, 0]) if n_targets is None else np.sin(X[:, :n_targets])
    alpha = 0.1 if n_targets != 3 else [0.1, 0.5, 0.1]
    options = {"kernel": "rbf", "gamma": 0.3, "random_state": 0}
    model = KernelRidge(alpha, n_landmarks=n_landmarks, **options).fit(X, Y)
    source = written(tmp_path, ".csv", X)
    expected = np.column_stack(model.predict(X, return_std=True, noise=True))
    out = tmp_path / "predicted.parquet"
    assert model.predict(source, return_std=True, noise=True, out=out) == out
    table = parquet.read_table(out)
    names = ["prediction", "deviation"]
    if n_targets is not None:
        names = [f"{name}{i}" for name in names for i in range(n_targets)]
    assert table.column_names == names
    np.testing.assert_allclose(table.to_pandas().to_numpy(), expected, atol=1e-9)
    held = np.empty_like(expected)
    model.predict(X, return_std=True, noise=True, out=held)
    np.testing.assert_allclose(held, expected, atol=1e-12)


def test_many_classes_are_no_reason_to_warn(X, tmp_path):
    """scikit-learn warns where classes are as many as rows, which they are not here."""
    classes = np.arange(N_ROWS) % 30
    np.save(tmp_path / "rows.npy", np.column_stack([X, classes]))
    model = KernelRidgeClassifier(kernel="rbf", n_landmarks=20, random_state=0)
    model.fit(sources.open(tmp_path / "rows.npy", target=-1))
    assert model.classes_.tolist() == list(range(30))


# --- true and false -----------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_true_and_false_are_the_same_from_every_file(ending, X, labels, tmp_path):
    ash = labels == "ash"
    source = sources.open(written(tmp_path, ending, X, label=ash), target="label")
    model = classifier().fit(source)
    assert model.classes_.dtype == bool
    assert model.predict(source).dtype == bool
    np.testing.assert_array_equal(model.predict(X), classifier().fit(X, ash).predict(X))
    assert model.score(source) == model.score(X, ash)
    numbers = KernelRidge(kernel="rbf", gamma=0.5, n_landmarks=40, random_state=0)
    np.testing.assert_allclose(
        clone(numbers).fit(source).predict(X[:9]),
        clone(numbers).fit(X, ash.astype(float)).predict(X[:9]),
    )


@pytest.mark.parametrize("words", [("FALSE", "TRUE"), ("false", "true")])
def test_true_and_false_however_they_are_written(words, X, labels, tmp_path):
    text = np.array(words)[(labels == "ash").astype(int)]
    source = sources.open(written(tmp_path, ".csv", X, label=text), target="label")
    np.testing.assert_array_equal(classifier().fit(source).classes_, [False, True])


def test_one_of_true_and_false_is_text(X, labels, tmp_path):
    text = np.where(labels == "ash", "true", "maybe")
    source = sources.open(written(tmp_path, ".csv", X, label=text), target="label")
    assert classifier().fit(source).classes_.tolist() == ["maybe", "true"]


# --- text in a file of its own ------------------------------------------------------


@pytest.mark.parametrize("ending", [*ENDINGS, ".npy"])
@pytest.mark.parametrize("truth", [False, True], ids=["text", "true and false"])
def test_labels_in_a_file_of_their_own(ending, truth, X, labels, tmp_path):
    rows, apart = tmp_path / "rows.npy", tmp_path / f"labels{ending}"
    y = labels == "ash" if truth else labels
    np.save(rows, X)
    if ending == ".npy":
        np.save(apart, y)
    else:
        written(tmp_path, ending, np.empty((N_ROWS, 0)), "labels", label=y)
    source = sources.open(rows, target=apart)
    model = classifier().fit(source)
    expected = classifier().fit(X, y)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_array_equal(model.predict(source), expected.predict(X))
    assert pickle.loads(pickle.dumps(source)).targets[3:9].shape == (6, 1)


def test_labels_of_other_rows_are_refused(X, labels, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "labels.npy", labels[:-1])
    with pytest.raises(FileError, match="has 2499 rows, but there are 2500"):
        sources.open(tmp_path / "rows.npy", target=tmp_path / "labels.npy")


def test_a_column_named_for_y_is_told(X, labels, tmp_path):
    path = written(tmp_path, ".csv", X, y=X[:, 0])
    with pytest.raises(ValueError, match=r"y='y' is not a .*open\(X, target='y'\)"):
        KernelRidge().fit(path, "y")

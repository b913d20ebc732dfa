"""Runs that survive: killed, refused, out of disk, and to the same last bit."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from killed_runs import arrays_of
from lists import CUBIC, ESTIMATORS, but, with_few_landmarks
from sklearn.base import clone, is_classifier

import nystrom
from nystrom import KernelRidge, Nystroem, engines, kernels, select_landmarks
from nystrom import _digest as source_prints
from nystrom.engines import TILE, CheckpointError, CheckpointStore, Threads, checkpoint
from nystrom.engines import checkpoint as prints
from nystrom.engines.base import SumTree
from nystrom.engines.checkpoint import NotStorableError, decode_value, encode_value
from nystrom.landmarks import Landmarks
from nystrom.sources import DenseRows, Subset, as_source

HERE = Path(__file__).parent
N_ROWS = 5 * TILE + 7


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 3)) * rng.choice([0.2, 1.0, 3.0], (N_ROWS, 1))


def often(path):
    """A checkpoint that is saved after every tile."""
    return CheckpointStore(path, every=0)


class Counting(Threads):
    """Counts the tiles that are worked on, but for those of few rows that are held
    here, which are quickly done again; stops after the last.
    """

    @property
    def local(self):
        return Threads(1, self.progress)

    def __init__(self, last=np.inf):
        super().__init__(1, tiles_per_task=1)
        self.seen, self.last = [0], last

    def reduce(self, f, source, shared, name):
        return super().reduce(partial(self._counted, f), source, shared, name)

    def map(self, f, source, sink, shared, name):
        super().map(partial(self._counted, f), source, sink, shared, name)

    def _counted(self, f, block, *shared):
        if self.seen[0] >= self.last:
            raise KeyboardInterrupt
        self.seen[0] += 1
        return f(block, *shared)


def ridge(X, y=np.sin, w=None, **changed):
    """A small regression."""
    options = {"gamma": 0.5, "n_landmarks": 16, "random_state": 0, **changed}
    return KernelRidge(kernel="rbf", **options).fit(X, y(X[:, 0]), w)


def saved(path, fit, *args, last=np.inf, **options):
    """(fitted, tiles worked on) under a checkpoint; None where it was stopped."""
    engine = Counting(last)
    try:
        with engines.using(engine, checkpoint=often(path), keep_checkpoint=True):
            return fit(*args, **options), engine.seen[0]
    except KeyboardInterrupt:
        return None, engine.seen[0]


def contents(folder):
    """The files of a checkpoint."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# --- killed -------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_killed_runs_continue_to_the_same_result(tmp_path, seed):
    program = [sys.executable, HERE / "killed_runs.py", tmp_path, str(seed)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    runs = json.loads(done.stdout)
    for name, (same, _, _, size, left_over) in runs.items():
        assert same, name
        assert size > 10  # there was something to compare
        assert left_over == 0
    _, n_killed, n_within, *_ = (sum(part) for part in zip(*runs.values(), strict=True))
    assert n_killed > len(runs)
    assert n_within > 0  # went on in the middle of a pass


@pytest.mark.parametrize("sampler", but(CUBIC))
def test_a_run_stopped_after_every_tile_ends_like_one_that_was_not(sampler, path, rng):
    X = rng.standard_normal((2 * TILE + 9, 2))

    def choose():
        return select_landmarks(
            X, gamma=0.5, n_landmarks=8, sampler=sampler, random_state=1
        ).points

    whole, found, n_runs, n_tiles = choose(), None, 0, 0
    while found is None and n_runs < 60:
        found, n_new = saved(path, choose, last=3)
        n_runs, n_tiles = n_runs + 1, n_tiles + n_new
    np.testing.assert_array_equal(found, whole)
    _, n_at_once = saved(path.with_suffix(".other"), choose)
    # Sums lose nothing; rows that are mapped are mapped again, three tiles at a time.
    assert n_tiles <= 3 * n_at_once + 3
    assert n_runs > 1 or n_at_once <= 3


def test_within_a_pass_only_the_rest_is_run(path, X):
    def total():
        return engines.checkpointed(engines.current()).reduce(
            _squares, as_source(X), (), "squares"
        )

    whole = Threads(2).reduce(_squares, as_source(X), (), "squares")
    counts = []
    for _ in range(3):
        found, n_tiles = saved(path, total, last=2)
        counts.append(n_tiles)
    np.testing.assert_array_equal(found, whole)
    assert counts == [2, 2, 2]
    found, n_tiles = saved(path, total)
    assert n_tiles == 0
    np.testing.assert_array_equal(found, whole)


def _squares(block):
    return block.X.T @ block.X


@given(data=st.data(), n_tiles=st.integers(1, 200))
def test_stretches_of_any_length_add_up_to_the_same_bits(data, n_tiles):
    terms = np.random.default_rng(n_tiles).standard_normal(n_tiles) * 1e8
    terms[::3] *= 1e-12
    plain = SumTree()
    for term in terms:
        plain.push(term)
    size, seconds, tree, tile = 1, 0.0, SumTree(), 0
    while tile < n_tiles:
        size = checkpoint.next_range_size(tile, size, seconds, 1.0)
        inner = SumTree()
        for term in terms[tile : tile + size]:
            inner.push(term)
        tree = SumTree.replace(tree.partial)  # as if saved and begun again
        tree.push(inner.total(), size)
        tile += size
        seconds = data.draw(st.sampled_from([0.0, 0.4, 0.6, 1.5, 9.0]))
    assert tree.total() == plain.total()


# --- every estimator ----------------------------------------------------------------


@pytest.mark.parametrize("estimator", map(with_few_landmarks, ESTIMATORS), ids=str)
def test_an_estimator_fits_alike_and_then_at_once(estimator, path, rng):
    X = rng.standard_normal((TILE + 50, 3))
    y = X[:, :1] > 0 if is_classifier(estimator) else np.sin(X[:, :1])
    y = y if "CCA" in str(estimator) else y.ravel()
    plain = arrays_of(clone(estimator).fit(X, y))
    for attempt in range(2):
        engine = Counting()
        with engines.using(engine, checkpoint=path, keep_checkpoint=True):
            fitted = clone(estimator).fit(X, y)
        assert arrays_of(fitted) == plain
        if getattr(estimator, "solver", None) != "full":  # its steps are not saved
            assert (engine.seen[0] > 0) == (attempt == 0)


def test_several_fits_in_one_block(path, X):
    def both():
        return ridge(X), Nystroem(n_components=9, random_state=0).fit(X)

    first, n_tiles = saved(path, both)
    assert n_tiles > 0
    again, n_tiles = saved(path, both)
    assert n_tiles == 0
    assert arrays_of(first) == arrays_of(again)
    # Fewer is a beginning of it, and more goes on behind it.
    _, n_tiles = saved(path, ridge, X)
    assert n_tiles == 0
    (*_, third), n_tiles = saved(path, lambda: (*both(), ridge(X, gamma=0.1)))
    assert n_tiles > 0
    assert arrays_of(third) == arrays_of(ridge(X, gamma=0.1))


def test_seeds_that_nobody_gave_are_kept(path, X):
    results = []
    for file in (path, path, path.with_suffix(".other")):
        fitted, _ = saved(file, ridge, X, random_state=None)
        results.append(fitted.landmarks_.indices)
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])
    # Two fits have two seeds, as without a checkpoint.
    with engines.using(checkpoint=path.with_suffix(".third")):
        one, two = (ridge(X, random_state=None).landmarks_.indices for _ in range(2))
    assert not np.array_equal(one, two)


def test_a_block_without_an_engine_has_threads_by_n_jobs(path, X):
    with engines.using(checkpoint=path, keep_checkpoint=True) as engine:
        assert engine is None
        assert engines.current() is None
        with engines.using(Threads(1)):
            wrapped = engines.checkpointed(engines.current())
            assert isinstance(wrapped, engines.Checkpoint)
        fitted = ridge(X, n_jobs=2)
    assert path.exists()
    np.testing.assert_array_equal(fitted.dual_coef_, ridge(X).dual_coef_)


def test_rows_that_are_many_are_made_again(path, X, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_SAVED_BYTES", 1000)
    est = Nystroem(n_components=9, random_state=0).fit(X)
    for _ in range(2):
        Z, n_tiles = saved(path, est.transform, X)
        np.testing.assert_array_equal(Z, est.transform(X))
        assert n_tiles == 6
    assert sum(file.stat().st_size for file in path.iterdir()) < 2000


# --- done, and continued ------------------------------------------------------------


def test_the_file_is_removed_after_success_unless_it_is_kept(path, X):
    other = path.with_name("kept.ckpt")
    for kept in (False, True):
        file = other if kept else path
        with engines.using(checkpoint=often(file), keep_checkpoint=kept):
            ridge(X)
            assert file.exists()  # while it may still be needed
        assert file.exists() == kept
    assert list(path.parent.iterdir()) == [other]
    with suppress(ZeroDivisionError), engines.using(checkpoint=often(path)):
        ridge(X)
        raise ZeroDivisionError
    assert path.exists()  # what comes after the fit may fail
    engine = Counting()
    with engines.using(engine, checkpoint=path):
        ridge(X)
    assert engine.seen[0] == 0
    assert not path.exists()
    with pytest.raises(ValueError, match=r"keep_checkpoint=True .* checkpoint='run"):
        engines.using(keep_checkpoint=True).__enter__()


# --- refused ------------------------------------------------------------------------


def change_one(X):
    X = X.copy()
    X[-1, 0] += 1e-9
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: ridge(change_one(X)), "other rows"),
        (lambda X: ridge(X.astype(np.float32)), "other rows"),
        (lambda X: ridge(X[:-1]), "other rows"),
        (lambda X: ridge(X, gamma=0.6), "other parameters"),
        (lambda X: ridge(X, random_state=1), "other"),
        (lambda X: ridge(X, n_landmarks=17), "other"),
        (lambda X: Nystroem(n_components=16, sampler="recursive").fit(X), "other name"),
        (lambda X: ridge(X, y=np.cos), "other rows, weights or targets"),
        (lambda X: ridge(X, w=np.linspace(1, 2, len(X))), "other rows, weights or tar"),
    ],
)
def test_another_run_is_refused(change, message, path, X):
    saved(path, ridge, X)
    before = contents(path)
    with pytest.raises(CheckpointError, match=rf"belongs to another run.*{message}"):
        saved(path, change, X)
    assert contents(path) == before


def test_an_unfinished_pass_of_other_rows_is_refused(path, X):
    def total(X):
        return engines.checkpointed(engines.current()).reduce(
            _squares, as_source(X), (), "squares"
        )

    saved(path, total, X, last=2)
    with pytest.raises(CheckpointError, match=r"pass 1 \('squares'\) had other rows"):
        saved(path, total, X + 1)


def damage(whole, how):
    if how == "digit":
        return whole.replace(b'"key"', b'"kay"')
    return whole[: int(how * len(whole))]


@pytest.mark.parametrize("how", [0.0, 0.3, 0.7, 0.99, "digit"])
@pytest.mark.parametrize("name", ["pass 0.npz", "pass 1.npz"])
def test_a_damaged_file_is_refused(how, name, path, X):
    saved(path, ridge, X, last=8)
    file = path / name
    file.write_bytes(damage(file.read_bytes(), how))
    with pytest.raises(CheckpointError, match=r"it is damaged .*Delete the folder"):
        saved(path, ridge, X)


def test_another_version_is_refused(path, X, monkeypatch):
    saved(path, ridge, X)
    monkeypatch.setattr(nystrom, "__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"and this is nystrom 9\.9"):
        saved(path, ridge, X)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (lambda folder: 3, TypeError),
        (lambda folder: folder / "none" / "run.ckpt", OSError),
        (lambda folder: CheckpointStore(folder / "run.ckpt", every=-1), ValueError),
    ],
)
def test_what_is_no_checkpoint_is_refused(given, error, tmp_path):
    with pytest.raises(error), engines.using(checkpoint=given(tmp_path)):
        pass


# --- the file -----------------------------------------------------------------------


def test_the_files_hold_no_code(path, X):
    saved(path, ridge, X)
    for file in set(path.iterdir()) - {path / "run.json"}:
        with np.load(file, allow_pickle=False) as stored:
            assert all(stored[name].dtype.kind in "biuf" for name in stored.files)
    assert len(list(path.iterdir())) > 2


@pytest.mark.skipif(os.name == "nt", reason="links are for administrators there")
def test_a_link_is_followed_and_left_overs_are_removed(tmp_path, X):
    target, link = tmp_path / "target.ckpt", tmp_path / "link.ckpt"
    target.mkdir()
    link.symlink_to(target)
    torn = target / ".pass 0.npz.123.part"
    torn.write_bytes(b"half")
    saved(link, ridge, X)
    assert target.exists()
    assert link.is_symlink()
    assert not torn.exists()


VALUES = [
    None,
    True,
    3,
    0.1,
    np.inf,
    "text",
    np.float64(0.1),
    np.arange(3),
    np.asfortranarray(np.eye(2)),
    (1.5, [np.ones(2), (2,)]),
    sp.csr_array(np.eye(3)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_stored_comes_back(value):
    found = []
    tree = json.loads(json.dumps(encode_value(value, found)))
    again = decode_value(tree, found)
    assert type(again) is type(value)
    assert prints.digest(again) == prints.digest(value)


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array([None]), 1j])
def test_what_cannot_be_stored_is_told(value):
    with pytest.raises(NotStorableError):
        encode_value(value, [])


# --- fingerprints -------------------------------------------------------------------


def test_equal_values_have_equal_digests_whatever_they_share():
    a = np.arange(4.0)
    assert prints.digest(a, a) == prints.digest(a, a.copy())
    assert prints.digest(a[::2]) == prints.digest(a[::2].copy())
    assert prints.digest(np.float64(2)) == prints.digest(2.0)
    kernel = kernels.RBF(0.5)
    landmarks = Landmarks(a[:, None], kernel, "given", 4)
    before = prints.digest(landmarks)
    assert landmarks.factor is not None  # found out, and kept
    assert prints.digest(landmarks) == before


def twice(factor):
    return lambda x: factor * x


class Slotted:
    """A value that prints as an address."""

    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


def test_values_in_a_circle_and_in_sets_have_digests():
    circles = []
    for last in (1, 1, 2):
        circle = [last]
        circle.append(circle)
        circles.append(prints.digest(circle))
    assert circles[0] == circles[1] != circles[2]
    assert prints.digest({"a", "b", "c"}) == prints.digest({"c", "b", "a"})
    shared = [1]
    for _ in range(50):  # 2⁵⁰ values, if each were looked at again
        shared = [shared, shared]
    assert prints.digest(shared)


class Molecule:
    """An object whose text says nothing of it."""

    def __init__(self, values):
        self.values = values


@pytest.mark.parametrize("long", [False, True])
def test_a_checkpoint_of_other_objects_or_of_another_kernel_is_refused(long, path, rng):
    """Neither long arrays nor objects that print as addresses are taken for others."""
    values = [rng.standard_normal(1200) for _ in range(30)]
    rows = [v if long else Molecule(v) for v in values]
    changed = [*values]
    changed[7] = np.where(np.arange(1200) == 600, 5.0, values[7])
    others = [v if long else Molecule(v) for v in changed]

    def inner(f):
        def kernel(x, y):
            x, y = (x, y) if long else (x.values, y.values)
            return float(f(x @ y / 1200))

        return kernel

    def fit(rows, kernel):
        Nystroem(n_components=5, kernel=kernel, random_state=0).fit(rows)

    with engines.using(checkpoint=path, keep_checkpoint=True):
        fit(rows, inner(np.exp))
    with (
        pytest.raises(CheckpointError, match="another run"),
        engines.using(checkpoint=path),
    ):
        fit(others, inner(np.exp))
    with (
        pytest.raises(CheckpointError, match="another run"),
        engines.using(checkpoint=path),
    ):
        fit(rows, inner(np.tanh))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(3), np.zeros(4)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (0.0, -1e-300),
        (kernels.RBF(0.5), kernels.RBF(0.6)),
        (kernels.RBF(0.5), kernels.Laplacian(0.5)),
        (sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)[::-1])),
        (twice(2), twice(3)),
        (lambda x: x + 1, lambda x: x + 2),
        (np.exp, np.log),
        ({"a": 1}, {"a": 2}),
        (("ab", "c"), ("a", "bc")),
        (lambda x: np.sin(x), lambda x: np.cos(x)),
        (lambda x: (lambda z: z + 1)(x), lambda x: (lambda z: z + 2)(x)),
        (lambda x: x in (1, 2), lambda x: x in (1, 3)),
        (lambda *, a=1: a, lambda *, a=2: a),
        (sp.csr_array((2, 3)), sp.csr_array((2, 4))),
        (np.array([None, "a"]), np.array([None, "b"])),
        (Slotted(1), Slotted(2)),
        (Slotted(Slotted(Slotted({1}))), Slotted(Slotted(Slotted({2})))),
        ([np.arange(2000), 1], [np.arange(2000) % 1999, 1]),
    ],
)
def test_other_values_have_other_digests(one, other):
    assert prints.digest(one) == prints.digest(one)
    assert prints.digest(one) != prints.digest(other)


def test_large_data_are_known_by_some_rows(monkeypatch, rng):
    monkeypatch.setattr(source_prints, "MAX_FULL_DIGEST_BYTES", 1000)
    X = rng.standard_normal((1000, 3))
    before = prints.source_fingerprint(DenseRows(X))
    for row, seen in [(0, True), (999, True), (1, False)]:
        changed = X.copy()
        changed[row] += 1
        assert (prints.source_fingerprint(DenseRows(changed)) != before) == seen


def test_a_source_may_have_its_own_and_views_add_to_it(rng):
    X = rng.standard_normal((50, 2))

    class File(DenseRows):
        name = "one"

        def fingerprint(self):
            return self.name

        def take(self, indices):
            raise AssertionError("random rows of a file are dear")

    class Other(File):
        name = "two"

    assert prints.source_fingerprint(File(X)) == prints.source_fingerprint(File(X))
    assert prints.source_fingerprint(File(X)) != prints.source_fingerprint(Other(X))
    weighted = File(X).replace(weights=np.arange(50.0))
    assert prints.source_fingerprint(weighted) != prints.source_fingerprint(File(X))
    some = [Subset(File(X), np.arange(k)) for k in (5, 5, 6)]
    assert prints.source_fingerprint(some[0]) == prints.source_fingerprint(some[1])
    assert prints.source_fingerprint(some[0]) != prints.source_fingerprint(some[2])


# --- a full disk --------------------------------------------------------------------

FULL = """
import resource, sys, warnings
from pathlib import Path
import numpy as np
from nystrom import Nystroem, engines
X = np.random.default_rng(0).standard_normal((5000, 3))
def fit(k):
    return Nystroem(n_components=k, random_state=0).fit(X).normalization_
def saving():
    run = engines.CheckpointStore(sys.argv[1], every=0)
    return engines.using(checkpoint=run, keep_checkpoint=True)
with saving():
    first = fit(9)
def files():
    return {file: file.read_bytes() for file in Path(sys.argv[1]).iterdir()}
before = files()
room = int(max(map(len, before.values())) * float(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with saving():
        again, more = fit(9), fit(60)
assert before.items() <= files().items(), "what was saved is gone"
assert [w.category for w in told] == [RuntimeWarning], told
assert "could not be written" in str(told[0].message)
assert np.array_equal(again, first)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
with saving():
    assert np.array_equal(fit(9), first)
    assert np.array_equal(fit(60), more)
assert len(files()) > len(before)
"""


@pytest.mark.parametrize("room", [0.5, 1.01])
def test_a_full_disk_is_one_warning_and_loses_nothing(room, path):
    pytest.importorskip("resource", reason="no limits on the size of files here")
    program = [sys.executable, "-c", FULL, str(path), str(room)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(path.parent.iterdir()) == [path]


def test_what_is_no_checkpoint_is_not_written_to(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    for path, error in [(other, CheckpointError), (other / "mine.txt", OSError)]:
        with pytest.raises(error), engines.using(checkpoint=path):
            Nystroem(n_components=3).fit(np.eye(9))
    assert contents(other) == {"mine.txt": b"mine"}

"""Model files: what is saved comes back to the last bit, and nothing else comes in."""

from __future__ import annotations

import errno
import functools
import gc
import inspect
import io
import json
import math
import pickle
import re
import sys
import threading
import warnings
import zipfile

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from fuzz.damage import archive
from fuzz.damage.schema import node
from lists import ESTIMATORS, KERNELS
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nystrom
from nystrom import (
    KernelRidge,
    Nystroem,
    engines,
    kernels,
    load,
    save,
    sources,
)
from nystrom._model_schema import iter_nodes
from nystrom.linalg.factor import Factor
from nystrom.persistence import (
    FORMAT,
    ModelFileError,
    ModelVersionWarning,
    UntrustedTypesError,
)

X = np.random.default_rng(0).standard_normal((60, 3))
NEW = np.random.default_rng(1).standard_normal((7, 3))
WORDS = ["tree", "three", "free", "brie", "grief", "tea", "", "fee", "bee"]


def common_letters(a, b):
    return len(set(a) & set(b))


def product(x, y):
    return float(x @ y) + 1.0


def products(X, Y):
    return X @ Y.T


def squares(X):
    return (X**2).sum(axis=1)


class Cosine:
    """A kernel that is an object."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, y):
        return math.cos(self.scale * float(np.sum(x - y)))

    def method(self, x, y):
        return self(x, y)


def here(*names):
    """Full names of what is defined in this file."""
    return [f"{__name__}.{name}" for name in names]


def fitted(rows=X, n_components=6, random_state=0, **params):
    return Nystroem(n_components=n_components, random_state=random_state, **params).fit(
        rows
    )


#: name: an estimator, rows to transform, and what must be trusted.
CASES = {
    "float64": lambda: (fitted(), NEW, []),
    "float32": lambda: (fitted(X.astype("f4")), NEW.astype("f4"), []),
    "csr": lambda: (fitted(sp.csr_array(X)), sp.csr_array(NEW), []),
    "strings": lambda: (
        fitted(WORDS, 4, kernel=common_letters),
        ["beer", "freed"],
        here("common_letters"),
    ),
    "precomputed": lambda: (fitted(X @ X.T, kernel="precomputed"), NEW @ X.T, []),
    "gammas": lambda: (fitted(gamma=(0.1, 1.0, 2.0)), NEW, []),
    "blockwise": lambda: (
        fitted(kernel=kernels.blockwise(products, diag=squares)),
        NEW,
        here("products", "squares"),
    ),
    "sum_with_own": lambda: (
        fitted(kernel=kernels.RBF(0.1) + 2.0 * kernels.blockwise(products)),
        NEW,
        here("products"),
    ),
    "object": lambda: (fitted(kernel=Cosine(0.1)), NEW, here("Cosine")),
    "method": lambda: (
        fitted(kernel=Cosine(0.1).method),
        NEW,
        here("Cosine", "Cosine.method"),
    ),
    "partial": lambda: (
        fitted(kernel=functools.partial(product)),
        NEW,
        ["functools.partial", *here("product")],
    ),
    "numpy_function": lambda: (fitted(kernel=np.vdot), NEW, ["numpy.vdot"]),
    "points_given": lambda: (fitted(sampler=X[:5] + 1), NEW, []),
    "random_state": lambda: (
        fitted(random_state=np.random.RandomState(3)),
        NEW,
        [],
    ),
    "pipeline": lambda: (
        make_pipeline(StandardScaler(), Nystroem(n_components=6, random_state=0)).fit(
            X
        ),
        NEW,
        [],
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nystrom"


def same(a, b):
    """Whether two values are equal in type and to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.all(a == b))
    if sp.issparse(a):
        return a.dtype == b.dtype and same(a.toarray(), b.toarray())
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, np.random.RandomState):
        return same(a.get_state(legacy=False), b.get_state(legacy=False))
    if hasattr(a, "__func__"):
        return a.__func__ is b.__func__ and same(a.__self__, b.__self__)
    if isinstance(a, Factor):  # what it has made of its fields is not kept
        return same(a.__getstate__(), b.__getstate__())
    if hasattr(a, "__dict__") and not callable(getattr(a, "__get__", None)):
        return repr(type(a)) == repr(type(b)) and same(vars(a), vars(b))
    return a == b


def through_pickle(estimator, path, trusted):
    return pickle.loads(pickle.dumps(estimator))


def through_joblib(estimator, path, trusted):
    joblib.dump(estimator, path)
    return joblib.load(path)


def through_save(estimator, path, trusted):
    save(estimator, path)
    return load(path, trusted=trusted)


# --- there and back -----------------------------------------------------------------


@pytest.mark.parametrize("through", [through_save, through_pickle, through_joblib])
def test_features_and_all_that_an_estimator_holds_are_the_same(case, path, through):
    estimator, rows, trusted = case
    loaded = through(estimator, path, trusted)
    assert same(loaded.transform(rows), estimator.transform(rows))
    assert same(vars(loaded), vars(estimator))


def outputs(estimator):
    """Whatever a fitted estimator has to say about rows."""
    said = {
        name: getattr(estimator, name)(NEW)
        for name in ("transform", "predict", "decision_function")
        if hasattr(estimator, name)
    }
    assert said
    return said


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_every_estimator_comes_back(estimator, path):
    estimator = clone(estimator).fit(X, (X[:, 0] > 0).astype(float))
    for through in (through_save, through_pickle):
        loaded = through(estimator, path, [])
        assert same(vars(loaded), vars(estimator))
        assert same(outputs(loaded), outputs(estimator))


@pytest.mark.filterwarnings("ignore:The kernel")
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_every_kernel_comes_back(case, path):
    estimator = fitted(np.abs(X), kernel=case.kernel)
    loaded = through_save(estimator, path, [])
    assert same(loaded.transform(np.abs(NEW)), estimator.transform(np.abs(NEW)))
    assert loaded.landmarks_.kernel == case.kernel


def test_the_comparison_of_estimators_finds_differences():
    assert same(vars(fitted()), vars(fitted())) is False  # the seconds it took
    assert same(fitted().get_params(), fitted().get_params())
    assert not same(fitted().get_params(), fitted(gamma=(1.0, 2.0, 3.0)).get_params())
    uniform = (fitted(sampler="uniform", random_state=k).components_ for k in (0, 1))
    assert not same(*uniform)


def test_the_array_that_is_shared_stays_shared(path):
    loaded = through_save(fitted(), path, ())
    assert loaded.components_ is loaded.landmarks_.points


def test_what_is_loaded_can_be_fitted_again(path):
    estimator = fitted(gamma=0.3, kernel="laplacian")
    again = through_save(estimator, path, ()).fit(X)
    assert same(again.transform(NEW), estimator.transform(NEW))


@pytest.mark.parametrize(
    ("last", "y", "scoring"),
    [
        (Ridge(), X[:, 0], None),
        (Ridge(), X[:, 0], "neg_mean_squared_error"),
        (LogisticRegression(), X[:, 0] > 0, "roc_auc"),
    ],
    ids=["own_score", "regression", "classification"],
)
def test_a_search_needs_no_trust(last, y, scoring, path):
    pipeline = make_pipeline(Nystroem(n_components=6, random_state=0), last)
    grid = {"nystroem__kernel": [kernels.RBF(0.1), kernels.Linear()]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring=scoring).fit(X, y)
    loaded = through_save(search, path, ())
    assert same(loaded.predict(NEW), search.predict(NEW))
    assert loaded.score(X, y) == search.score(X, y)
    assert loaded.cv_results_["params"] == search.cv_results_["params"]


def test_a_string_is_a_path(path):
    save(fitted(), str(path))
    assert same(load(str(path)).transform(NEW), fitted().transform(NEW))


def test_the_file_is_a_zip_that_says_who_wrote_it(path):
    save(fitted(), path)
    about = json.loads(archive.entries_of(path.read_bytes())["nystrom.json"])
    assert about.pop("scikit-learn")
    assert about == {
        "format": 2,
        "nystrom": nystrom.__version__,
        "numpy": np.__version__,
        "estimator": "Nystroem",
    }


def rewritten(path, **changes):
    """The model file with some of its entries made another, by their stem."""
    entries = archive.entries_of(path.read_bytes())
    for stem, content in changes.items():
        entries[f"{stem}.json"] = json.dumps(content)
    path.write_bytes(archive.zipped(entries))


def written_by(path, **about):
    """A model file as another version would have written it."""
    said = archive.entries_of(path.read_bytes())["nystrom.json"]
    rewritten(path, nystrom={**json.loads(said), **about})


@pytest.mark.parametrize(
    ("versions", "told"),
    [
        ({"nystrom": "0.0.1"}, [r"nystrom 0\.0\.1 \(here "]),
        ({"nystrom": "99.0"}, [r"nystrom 99\.0 \(here "]),
        ({"scikit-learn": "1.2"}, [r"by scikit-learn 1\.2 \(here "]),
        (
            {"nystrom": "0.0.1", "scikit-learn": "1.2"},
            [r"nystrom 0\.0\.1 \(here .*\) and scikit-learn 1\.2 \(here "],
        ),
        ({"nystrom": None}, [r"nystrom None \(here"]),
        ({"numpy": "1.0"}, []),
        ({}, []),
    ],
)
def test_a_file_of_another_version_is_told_once(versions, told, path):
    save(fitted(), path)
    written_by(path, **versions)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(path)
    assert same(loaded.transform(NEW), fitted().transform(NEW))
    assert len(caught) == len(told)
    for warning, message in zip(caught, told, strict=True):
        assert re.search(message, str(warning.message))
        assert "fit the model again" in str(warning.message)
        assert warning.category is ModelVersionWarning
        assert issubclass(warning.category, InconsistentVersionWarning)
        assert warning.filename == __file__


def test_a_warning_of_versions_survives_a_pickle():
    """Worker processes send their warnings."""
    warning = pickle.loads(pickle.dumps(ModelVersionWarning("text")))
    assert str(warning) == "text"


# --- what is trusted ----------------------------------------------------------------


@pytest.mark.parametrize(
    "module",
    [engines, nystrom.persistence, sources],
    ids=lambda module: module.__name__,
)
def test_what_touches_files_or_threads_is_not_saved(module, path):
    # What is saved may be called with whatever a file says.
    found = [c for c in vars(module).values() if inspect.isclass(c)]
    found = [c for c in found if c.__module__.startswith(module.__name__)]
    assert found
    for value in found:
        if inspect.isabstract(value) or issubclass(value, Exception):
            continue
        with pytest.raises(
            TypeError, match=f"{value.__name__}, which model files cannot"
        ):
            save(Nystroem(object.__new__(value)), path)
        assert not path.exists()


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (Nystroem(product), here("product")),
        (Nystroem(kernels.blockwise(products)), here("products")),
        (
            Nystroem(kernels.Linear() * kernels.blockwise(products, diag=squares)),
            here("products", "squares"),
        ),
        (Nystroem(Cosine(1.0)), here("Cosine")),
        (make_pipeline(StandardScaler(), Nystroem(product)), here("product")),
        (Nystroem(math.hypot), ["math.hypot"]),
        # A method may do anything: also one of a class that has a saved name.
        (Nystroem(kernels.Laplacian(0.1).diag), ["nystrom.Laplacian.diag"]),
        (
            Nystroem(kernels.Laplacian(0.1).output_like),
            ["nystrom.Laplacian.output_like"],
        ),
    ],
    ids=[
        "pairs",
        "blocks",
        "product",
        "object",
        "pipeline",
        "builtin",
        "method",
        "inherited",
    ],
)
def test_other_names_are_refused_until_trusted(estimator, names, path):
    save(estimator, path)
    with pytest.raises(UntrustedTypesError) as refused:
        load(path)
    assert list(refused.value.names) == names
    assert f"trusted={json.dumps(names)}" in str(refused.value)
    assert repr(load(path, trusted=names)).split()[0] == repr(estimator).split()[0]


def test_only_what_is_not_yet_trusted_is_named(path):
    save(Nystroem(kernels.blockwise(products, diag=squares)), path)
    with pytest.raises(UntrustedTypesError) as refused:
        load(path, trusted=here("squares"))
    assert list(refused.value.names) == here("products")


@pytest.mark.parametrize("trusted", ["m.f", True, [product], [1]])
def test_trusted_is_a_sequence_of_names(trusted, path):
    save(Nystroem(), path)
    with pytest.raises(TypeError, match="trusted"):
        load(path, trusted=trusted)


def test_file_objects_are_written_and_read(path):
    save(fitted(), path)
    stream = io.BytesIO(b"before")
    stream.seek(6)
    save(fitted(), stream)
    assert stream.getvalue().startswith(b"beforePK")
    stream.seek(6)
    assert (load(stream).transform(X) == fitted().transform(X)).all()
    with open(path, "rb") as file:
        assert (load(file).transform(X) == fitted().transform(X)).all()
    with pytest.raises(ModelFileError, match="damaged or incomplete"):
        load(io.BytesIO(path.read_bytes()[:-100]))


def test_metadata_requests_are_saved(path):
    with config_context(enable_metadata_routing=True):
        model = KernelRidge().set_fit_request(sample_weight="weight")
        for saved in (model, clone(model), make_pipeline(StandardScaler(), model)):
            save(saved, path)
            loaded = load(path)
            inner = loaded if isinstance(loaded, KernelRidge) else loaded[-1]
            request = inner.get_metadata_routing()
            assert request.fit.requests == {"sample_weight": "weight"}
            assert request.owner is inner or isinstance(request.owner, str)
        assert clone(loaded)[-1].get_metadata_routing().fit.requests["sample_weight"]


# --- what cannot be saved -----------------------------------------------------------


def defined_inside():
    def inner(x, y):
        return product(x, y)

    return inner


def same_name_inside():
    def product(x, y):
        return 0.0

    return product


class Outer:
    class Inner(Cosine):
        """Not found by its own name."""

    @staticmethod
    def static(x, y):
        return product(x, y)


class Held(Nystroem):
    """An estimator that holds anything."""

    def __init__(self, anything=None):
        self.anything = anything


@pytest.mark.parametrize(
    ("thing", "named"),
    [
        (lambda x, y: 1.0, "Held.anything is .*<lambda>"),
        (defined_inside(), "Held.anything is .*inner"),
        (same_name_inside(), "Held.anything is .*product"),
        (Outer.static, "Held.anything is .*static"),
        (kernels.blockwise(lambda X, Y: X @ Y.T), "anything.function is .*<lambda>"),
        (kernels.Linear() + kernels.blockwise(defined_inside()), "right.*inner"),
        ([0, defined_inside()], r"Held.anything\[1\] is .*inner"),
        (functools.partial(defined_inside()), "inner"),
        (Outer.Inner(1.0), "Inner"),
        (threading.Lock(), "lock"),
        (io.StringIO("text"), "StringIO"),
        (sys, "module"),
        ({(1, 2): 3}, "tuple"),
        ({None: 3}, "Held.anything is a dict whose keys"),
        ({False: 1, True: 2}, "keys"),
        ({1: "a", "1": "b"}, "keys"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_would_not_come_back_is_refused_and_named(thing, named, path):
    with pytest.raises(TypeError, match=named):
        save(Held(thing), path)
    assert list(path.parent.iterdir()) == []


def test_what_refers_to_itself_is_refused(path):
    ring: list = []
    ring.append(ring)
    with pytest.raises(TypeError, match="Held cannot be saved"):
        save(Held(ring), path)


@pytest.mark.parametrize("thing", [{"a": 1}, X, Nystroem, None], ids=str)
def test_only_estimators_are_saved(thing, path):
    with pytest.raises(TypeError, match="save takes a scikit-learn estimator"):
        save(thing, path)


# --- the old file stays until the new one is whole ----------------------------------


def fails(error):
    def fail(*args, **kwargs):
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()], ids=repr
)
@pytest.mark.parametrize(
    "step", ["skops.io.dump", "zipfile.ZipFile.writestr", "os.fsync", "os.replace"]
)
def test_a_failure_leaves_the_old_file_and_nothing_else(step, error, path, monkeypatch):
    save(fitted(), path)
    before = path.read_bytes()
    monkeypatch.setattr(step, fails(error))
    with pytest.raises(type(error)):
        save(fitted(gamma=3.0), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_saving_replaces_the_old_file(path):
    save(fitted(), path)
    save(fitted(gamma=3.0), path)
    assert load(path).gamma == 3.0
    assert list(path.parent.iterdir()) == [path]


# When it is collected it tries to close once more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_as_an_entry_begins_is_one(tmp_path, monkeypatch):
    """The zip then counts on an entry that nobody can end, and says so when closed."""

    def stopped(self, *begun):
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile._ZipWriteFile, "__init__", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        save(fitted(), tmp_path / "model")
    del caught  # which holds the zip
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_paths_that_cannot_be_used_are_named(path, tmp_path):
    folder, none = tmp_path / "no-such-folder", r"There is no file .*model\.nystrom"
    for given, error, words in [
        (tmp_path, IsADirectoryError, "is a folder; give the name of a file"),
        *(
            (each, TypeError, "path is a str or a path")
            for each in (3, b"m", io.StringIO())
        ),
        ("s3://bucket/m", ValueError, r"s3://bucket/m is a URL.*fsspec\.open"),
    ]:
        for do in (load, functools.partial(save, fitted())):
            with pytest.raises(error, match=words):
                do(given)
    with pytest.raises(FileNotFoundError, match="no-such-folder does not exist"):
        save(fitted(), folder / "model")
    with pytest.raises(FileNotFoundError, match=none):
        load(path)


# --- damaged, foreign and newer files -----------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, 0.99, -1])
def test_a_truncated_file_is_damaged(kept, path):
    save(fitted(), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data)) if isinstance(kept, float) else kept])
    with pytest.raises(ModelFileError, match="damaged or incomplete"):
        load(path)


def test_a_flipped_byte_in_an_array_is_damage(path):
    estimator = fitted()
    save(estimator, path)
    data = bytearray(path.read_bytes())
    place = data.find(estimator.components_.tobytes()[:64])
    assert place > 0
    data[place + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"damaged or incomplete: .*\.npy"):
        load(path)


def a_pickle(path):
    path.write_bytes(pickle.dumps(fitted()))


def a_text(path):
    path.write_text("landmarks, features")


def a_zip(path):
    path.write_bytes(archive.zipped({"notes.txt": "nothing"}))


def arrays(path):
    with open(path, "wb") as file:
        np.savez(file, X=X)


def by_skops(path):
    skops.io.dump(fitted(), path)


@pytest.mark.parametrize("write", [a_pickle, a_text, a_zip, arrays, by_skops])
def test_a_foreign_file_is_no_model_file(write, path):
    write(path)
    with pytest.raises(ModelFileError, match=r"is not a model file.*nystrom\.save"):
        load(path)


def test_another_format_is_refused(path):
    save(fitted(), path)
    rewritten(path, nystrom={"format": FORMAT + 1, "nystrom": "9.8.7"})
    told = r"format 3, written by nystrom 9\.8\.7; .* reads format 2\. Load it with"
    with pytest.raises(ModelFileError, match=told):
        load(path)


@pytest.mark.parametrize(
    "about", [{}, [], "x", {"format": "1"}, {"format": 0}], ids=str
)
def test_a_file_without_a_format_is_damaged(about, path):
    save(fitted(), path)
    rewritten(path, nystrom=about)
    with pytest.raises(ModelFileError, match="no format number"):
        load(path)


def test_a_trusted_name_that_is_gone_is_explained(path, monkeypatch):
    save(Nystroem(product), path)
    monkeypatch.delattr(f"{__name__}.product")
    with pytest.raises(ModelFileError, match=r"cannot be loaded here: .*'product'"):
        load(path, trusted=here("product"))


# --- nothing runs -------------------------------------------------------------------


def text(value):
    return node("JsonNode", "builtins", "str", json.dumps(value))


def a_call(module, name, argument):
    """A constructor to be called."""
    arguments = node("TupleNode", "builtins", "tuple", [text(argument)])
    return node("ConstructorFromReduceNode", module, name, arguments)


def a_key(module, name, argument):
    """A key of a dict, made by calling its type."""
    kind = {"__class__": name, "__module__": module, "__loader__": "TypeNode"}
    kinds = node("ListNode", "builtins", "list", [kind])
    return {
        **node("DictNode", "builtins", "dict", {argument: text(0)}),
        "key_types": kinds,
    }


def a_container(module, name, argument):
    """A list whose type is something else."""
    return node("ListNode", module, name, [text(argument)])


def a_function(module, name, argument):
    return {"__class__": name, "__module__": module, "__loader__": "FunctionNode"}


@pytest.mark.parametrize("make", [a_call, a_key, a_container, a_function])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("spy", "Thing"),
    ],
)
def test_a_name_that_is_not_known_is_refused_and_nothing_runs(
    make, module, name, path, monkeypatch
):
    mark = path.with_name("mark")
    arguments = {"system": f"touch {mark}", "eval": f"open({str(mark)!r}, 'w')"}
    path.with_name("spy.py").write_text(f"open({str(mark)!r}, 'w')\nThing = print\n")
    monkeypatch.syspath_prepend(path.parent)
    save(fitted(), path)
    schema = {**make(module, name, arguments.get(name, "x")), "protocol": 2}
    rewritten(path, schema=schema)
    with pytest.raises(UntrustedTypesError) as refused:
        load(path)
    assert refused.value.names == (f"{module}.{name}",)
    assert not mark.exists()
    assert "spy" not in sys.modules


@pytest.mark.parametrize("make", [a_call, a_key, a_container, a_function])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("nystrom", "save"),
        ("nystrom", "engines"),
        ("nystrom", "landmarks.Landmarks"),
        ("nystrom.landmarks", "Landmarks"),
        ("nystrom.kernels", "RBF"),
        ("nystrom.kernels.given", "spy"),
        ("nystrom.kernels.spy", "Thing"),
        ("nystrom.sources.output", "ArraySink"),
        ("nystrom.", "Landmarks"),
    ],
)
def test_what_the_table_has_not_is_refused_also_if_trusted(
    make, module, name, path, monkeypatch
):
    mark = path.with_name("mark")
    path.with_name("spy.py").write_text(f"open({str(mark)!r}, 'w')\nThing = print\n")
    monkeypatch.setattr(kernels, "__path__", [*kernels.__path__, str(path.parent)])
    save(fitted(), path)
    rewritten(path, schema={**make(module, name, "x"), "protocol": 2})
    for trusted in [], [f"{module}.{name}"]:
        with pytest.raises(ModelFileError, match=f"names {re.escape(module)}.{name},"):
            load(path, trusted=trusted)
    assert not mark.exists()
    assert "nystrom.kernels.spy" not in sys.modules


def test_names_deep_inside_are_refused_too(path):
    save(Nystroem(kernels.RBF(1.0) + kernels.Linear()), path)
    schema = json.loads(archive.entries_of(path.read_bytes())["schema.json"])
    (deep,) = (part for _, part in iter_nodes(schema) if part["__class__"] == "Linear")
    deep["__module__"] = kernels.Linear.__module__
    rewritten(path, schema=schema)
    with pytest.raises(ModelFileError, match=r"it names nystrom\.\S+\.Linear, which"):
        load(path)


def test_of_two_schemas_the_one_that_is_read_is_the_one_that_is_checked(path):
    save(fitted(), path)
    second = json.dumps({**a_call("os", "system", "x"), "protocol": 2})
    entries = archive.entries_of(path.read_bytes())
    path.write_bytes(archive.zipped([*entries.items(), ("schema.json", second)]))
    with pytest.raises(UntrustedTypesError, match=r"uses os\.system,"):
        load(path)


def test_the_files_that_are_refused_would_run_if_trusted(path):
    mark = path.with_name("mark")
    save(fitted(), path)
    rewritten(path, schema={**a_call("os", "system", f"echo > {mark}"), "protocol": 2})
    assert load(path, trusted=["os.system"]) == 0
    assert mark.exists()

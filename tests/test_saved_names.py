"""Model files say names of one table, which has a row for all that estimators hold."""

import functools
import inspect
import json
import sys
import types
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from lists import classes
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gp
from sklearn.preprocessing import StandardScaler

import nystrom
from nystrom import (
    BlockwiseTransformer,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    kernels,
    load,
    samplers,
    save,
    sources,
)
from nystrom._model_schema import SAVED_CLASSES, iter_nodes

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
NEW = RNG.standard_normal((7, 3))
FEW = {"gamma": 0.3, "n_landmarks": 8, "random_state": 0}
RBF = {"kernel": "rbf", **FEW}
WORDS = ["tree", "three", "free", "brie", "grief", "tea", "fee", "bee", "seed", "sea"]


def common_letters(a, b):
    return len(set(a) & set(b))


def products(A, B):
    return A @ B.T


def squares(A):
    return (A**2).sum(axis=1)


def features(rows=X, **params):
    return Nystroem(**{"n_components": 6, "random_state": 0} | params).fit(rows)


def described(model):
    """With all that is only computed when it is asked for."""
    marks = model.landmarks_ if isinstance(model.landmarks_, tuple) else None
    for landmarks in marks or [model.landmarks_]:
        _ = landmarks.factor.root, landmarks.factor.full_root, str(landmarks)
    return model


#: Every estimator in every way that makes it hold something else. What is not of the
#: package and not scikit-learn's is trusted by its name, beside.
FITTED = {
    "BlockwiseTransformer": lambda: BlockwiseTransformer(StandardScaler()).fit(X),
    "nystroem": lambda: features(),
    "nystroem_float32": lambda: features(X.astype("f4")),
    "nystroem_csr": lambda: features(sp.csr_array(X)),
    "nystroem_source": lambda: features(sources.as_source(X)),
    "nystroem_ridge": lambda: features(max_spectral_error=1.0, n_components=None),
    "nystroem_max_trace_error": lambda: features(max_trace_error=0.5),
    "nystroem_used": lambda: described(features()),
    "nystroem_precomputed": lambda: features(X @ X.T, kernel="precomputed"),
    "nystroem_words": lambda: features(WORDS, n_components=4, kernel=common_letters),
    "nystroem_words_max_trace_error": lambda: features(
        WORDS, n_components=None, kernel=common_letters, max_trace_error=0.3
    ),
    "nystroem_blocks": lambda: features(
        kernel=kernels.blockwise(products, diag=squares)
    ),
    "nystroem_sum": lambda: features(
        kernel=kernels.RBF(0.1) + 0.5 * kernels.Linear() * kernels.Polynomial()
    ),
    "nystroem_guaranteed": lambda: features(
        sampler=samplers.Recursive(delta=0.01),
        max_spectral_error=30.0,
        n_components=None,
    ),
    "ridge": lambda: KernelRidge(**RBF).fit(X, Y),
    "ridge_one_target": lambda: KernelRidge(**RBF).fit(X, Y[:, 0]),
    "ridge_intercept": lambda: KernelRidge(fit_intercept=True, **RBF).fit(X, Y),
    "ridge_weights": lambda: KernelRidge(**RBF).fit(X, Y, np.arange(60.0)),
    "ridge_cg": lambda: KernelRidge(solver="cg", **RBF).fit(X, Y),
    "ridge_full": lambda: KernelRidge(solver="full", **RBF).fit(X, Y),
    "ridge_exact": lambda: KernelRidge(kernel="rbf").fit(X, Y),
    "ridge_exact_source": lambda: KernelRidge().fit(sources.as_source(X), Y),
    "ridge_epsilon": lambda: KernelRidge(
        alpha=10.0, epsilon=0.5, kernel="rbf", n_landmarks=None, random_state=0
    ).fit(X, Y),
    "ridge_proven": lambda: KernelRidge(
        alpha=20.0, epsilon=0.9, delta=0.03, kernel="rbf", n_landmarks=None
    ).fit(X, Y),
    "ridge_stream": lambda: KernelRidge(**RBF).partial_fit(X, Y).partial_fit(X, Y),
    "nystroem_stream": lambda: Nystroem(n_components=8).partial_fit(X).partial_fit(X),
    "ridge_cv": lambda: KernelRidgeCV(**RBF).fit(X, Y),
    "ridge_cv_folds": lambda: KernelRidgeCV(cv=3, **RBF).fit(X, Y),
    "ridge_cv_widths": lambda: KernelRidgeCV(
        gammas=[0.1, 1.0], kernel="rbf", n_landmarks=8, cv="loo", random_state=0
    ).fit(X, Y),
    "classifier": lambda: KernelRidgeClassifier(**RBF).fit(X, Y[:, 0] > 0),
    "classifier_names": lambda: KernelRidgeClassifier(**RBF).fit(
        X, np.array(["a", "b", "c"])[np.digitize(Y[:, 1], [-0.5, 0.5])]
    ),
    "classifier_exact": lambda: KernelRidgeClassifier(kernel="rbf").fit(X, Y[:, 0] > 0),
    "logistic": lambda: KernelLogisticRegression(**FEW).fit(X, Y[:, 0] > 0),
    "logistic_costs": lambda: KernelLogisticRegression([0.1, 1.0], **FEW).fit(
        X, np.array(["a", "b", "c"])[np.digitize(Y[:, 1], [-0.5, 0.5])]
    ),
    "classifier_cv": lambda: KernelRidgeClassifierCV(**RBF).fit(X, Y[:, 0] > 0),
    "classifier_cv_widths": lambda: KernelRidgeClassifierCV(
        n_landmarks=[4, 8], scoring="log_loss", random_state=0
    ).fit(X, np.array(["a", "b", "c"])[np.digitize(Y[:, 1], [-0.5, 0.5])]),
    "pca": lambda: KernelPCA(2, **RBF).fit(X),
    "pca_back": lambda: KernelPCA(2, fit_inverse_transform=True, **RBF).fit(X),
    "pca_exact": lambda: KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X),
    "kmeans": lambda: KernelKMeans(2, **FEW).fit(X),
    "cut": lambda: KernelKMeans(2, affinity_normalize=True, **FEW).fit(X),
    "cca": lambda: KernelCCA(2, **FEW).fit(X, Y),
    "process": lambda: GaussianProcessRegressor(
        gp.RBF() + gp.WhiteKernel(), n_landmarks=8, optimizer=None, random_state=0
    ).fit(X, Y),
    "process_mapped": lambda: GaussianProcessRegressor(
        gp.RBF() + gp.WhiteKernel(),
        n_landmarks=8,
        optimizer=None,
        metric="matrix",
        random_state=0,
    ).fit(X, Y),
    "process_exact": lambda: GaussianProcessRegressor(
        kernels.RBF(0.3) * kernels.Laplacian(0.1), alpha=0.1, optimizer=None
    ).fit(X, Y),
    "cca_paper": lambda: KernelCCA(
        2, kernel=("rbf", "laplacian"), form="paper", n_landmarks=8, random_state=0
    ).fit(X, Y),
    **{
        f"sampler_{name}": functools.partial(features, sampler=name)
        for name in samplers.NAMES
    },
}
OWN = [f"{__name__}.{name}" for name in ("common_letters", "products", "squares")]


def all_subclasses(cls):
    return {cls}.union(*map(all_subclasses, cls.__subclasses__()))


def kernels_of_the_package():
    own = {c for c in all_subclasses(kernels.Kernel) if of_package(c)}
    # Remembered is there while landmarks are chosen; no model has it.
    return {c for c in own if not inspect.isabstract(c)}


def public_samplers():
    given = {samplers.GivenPoints, samplers.GivenRows}
    return given.union(classes(samplers, samplers.Sampler).values())


def of_package(cls):
    return cls.__module__.split(".")[0] == "nystrom"


def held(thing, seen=None):
    """The classes of this package that a thing holds, itself included."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return set()
    seen[id(thing)] = thing
    if isinstance(thing, dict):
        inner = [*thing.values()]
    elif isinstance(thing, (list, tuple, set)):
        inner = [*thing]
    elif isinstance(thing, np.ndarray):
        inner = thing.tolist() if thing.dtype == object else []
    elif isinstance(thing, (type, types.FunctionType)):
        inner = []
    else:
        inner = [getattr(thing, "__self__", None), getattr(thing, "__dict__", None)]
    own = {type(thing)} if of_package(type(thing)) else set()
    return own.union(*(held(part, seen) for part in inner))


@functools.cache
def fitted(name):
    return FITTED[name]()


def names_in(path):
    """All (module, name) that a file says."""
    with zipfile.ZipFile(path) as archive:
        schema = json.loads(archive.read("schema.json"))
    return {(part["__module__"], part["__class__"]) for _, part in iter_nodes(schema)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nystrom"


# --- every class that is held has its row --------------------------------------------


@pytest.mark.parametrize("name", FITTED)
def test_a_fitted_estimator_is_saved_by_names_of_the_table_alone(name, path):
    model = fitted(name)
    assert held(model) <= set(SAVED_CLASSES.values())
    save(model, path)
    own = {named for named in names_in(path) if named[0].split(".")[0] == "nystrom"}
    assert own == {("nystrom", saved_as(cls)) for cls in held(model)}
    assert b"nystrom." not in schema_text(path)
    assert held(load(path, trusted=OWN)) == held(model)


def schema_text(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("schema.json")


def saved_as(cls):
    return next(name for name, other in SAVED_CLASSES.items() if other is cls)


def test_no_row_is_for_a_class_that_nothing_holds():
    found = set().union(*(held(fitted(name)) for name in FITTED))
    assert (
        set(SAVED_CLASSES.values())
        == found | kernels_of_the_package() | public_samplers()
    )


def test_every_public_estimator_kernel_and_sampler_has_a_row():
    estimators = set(classes(nystrom, BaseEstimator).values())
    assert estimators == {type(fitted(name)) for name in FITTED}
    values = kernels_of_the_package() | set(samplers.NAMES.values())
    assert len(values) > 15
    assert estimators | values <= set(SAVED_CLASSES.values())


# --- a name is one class's, and stays ------------------------------------------------


def test_a_class_has_one_name():
    assert len(set(SAVED_CLASSES.values())) == len(SAVED_CLASSES)
    assert all(name.isidentifier() for name in SAVED_CLASSES)


@pytest.fixture
def moved(monkeypatch):
    """Moves a class to a new module, under a new name."""
    was = []

    def move(cls, module, name):
        elsewhere = types.ModuleType(module)
        setattr(elsewhere, name, cls)
        monkeypatch.setitem(sys.modules, module, elsewhere)
        was.append((cls, cls.__module__, cls.__name__))
        cls.__module__, cls.__name__ = module, name

    yield move
    for cls, module, name in was:
        cls.__module__, cls.__name__ = module, name


def test_a_class_that_moves_and_is_renamed_keeps_its_files(path, moved):
    model = features()
    save(model, path)
    before = names_in(path)
    moved(type(model.landmarks_), "nystrom.elsewhere", "Chosen")
    moved(type(model), "nystrom.elsewhere.inside", "_Features")
    np.testing.assert_array_equal(load(path).transform(NEW), model.transform(NEW))
    save(model, path)
    assert names_in(path) == before

"""The names that a model file may say, and what they stand for.

For a class of this package a file says `nystrom` and a name of the table here, and
never a module: modules move and classes are renamed without breaking files. What is not
in the table is neither saved nor found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from .estimators.kernel_cca import KernelCCA
from .estimators.kernel_kmeans import KernelKMeans
from .estimators.kernel_logistic_regression import KernelLogisticRegression
from .estimators.kernel_pca import KernelPCA
from .estimators.kernel_ridge import KernelRidge
from .estimators.kernel_ridge_classifier import KernelRidgeClassifier
from .estimators.kernel_ridge_classifier_cv import KernelRidgeClassifierCV
from .estimators.kernel_ridge_cv import KernelRidgeCV
from .estimators.nystroem import Nystroem
from .estimators.on_few_rows import ExactRidge
from .estimators.ridge_base import Model
from .factor import Factor
from .guarantee import Guarantee
from .kernels.algebra import Multiple, Product, Sum
from .kernels.entrywise import AdditiveChi2, Chi2, Laplacian
from .kernels.euclidean import RBF, Matern, RationalQuadratic
from .kernels.given import Blockwise, Pairwise
from .kernels.inner_product import Cosine, Linear, Polynomial, Sigmoid
from .kernels.precomputed import NewRows, Precomputed
from .landmarks import Landmarks
from .methods.cca import View
from .methods.kmeans.clustering import Centers
from .methods.linear_map import LinearMap
from .methods.link import Link
from .methods.preimage import Preimage
from .methods.ridge.full_posterior import FullPosterior
from .methods.ridge.posterior import Posterior
from .methods.ridge.risk import RiskBound
from .methods.ridge.running import RunningSums
from .methods.spectral_embedding import Embedding
from .moments import Moments
from .reservoir import Reservoir
from .samplers import (
    Accelerated,
    GainPivoted,
    GivenPoints,
    GivenRows,
    Greedy,
    KMeans,
    Leverage,
    Recursive,
    RPCholesky,
    Uniform,
)
from .trace_error import TraceError

#: Stands in files for all modules of this package.
PACKAGE = "nystrom"
#: Saved names and what they stand for. A name stays once a release has written it; the
#: class beside it may move and be renamed. A file may call a class here with anything,
#: so none that opens files or starts threads.
SAVED: dict[str, type] = {
    # estimators
    "KernelCCA": KernelCCA,
    "KernelKMeans": KernelKMeans,
    "KernelLogisticRegression": KernelLogisticRegression,
    "KernelPCA": KernelPCA,
    "KernelRidge": KernelRidge,
    "KernelRidgeCV": KernelRidgeCV,
    "KernelRidgeClassifier": KernelRidgeClassifier,
    "KernelRidgeClassifierCV": KernelRidgeClassifierCV,
    "Nystroem": Nystroem,
    # what they hold once fitted
    "CCAView": View,
    "ExactRidge": ExactRidge,
    "Factor": Factor,
    "FullPosterior": FullPosterior,
    "Guarantee": Guarantee,
    "KMeansCenters": Centers,
    "Landmarks": Landmarks,
    "LinearMap": LinearMap,
    "NormalizedCut": Embedding,
    "PCAPreimage": Preimage,
    "ProbabilityLink": Link,
    "RidgeModel": Model,
    "Reservoir": Reservoir,
    "RidgePosterior": Posterior,
    "RiskBound": RiskBound,
    "RunningMoments": Moments,
    "RunningSums": RunningSums,
    "TraceError": TraceError,
    # kernels
    "AdditiveChi2": AdditiveChi2,
    "Blockwise": Blockwise,
    "Chi2": Chi2,
    "Cosine": Cosine,
    "Laplacian": Laplacian,
    "Linear": Linear,
    "Matern": Matern,
    "Multiple": Multiple,
    "NewRows": NewRows,
    "Pairwise": Pairwise,
    "Polynomial": Polynomial,
    "Precomputed": Precomputed,
    "Product": Product,
    "RBF": RBF,
    "RationalQuadratic": RationalQuadratic,
    "Sigmoid": Sigmoid,
    "Sum": Sum,
    # samplers
    "Accelerated": Accelerated,
    "GainPivoted": GainPivoted,
    "GivenPoints": GivenPoints,
    "GivenRows": GivenRows,
    "Greedy": Greedy,
    "KMeans": KMeans,
    "Leverage": Leverage,
    "RPCholesky": RPCholesky,
    "Recursive": Recursive,
    "Uniform": Uniform,
}


@cache
def allowed_names() -> frozenset[str]:
    """What a file may name without being trusted: the table, and harmless others."""
    return frozenset(f"{PACKAGE}.{name}" for name in SAVED) | _other_names()


def to_saved(schema: dict[str, Any], estimator: str) -> None:
    """Put saved names where skops wrote modules and classes of this package."""
    names = {(cls.__module__, cls.__name__): name for name, cls in SAVED.items()}
    for where, part in parts(schema, estimator):
        # skops gives a method the module of the class that it is inherited from.
        method = part["__loader__"] == "MethodNode"
        owner = part["content"]["obj"] if method else part
        key = owner["__module__"], owner["__class__"]
        if not _of_package(owner["__module__"]):
            continue
        if key not in names:
            raise TypeError(
                f"{where} is {'.'.join(key)}, for which model files have no name. Take "
                "it out, or use pickle or joblib. (A class of this package that "
                "estimators hold needs a row in SAVED of saved_names.py.)"
            )
        part["__module__"], part["__class__"] = PACKAGE, names[key]


def to_python(schema: dict[str, Any]) -> None:
    """Put modules and classes where a file has saved names; refuse all else of ours."""
    for _, part in parts(schema):
        module, name = part["__module__"], part["__class__"]
        if not _of_package(module):
            continue
        if module != PACKAGE or name not in SAVED:
            raise LookupError(
                f"it names {module}.{name}, which is none of the names that model "
                f"files have for classes of {PACKAGE}"
            )
        part["__module__"] = SAVED[name].__module__
        part["__class__"] = SAVED[name].__name__


def python_name(name: str) -> str:
    """The full name of what a file calls so: of a class, or of a method of one."""
    package, _, rest = name.partition(".")
    saved, dot, method = rest.partition(".")
    if package != PACKAGE or saved not in SAVED:
        return name
    cls = SAVED[saved]
    return f"{cls.__module__}.{cls.__name__}{dot}{method}"


def parts(tree: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All that was saved, with the way to it, as `Pipeline.steps[1][1].kernel`."""
    if isinstance(tree, dict):
        if isinstance(tree.get("__loader__"), str):
            yield where, tree
        for key, value in tree.items():
            way = where if key in ("content", "attrs") else f"{where}.{key}"
            yield from parts(value, way)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from parts(value, f"{where}[{i}]")


def _of_package(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _other_names() -> frozenset[str]:
    """Harmless names that skops does not trust: CSR, dtypes, a search's parts.

    A search holds its splitter and its scorer, and a scorer its metric; some also hold
    which metadata they ask for (scikit-learn < 1.8).
    """
    from sklearn import model_selection
    from sklearn.dummy import DummyClassifier
    from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
    from sklearn.utils.metadata_routing import MetadataRequest

    sparse = (c for c in _classes(sp) if issubclass(c, (sp.sparray, sp.spmatrix)))
    splitters = (c for c in _classes(model_selection) if hasattr(c, "get_n_splits"))
    scorers = [get_scorer(name) for name in get_scorer_names()]
    metrics = (scorer._score_func for scorer in scorers)
    # The scorer of a search without `scoring` calls the estimator's own `score`.
    kinds = {type(scorer) for scorer in [*scorers, check_scoring(DummyClassifier())]}
    requests = (MetadataRequest, type(MetadataRequest(owner=None).fit))
    return frozenset(
        map(_full_name, [np.dtype, *sparse, *splitters, *metrics, *kinds, *requests])
    )


def _classes(module: ModuleType) -> Iterator[type]:
    return (thing for thing in vars(module).values() if isinstance(thing, type))


def _full_name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__name__}"

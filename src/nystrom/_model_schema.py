"""What a model file may contain: names of classes, and arrays no larger than the file.

A file stores `nystrom` and a name of `SAVED_CLASSES`, never a module: modules move and
classes are renamed without breaking files. What is not in the table is neither saved
nor loaded. `save` stores entries uncompressed and every array once. A file that is
forged to need far more memory or time than it has bytes shows it in its list of
entries, array headers and references; it is refused before anything is read.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from . import kernels, samplers
from .estimators._ridge import RidgeModel
from .estimators.blockwise_transformer import BlockwiseTransformer
from .estimators.gaussian_process import GaussianProcessRegressor
from .estimators.kernel_cca import KernelCCA
from .estimators.kernel_kmeans import (
    EmbeddingClusters,
    FeatureSpaceClusters,
    KernelKMeans,
)
from .estimators.kernel_logistic_regression import KernelLogisticRegression
from .estimators.kernel_pca import KernelPCA
from .estimators.kernel_ridge import KernelRidge, KernelRidgeCV
from .estimators.kernel_ridge_classifier import (
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
)
from .estimators.nystroem import Nystroem
from .kernels.base import Product, Scaled, Sum
from .kernels.gaussian_process import FixedKernel, MappedKernel
from .landmarks import Landmarks
from .linalg.errors import Guarantee, TraceError
from .linalg.factor import Factor
from .linalg.features import LinearMap
from .linalg.moments import Moments
from .models.calibration import ProbabilityLink
from .models.cca import CanonicalView
from .models.kmeans import ClusterCenters
from .models.pca import Preimage, SpectralEmbeddingMap
from .models.posterior import Posterior
from .models.ridge import RiskBound
from .models.ridge_full import FullPosterior
from .models.ridge_solvers import ExactPosterior
from .models.streaming import StreamingMoments
from .samplers.streaming import Reservoir

#: Stands in files for all modules of this package.
SAVED_PACKAGE = "nystrom"
#: Saved names and what they stand for. A name stays once a release has written it; the
#: class beside it may move and be renamed. A file may call a class here with anything,
#: so none that opens files or starts threads.
SAVED_CLASSES: dict[str, type] = {
    # estimators
    "BlockwiseTransformer": BlockwiseTransformer,
    "GaussianProcessRegressor": GaussianProcessRegressor,
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
    "CCAView": CanonicalView,
    "EmbeddingClusters": EmbeddingClusters,
    "ExactPosterior": ExactPosterior,
    "Factor": Factor,
    "FixedKernel": FixedKernel,
    "FeatureSpaceClusters": FeatureSpaceClusters,
    "FullPosterior": FullPosterior,
    "Guarantee": Guarantee,
    "KMeansCenters": ClusterCenters,
    "Landmarks": Landmarks,
    "LinearMap": LinearMap,
    "MappedKernel": MappedKernel,
    "NormalizedCut": SpectralEmbeddingMap,
    "PCAPreimage": Preimage,
    "ProbabilityLink": ProbabilityLink,
    "RidgeModel": RidgeModel,
    "Reservoir": Reservoir,
    "RidgePosterior": Posterior,
    "RiskBound": RiskBound,
    "RunningMoments": Moments,
    "RunningSums": StreamingMoments,
    "TraceError": TraceError,
    # kernels
    "AdditiveChi2": kernels.AdditiveChi2,
    "Blockwise": kernels.Blockwise,
    "Chi2": kernels.Chi2,
    "Cosine": kernels.Cosine,
    "Laplacian": kernels.Laplacian,
    "Linear": kernels.Linear,
    "Mahalanobis": kernels.Mahalanobis,
    "Matern": kernels.Matern,
    "Multiple": Scaled,
    "NewRows": kernels.PrecomputedCross,
    "Pairwise": kernels.Pairwise,
    "Polynomial": kernels.Polynomial,
    "Precomputed": kernels.Precomputed,
    "Product": Product,
    "RBF": kernels.RBF,
    "RationalQuadratic": kernels.RationalQuadratic,
    "Sigmoid": kernels.Sigmoid,
    "Sum": Sum,
    # samplers
    "Accelerated": samplers.Accelerated,
    "GainPivoted": samplers.PooledGreedy,
    "GivenPoints": samplers.GivenPoints,
    "GivenRows": samplers.GivenRows,
    "Greedy": samplers.Greedy,
    "KMeans": samplers.KMeans,
    "Leverage": samplers.Leverage,
    "RPCholesky": samplers.RPCholesky,
    "Recursive": samplers.Recursive,
    "Uniform": samplers.Uniform,
}


@cache
def allowed_names() -> frozenset[str]:
    """What a file may name without being trusted: the table, and harmless others."""
    ours = frozenset(f"{SAVED_PACKAGE}.{name}" for name in SAVED_CLASSES)
    return ours | _third_party_names()


def to_saved_names(schema: dict[str, Any], estimator: str) -> None:
    """Put saved names where skops wrote modules and classes of this package."""
    names = {
        (cls.__module__, cls.__name__): name for name, cls in SAVED_CLASSES.items()
    }
    for path, node in iter_nodes(schema, estimator):
        # skops gives a method the module of the class that it is inherited from.
        is_method = node["__loader__"] == "MethodNode"
        owner = node["content"]["obj"] if is_method else node
        key = owner["__module__"], owner["__class__"]
        if not _is_package_module(owner["__module__"]):
            continue
        if key not in names:
            raise TypeError(
                f"{path} is {'.'.join(key)}, which model files cannot contain. "
                "Remove it, or use pickle or joblib. (A class of this package that "
                "estimators store needs a row in SAVED_CLASSES of _model_schema.py.)"
            )
        node["__module__"], node["__class__"] = SAVED_PACKAGE, names[key]


def to_python_names(schema: dict[str, Any]) -> None:
    """Put modules and classes where a file has saved names; refuse all else of ours."""
    for _, node in iter_nodes(schema):
        module, name = node["__module__"], node["__class__"]
        if not _is_package_module(module):
            continue
        if module != SAVED_PACKAGE or name not in SAVED_CLASSES:
            raise LookupError(
                f"it names {module}.{name}, which is not a name of model files for "
                f"classes of {SAVED_PACKAGE}"
            )
        node["__module__"] = SAVED_CLASSES[name].__module__
        node["__class__"] = SAVED_CLASSES[name].__name__


def python_name(name: str) -> str:
    """The full name of what a file calls so: of a class, or of a method of one."""
    package, _, qualified = name.partition(".")
    saved_name, dot, method = qualified.partition(".")
    if package != SAVED_PACKAGE or saved_name not in SAVED_CLASSES:
        return name
    cls = SAVED_CLASSES[saved_name]
    return f"{cls.__module__}.{cls.__name__}{dot}{method}"


def iter_nodes(tree: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All that was saved, with the way to it, as `Pipeline.steps[1][1].kernel`."""
    if isinstance(tree, dict):
        if isinstance(tree.get("__loader__"), str):
            yield path, tree
        for key, value in tree.items():
            inner_path = path if key in ("content", "attrs") else f"{path}.{key}"
            yield from iter_nodes(value, inner_path)
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from iter_nodes(value, f"{path}[{i}]")


def _is_package_module(module: str) -> bool:
    return module.partition(".")[0] == SAVED_PACKAGE


def _third_party_names() -> frozenset[str]:
    """Harmless names that skops does not trust: CSR, dtypes, kernels, searches.

    A search holds its splitter and its scorer, and a scorer its metric; some also hold
    which metadata they ask for (scikit-learn < 1.8). A Gaussian process holds kernels.
    """
    from sklearn import model_selection
    from sklearn.dummy import DummyClassifier
    from sklearn.gaussian_process import kernels as gp
    from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
    from sklearn.utils.metadata_routing import MetadataRequest

    scorers = [get_scorer(name) for name in get_scorer_names()]
    metrics = (scorer._score_func for scorer in scorers)
    # The scorer of a search without `scoring` calls the estimator's own `score`.
    scorer_types = map(type, [*scorers, check_scoring(DummyClassifier())])
    splitters = (c for c in _classes(model_selection) if hasattr(c, "get_n_splits"))
    sparse = (c for c in _classes(sp) if issubclass(c, (sp.sparray, sp.spmatrix)))
    gp_kernels = (c for c in _classes(gp) if issubclass(c, gp.Kernel))
    requests = (MetadataRequest, type(MetadataRequest(owner=None).fit))
    parts = [*splitters, *metrics, *scorer_types, *requests]
    things = [np.dtype, *sparse, *gp_kernels, *parts]
    return frozenset(f"{thing.__module__}.{thing.__name__}" for thing in things)


def _classes(module: ModuleType) -> Iterator[type]:
    return (thing for thing in vars(module).values() if isinstance(thing, type))


#: A CSR matrix is compressed; it may become so many times as large, and small ones this
#: many bytes. (A binary column takes about a hundredth of its bytes.)
MAX_SPARSE_EXPANSION, MIN_SPARSE_LIMIT_BYTES = 250, 64 * 2**20
#: NumPy refuses headers of arrays that are longer than this.
MAX_HEADER_BYTES = 2**16


class DamagedFileError(ValueError):
    """A file that is not as `save` wrote it, or that declares more than it holds."""


def check_entries(archive: ZipFile, n_bytes: int) -> None:
    """Refuse entries that are compressed, or together larger than the file."""
    entries = archive.infolist()
    for entry in entries:
        if entry.compress_type != ZIP_STORED:
            raise DamagedFileError(f"{entry.filename} in it is compressed")
    total_bytes = sum(max(entry.file_size, entry.compress_size) for entry in entries)
    if total_bytes > n_bytes:
        raise DamagedFileError(
            f"its entries declare {total_bytes} bytes, but the file has {n_bytes}"
        )


def check_schema(schema: Any) -> None:
    """Refuse values that are read, or gone through, more often than they are written.

    A value that is there twice is written twice, under one number. Numbers that stand
    for longer values would let a short file ask for endless work.
    """
    if _count_values(schema, {}) > _count_values(schema, None):
        raise DamagedFileError(
            "its values refer to each other in a way that save does not write"
        )
    ids: dict[Any, Any] = {}
    for _, node in iter_nodes(schema):
        if "file" not in node:
            continue
        name, node_id = node["file"], node.get("__id__")
        if not node_id or ids.setdefault(name, node_id) != node_id:
            raise DamagedFileError(f"{name} in it belongs to several values")


def _count_values(tree: Any, known: dict[Any, int] | None) -> int:
    """How many values there are in a tree, by their numbers where some are known."""
    if isinstance(tree, list):
        return sum(_count_values(value, known) for value in tree)
    if not isinstance(tree, dict):
        return 0
    node_id = tree.get("__id__") if known is not None and "__loader__" in tree else None
    if known is None or not node_id:
        return 1 + sum(_count_values(value, known) for value in tree.values())
    if node_id not in known:
        known[node_id] = 0  # of itself it is no part
        known[node_id] = 1 + sum(_count_values(value, known) for value in tree.values())
    return known[node_id]


def check_arrays(archive: ZipFile, schema: Any) -> None:
    """Refuse arrays that declare more, or less, than their entries have."""
    for path, node in iter_nodes(schema):
        loader, name = node["__loader__"], node.get("file")
        is_sparse = loader == "SparseMatrixNode"
        if node["__module__"].startswith("scipy.sparse") and not is_sparse:
            # Called with two numbers, such a class would make a matrix of that size.
            raise DamagedFileError(
                f"{path} in it is not a sparse matrix as save writes it"
            )
        if loader == "NdArrayNode" and name is not None:
            entry = archive.getinfo(name)
            with archive.open(entry) as file:
                _check_header(file.read(MAX_HEADER_BYTES), entry.file_size, name)
        elif is_sparse:
            _check_sparse(archive.read(node["file"]), name)


def _check_header(head: bytes, entry_bytes: int, name: Any) -> None:
    file = io.BytesIO(head)
    if np.lib.format.read_magic(file) == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    declared, available = math.prod(shape) * dtype.itemsize, entry_bytes - file.tell()
    if declared != available:
        raise DamagedFileError(
            f"{name} in it declares {declared} bytes of an array, but has {available}"
        )


def _check_sparse(content: bytes, name: Any) -> None:
    with ZipFile(io.BytesIO(content)) as inside:
        entries = inside.infolist()
        total_bytes = sum(entry.file_size for entry in entries)
        limit = max(MIN_SPARSE_LIMIT_BYTES, MAX_SPARSE_EXPANSION * len(content))
        if total_bytes > limit:
            raise DamagedFileError(
                f"{name} in it unpacks from {len(content)} to {total_bytes}"
            )
        for entry in entries:
            with inside.open(entry) as file:
                head = file.read(MAX_HEADER_BYTES)
            _check_header(head, entry.file_size, f"{name}/{entry.filename}")
    matrix = sp.load_npz(io.BytesIO(content))
    # Column numbers beyond the last would be read from memory that is not the matrix's.
    matrix.check_format(full_check=True)

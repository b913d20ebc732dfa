"""What contracts run over, read from the package.

A new kernel, sampler, source, engine or estimator is in these lists by being in the
package. What cannot be read from it, such as how to make one for a test, is a row of a
table by its name; `test_lists.py` names the row that is missing. A member that a
contract leaves out stands here too, with the reason.
"""

from __future__ import annotations

import atexit
import inspect
import itertools
import shutil
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import scipy.sparse as sp
import sklearn
from oracles_kernels import FORMULAS, Case
from pyarrow import parquet
from sklearn.base import clone
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.fixes import parse_version

import nystrom
from nystrom import engines, kernels, samplers, sources
from nystrom.estimators._base import BaseLandmarkEstimator
from nystrom.kernels.names import NAMES as KERNEL_NAMES
from nystrom.kernels.names import as_kernel


def classes(module, base=object):
    """The public classes of a module by name, without those to inherit from."""
    public = {name: getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, base)
        if thing is not base and not inspect.isabstract(thing)
    }


# --- kernels ------------------------------------------------------------------------


def named(name):
    """The kernel of a name with its defaults, for rows of five features."""
    return as_kernel(name, n_features=5)


def cases():
    """Each named kernel beside its formula; two names of the same kernel count once."""
    rows = dict(FORMULAS)
    for name in KERNEL_NAMES:
        if named(name) not in map(named, rows):
            rows[name] = Case(named(name))  # for all that needs no formula
    return list(rows.values())


KERNELS = cases()
SPARSE_KERNELS = [case for case in KERNELS if not case.histograms]
DEFINITE_KERNELS = [case for case in KERNELS if case.kernel.traits.psd]
#: They fall with a distance, from 1 on equal rows.
DISTANCE_KERNELS = [case for case in KERNELS if case.kernel.traits.is_distance_based]

#: Kernels without a name, since users bring what they are made of.
USERS_KERNELS = {
    "Blockwise": "a function of two blocks; tests/test_kernels.py",
    "PrecomputedCross": "kernel values of new rows; tests/test_bad_input.py",
    "Pairwise": "a function of two rows; tests/test_kernels.py",
    "Precomputed": "a matrix; tests/test_kernels.py",
    "Mahalanobis": "another kernel after a linear map; tests/test_metric.py",
}

#: Names of kernels, by what they take.
GAMMA_NAMES = [name for name in KERNEL_NAMES if "gamma" in KERNEL_NAMES[name].takes]
DISTANCE_NAMES = [name for name in GAMMA_NAMES if named(name).traits.is_distance_based]
HISTOGRAM_NAMES = [name for name in FORMULAS if FORMULAS[name].histograms]

# --- samplers -----------------------------------------------------------------------

SAMPLERS = list(samplers.NAMES)

#: Why a contract leaves a sampler out, or asks less of it.
OFF_THE_ROWS = {"kmeans": "means of dense rows, for kernels of a distance: no indices"}
CUBIC = {"leverage": "exact scores of n rows take O(n³)"}
MANY_PASSES = {"greedy": "looks at all rows again after every few landmarks"}
WITHOUT_SCORES = {"uniform": "looks at no kernel value"}
WITHOUT_SEED = {"greedy": "asks for no random number"}
MISSING_RARE_ROWS = {
    "uniform": "a rare row is drawn as rarely",
    "accelerated": "scores from one small sample: it trades rare rows for time",
}


def but(*reasons):
    """All samplers without those that one of the tables has a reason for."""
    return [name for name in SAMPLERS if not any(name in table for table in reasons)]


#: Their landmarks are rows, of any kind.
CHOOSING = but(OFF_THE_ROWS)
#: They take a ridge, in place of a number of landmarks.
RIDGED = [
    name
    for name, make in samplers.NAMES.items()
    if "max_spectral_error" in getattr(make, "__dataclass_fields__", {})
]
#: They report the ridge of their scores, and the effective dimension there.
SCORED = [*RIDGED, "accelerated"]
#: They go on until an error is reached; the others need a number to begin with.
GROWING = [name for name, make in samplers.NAMES.items() if hasattr(make, "grow")]
FIXED = [name for name in SAMPLERS if name not in GROWING]

# --- sources ------------------------------------------------------------------------


def of_twice_as_many(make):
    """Every other row of a source that holds each row twice."""
    return lambda X: make(
        sources.DenseRows(np.repeat(X, 2, axis=0)), 2 * np.arange(len(X))
    )


@dataclass(frozen=True)
class Cut:
    """Makes rows by cutting them out of an array."""

    X: np.ndarray

    def __call__(self, start, stop):
        return self.X[start:stop]


#: Files of one run of the tests.
FOLDER = tempfile.mkdtemp(prefix="nystrom-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def in_file(ending):
    """Rows in a file of their own, in the columns that they have."""

    def stored(X):
        path = Path(FOLDER) / f"{next(FILES)}{ending}"
        if ending == ".npy":
            np.save(path, X)
        else:
            columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
            parquet.write_table(pyarrow.table(columns), path, row_group_size=777)
        return sources.open(path)

    return stored


FILES = itertools.count()


def in_dask_chunks(X):
    """Rows of a Dask array, in a few chunks, of two columns each."""
    pytest.importorskip("dask.array", reason="Dask is not installed")
    import dask.array as da

    return sources.DaskRows(da.from_array(X, chunks=(len(X) // 3 or 1, 2)))


#: How rows X are stored, where it is not by `Source(X)`.
STORING = {
    "ChunkedFileRows": in_file(".parquet"),
    "NpyRows": in_file(".npy"),
    "ConcatenatedRows": lambda X: sources.ConcatenatedRows(
        [sources.DenseRows(X[:3]), sources.DenseRows(X[3:])]
    ),
    "DaskRows": in_dask_chunks,
    "CachedRows": of_twice_as_many(sources.CachedRows.of),
    "GeneratedRows": lambda X: sources.GeneratedRows(
        Cut(X), *X.shape, chunk=len(X) // 3 or 1
    ),
    "ObjectRows": lambda X: sources.ObjectRows(list(X)),
    "Pair": lambda X: sources.Pair(sources.DenseRows(X), sources.DenseRows(X[:, ::-1])),
    "RowNumbers": lambda X: sources.RowNumbers(len(X)),
    "SparseRows": lambda X: sources.SparseRows(sp.csr_array(X)),
    "Subset": of_twice_as_many(sources.Subset),
    "TransformedRows": lambda X: sources.TransformedRows(
        sources.DenseRows(-X), FunctionTransformer(np.negative)
    ),
}
SOURCES = {
    name: STORING.get(name, make)
    for name, make in classes(sources, sources.Source).items()
}

# --- engines ------------------------------------------------------------------------


def saving(progress=engines.silent, **options):
    """Threads, with what they find saved after every tile."""
    path = Path(FOLDER) / f"{uuid.uuid4()}.ckpt"
    run = engines.CheckpointStore(path, every=0)
    run.running().__enter__()
    return engines.Checkpoint(engines.Threads(2, progress, **options), run)


def on_executor(progress=engines.silent, **options):
    """An executor of threads; one for all tests, since tests do not end them."""
    return engines.ExecutorEngine(EXECUTOR, progress=progress, **options)


EXECUTOR = ThreadPoolExecutor(2)
#: How an engine is made, where it is not by its options alone.
ENGINE_MAKING = {"Checkpoint": saving, "ExecutorEngine": on_executor}
#: Options that an engine is to be tried with, besides its progress hook.
ENGINE_OPTIONS = {
    "Threads": [
        {"n_jobs": n, "tiles_per_task": tiles}
        for n, tiles in [(1, 1), (1, 4), (2, 1), (2, 4), (3, 16), (8, 2)]
    ],
}
ENGINES = [
    partial(ENGINE_MAKING.get(name, make), **options)
    for name, make in classes(engines).items()
    if make is not engines.Engine and {"map", "reduce"} <= set(dir(make))
    for options in ENGINE_OPTIONS.get(name, [{}])
]

# --- estimators ---------------------------------------------------------------------

#: Options that an estimator is to be tried with; without a row, its defaults.
ESTIMATOR_OPTIONS = {
    # n_components=100 exceeds the rows of scikit-learn's data sets, where it warns.
    "Nystroem": [
        {"n_components": 5},
        {"n_components": 5, "sampler": "recursive", "kernel": "laplacian"},
        {"n_components": 5, "kernel": kernels.Matern(nu=2.5)},
    ],
    # Linear: some checks ask for a good score with few landmarks.
    "KernelRidge": [
        {},
        {"n_landmarks": 12},
        {"n_landmarks": 12, "solver": "cg", "fit_intercept": True},
        {"n_landmarks": 12, "solver": "full"},
    ],
    "GaussianProcessRegressor": [
        {"alpha": 0.1, "n_landmarks": 100},
        # Linear, as for KernelRidge.
        {"kernel": DotProduct(), "n_landmarks": 12, "alpha": 1.0, "optimizer": None},
    ],
    "KernelRidgeCV": [{}, {"n_landmarks": 12, "cv": 3, "fit_intercept": True}],
    "KernelRidgeClassifier": [{}, {"n_landmarks": 8, "kernel": "rbf"}],
    # Weights are copies to as many digits as steps end at, for a width that is given.
    "KernelLogisticRegression": [
        {"gamma": 0.1, "tol": 0.0},
        {"gamma": 0.1, "tol": 0.0, "n_landmarks": 8, "C": [0.1, 10.0]},
    ],
    "KernelRidgeClassifierCV": [
        {"gamma": 0.1},  # weights do not change gamma="scale" as copies of rows do
        {"n_landmarks": [4, 8], "gamma": 0.1, "cv": 3, "scoring": "log_loss"},
    ],
    "KernelPCA": [
        {"n_components": 3},
        {"n_components": 2, "n_landmarks": 8, "kernel": "rbf"},
    ],
    "KernelKMeans": [
        {"n_clusters": 2},
        {"n_clusters": 2, "n_landmarks": 8, "n_init": 2},
        {"n_clusters": 2, "n_landmarks": 8, "affinity_normalize": True},
    ],
    "KernelCCA": [{}, {"n_components": 1, "n_landmarks": 8}],
}


def seeded(make, options):
    """An estimator that does the same every time."""
    estimator = make(**options)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    return estimator


ESTIMATORS = [
    seeded(make, options)
    for name, make in classes(nystrom, BaseLandmarkEstimator).items()
    for options in ESTIMATOR_OPTIONS.get(name, [{}])
]


def with_few_landmarks(estimator, **options):
    """A copy that needs landmarks for few rows too, where it has them."""
    estimator = clone(estimator).set_params(**options)
    few = {"n_landmarks": 8} if "n_landmarks" in estimator.get_params() else {}
    return estimator.set_params(**few)


def older_than(version):
    """Whether scikit-learn is."""
    return parse_version(sklearn.__version__) < parse_version(version)


def skip_older_array_api(check):
    """Before 1.9 its checks of arrays of other libraries asked for something else."""
    if "check_array_api_input" in str(check) and older_than("1.9"):
        pytest.skip("scikit-learn 1.9 is the first with this check as it is")

"""Kernel methods in linear time.

A `Source` reads rows block by block, a `Kernel` evaluates a block of K, and an `Engine`
runs one function over all blocks. A sampler turns these into `Landmarks`, and an
estimator is a linear model on the features of the landmarks.

The landmarks are chosen by recursive ridge leverage scores (Musco & Musco, *Recursive
Sampling for the Nyström Method*, NIPS 2017).

Examples
--------
>>> from sklearn.datasets import load_digits
>>> from nystrom import Nystroem
>>> X, y = load_digits(return_X_y=True)
>>> features = Nystroem(gamma=1e-3, n_components=100, random_state=0).fit_transform(X)
>>> features.shape
(1797, 100)
"""

import importlib.metadata

import sklearn

from . import displays, engines, kernels, samplers, sources
from .estimators.blockwise_transformer import BlockwiseTransformer
from .estimators.gaussian_process import GaussianProcessRegressor
from .estimators.kernel_cca import KernelCCA
from .estimators.kernel_kmeans import KernelKMeans
from .estimators.kernel_logistic_regression import KernelLogisticRegression
from .estimators.kernel_pca import KernelPCA
from .estimators.kernel_ridge import KernelRidge, KernelRidgeCV
from .estimators.kernel_ridge_classifier import (
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
)
from .estimators.nystroem import Nystroem
from .functions import (
    approximate,
    effective_dimension,
    estimate_n_landmarks,
    leverage_scores,
    select_landmarks,
    spectral_embedding,
)
from .onnx import export_onnx, register_onnx
from .persistence import load, save

__version__ = "1.0.0rc1"

__all__ = [
    "BlockwiseTransformer",
    "GaussianProcessRegressor",
    "KernelCCA",
    "KernelKMeans",
    "KernelLogisticRegression",
    "KernelPCA",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRidgeClassifier",
    "KernelRidgeClassifierCV",
    "Nystroem",
    "approximate",
    "displays",
    "effective_dimension",
    "engines",
    "estimate_n_landmarks",
    "export_onnx",
    "kernels",
    "leverage_scores",
    "load",
    "register_onnx",
    "samplers",
    "save",
    "select_landmarks",
    "show_versions",
    "sources",
    "spectral_embedding",
]


def show_versions() -> None:
    """Print the versions of this package and of all that it uses, for a bug report.

    Examples
    --------
    >>> import nystrom
    >>> nystrom.show_versions()  # doctest: +ELLIPSIS
    nystrom: ...
    """
    print(f"nystrom: {__version__}")
    others = ("skops", "array-api-compat", "pyarrow", "h5py", "zarr", "dask", "torch")
    for name in others:
        try:
            print(f"{name}: {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{name}: not installed")
    sklearn.show_versions()

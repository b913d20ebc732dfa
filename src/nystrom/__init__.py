"""Kernel methods in linear time.

A **Source** gives rows, block by block; a **Sink** takes rows.
A **Kernel** turns two blocks into a block of K.
An **Engine** runs one function over all blocks and adds up what comes back.
A **sampler** turns kernel, source and engine into **Landmarks**.
An **Approximation** is the factor K ≈ ZZᵀ and knows its own error.
An **estimator** is a linear method on Z behind the scikit-learn contract.

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

from . import datasets, displays, engines, kernels, samplers, sinks, sources
from .estimators.kernel_cca import KernelCCA
from .estimators.kernel_kmeans import KernelKMeans
from .estimators.kernel_logistic_regression import KernelLogisticRegression
from .estimators.kernel_pca import KernelPCA
from .estimators.kernel_ridge import KernelRidge
from .estimators.kernel_ridge_classifier import KernelRidgeClassifier
from .estimators.kernel_ridge_classifier_cv import KernelRidgeClassifierCV
from .estimators.kernel_ridge_cv import KernelRidgeCV
from .estimators.nystroem import Nystroem
from .functions import (
    approximate,
    effective_dimension,
    landmarks_needed,
    leverage_scores,
    select_landmarks,
    spectral_embedding,
)
from .onnx_graph import export_onnx, register_onnx
from .persistence import load, save
from .versions import show_versions

__version__ = "1.0.0rc1"

__all__ = [
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
    "datasets",
    "displays",
    "effective_dimension",
    "engines",
    "export_onnx",
    "kernels",
    "landmarks_needed",
    "leverage_scores",
    "load",
    "register_onnx",
    "samplers",
    "save",
    "select_landmarks",
    "show_versions",
    "sinks",
    "sources",
    "spectral_embedding",
]

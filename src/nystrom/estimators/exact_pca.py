"""`KernelPCA` on few rows: scikit-learn's own class does the work."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from .. import _arrays as arrays
from ..engines import Engine
from ..engines.blas import blas_threads_for
from ..kernels import Kernel
from ..refusals import check_finite
from ..sinks import Output
from ..sources import Block, Source
from .exact import exact_landmarks
from .given_values import without_matrix

#: What scikit-learn's own class takes, and runs exactly.
EXACT_KERNELS = {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"}


def takes(ours: Any, X: Any) -> bool:
    """Whether scikit-learn's own class takes the rows and our parameters."""
    kernel = ours.kernel
    known = (isinstance(kernel, str) and kernel in EXACT_KERNELS) or (
        callable(kernel) and not isinstance(kernel, (Kernel, GaussianProcessKernel))
    )
    plain = (isinstance(X, np.ndarray) and X.ndim == 2) or sp.issparse(X)
    width = ours.gamma is None or isinstance(ours.gamma, Real)
    return known and plain and width and bool(ours.center)


def fitted_exactly(ours: Any, X: Any, kernel: Kernel, source: Source) -> dict[str, Any]:
    """What is fitted: the attributes of their class, which become ours."""
    names = ExactKernelPCA().get_params(deep=False)
    theirs = ExactKernelPCA(**{name: getattr(ours, name) for name in names})
    X = arrays.canonical(X)
    with blas_threads_for(source.n_rows):
        try:
            theirs.set_output(transform="default").fit(X)
        except LinAlgError:
            raise ValueError(singular(ours.alpha)) from None
        except ArpackError as error:
            raise ValueError(
                f"eigen_solver='arpack' fails on the kernel matrix of these rows: "
                f"{error} Use eigen_solver='dense'."
            ) from None
    check_finite(np.asarray(theirs.eigenvalues_))
    fitted: dict[str, Any] = {"_exact": theirs}
    for name, value in vars(theirs).items():
        if name.endswith("_") or name == "_centerer":
            fitted[name] = value
    mean = float(theirs._centerer.K_fit_all_)
    total = _trace(theirs, X) - X.shape[0] * mean
    values = np.asarray(theirs.eigenvalues_)
    shares = values / total if total > 0 else np.zeros(len(values))
    landmarks = exact_landmarks(kernel, source)
    return fitted | {
        "explained_variance_ratio_": shares,
        "landmarks_": without_matrix(landmarks),
        "approximation_error_": landmarks.error,
    }


def singular(alpha: float) -> str:
    """What to say where scikit-learn's way back finds no solution."""
    return (
        f"fit_inverse_transform=True finds no way back with alpha={alpha:g}: the "
        "kernel matrix of the coordinates is singular. Raise alpha, or lower "
        "n_components."
    )


def by_theirs(theirs: ExactKernelPCA, X: Any) -> np.ndarray:
    """The coordinates of rows that are checked."""
    with blas_threads_for(theirs.eigenvectors_.shape[0]):
        return theirs.transform(arrays.canonical(X))


def block_by_block(
    theirs: ExactKernelPCA, source: Source, engine: Engine, output: Output
) -> Any:
    """The coordinates of a source's rows, where they are to go."""
    values = theirs.eigenvalues_
    sink = output.sink(source, len(values), values.dtype)
    engine.map(_transformed, source, sink, (theirs,), "coordinates")
    return output.result(sink)


def back_by_theirs(theirs: ExactKernelPCA, X: Any) -> np.ndarray:
    """Rows that have about the coordinates given."""
    with blas_threads_for(theirs.eigenvectors_.shape[0]):
        return theirs.inverse_transform(X)


def _transformed(block: Block, theirs: ExactKernelPCA) -> np.ndarray:
    return theirs.transform(block.X)


def _trace(theirs: ExactKernelPCA, X: Any) -> float:
    """tr K, row by row."""
    if theirs.kernel == "precomputed":
        return float(np.trace(X))
    rows = (X[[i]] for i in range(X.shape[0]))
    return float(sum(theirs._get_kernel(row)[0, 0] for row in rows))

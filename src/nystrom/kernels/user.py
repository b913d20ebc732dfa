"""Kernels given by the user: a function of two rows, a function of two blocks, or
values.

A plain callable takes two rows and returns a number, as in scikit-learn; `blockwise`
marks a function of two blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.gaussian_process import kernels as gp

from .. import _arrays as arrays
from .._arrays import Array
from .base import Kernel, Traits

#: What to do where a function of two rows is meant to be one of two blocks.
BLOCKWISE_HINT = "A function of two blocks is passed as kernels.blockwise(function)."
#: Rows of a block whose diagonal is k(x, x), where a function of blocks is all there
#: is: so many evaluations for one that is wanted, and as many times fewer calls.
DIAGONAL_ROWS = 32


@dataclass(frozen=True)
class Pairwise(Kernel):
    """Kernel from a function of two rows of any kind.

    Parameters
    ----------
    function : callable
        `function(x, y, **params)` returns k(x, y).
    params : tuple of pairs
        Further arguments of the function.
    """

    function: Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)
    traits: ClassVar[Traits] = Traits(psd=None, accepts_objects=True, costly=True)

    def __call__(self, X: Any, Y: Any) -> Array:
        xs, ys = _split_rows(X), _split_rows(Y)
        K = [[self._value(x, y) for y in ys] for x in xs]
        return _as_block(np.asarray(K, dtype=np.float64).reshape(len(xs), len(ys)), X)

    def diag(self, X: Any) -> Array:
        values = [self._value(x, x) for x in _split_rows(X)]
        return _as_block(np.asarray(values, dtype=np.float64), X)

    def gram(self, Y: Any) -> np.ndarray:
        """Compute kernel(Y, Y) with each pair evaluated once.

        Parameters
        ----------
        Y : block of rows
            The rows.

        Returns
        -------
        gram : ndarray of shape (n_rows, n_rows)
            Kernel matrix.
        """
        rows = _split_rows(arrays.widen(Y))
        K = np.empty((len(rows), len(rows)))
        for i, x in enumerate(rows):
            for j in range(i + 1):
                K[i, j] = K[j, i] = self._value(x, rows[j])
        return K

    def _value(self, x: Any, y: Any) -> float:
        try:
            value = self.function(x, y, **self.params)
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(
                    f"kernel={self} was called with two rows. {BLOCKWISE_HINT}"
                )
            raise
        try:
            if np.ndim(value) == 0:
                return float(value)
        except (TypeError, ValueError):
            pass
        raise ValueError(
            f"The kernel {self} returned a {type(value).__name__} for two rows; it "
            f"must return one number. {BLOCKWISE_HINT}"
        )

    def gram_evaluations(self, n_points: int) -> int:
        return n_points * (n_points + 1) // 2

    def __str__(self) -> str:
        return _function_name(self.function)


def _function_name(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _split_rows(X: Any) -> list[Any]:
    """The rows one by one."""
    if sp.issparse(X):
        return [X[[i]] for i in range(X.shape[0])]
    if arrays.is_array(X):
        return [X[i, ...] for i in range(X.shape[0])]
    return list(X)


@dataclass(frozen=True)
class Blockwise(Kernel):
    """Kernel from a function of two blocks, created by `blockwise`.

    Parameters
    ----------
    function : callable
        `function(X, Y)` returns a block of kernel values.
    diagonal : callable or None
        `diagonal(X)` returns k(x, x) for each row.
    """

    function: Callable[[Any, Any], Array]
    diagonal: Callable[[Any], Array] | None = None
    traits: ClassVar[Traits] = Traits(psd=None, accepts_objects=True)

    def __call__(self, X: Any, Y: Any) -> Array:
        K = self.function(X, Y)
        shape = (arrays.count_rows(X), arrays.count_rows(Y))
        if tuple(np.shape(K)) != shape:
            raise ValueError(
                f"The block kernel {self} returned a {type(K).__name__} of shape "
                f"{tuple(np.shape(K))} for blocks of {shape[0]} "
                f"and {shape[1]} rows; it must return {shape}. A function of two "
                "single rows is passed without kernels.blockwise."
            )
        K = _as_array(K)
        if arrays.is_on_host(K) and K.dtype.kind not in "biufO":
            raise ValueError(
                f"The block kernel {self} returned {K.dtype} values; it must return "
                "real numbers."
            )
        return _as_block(K, X)

    def diag(self, X: Any) -> Array:
        if self.diagonal is not None:
            return _as_block(self.diagonal(X), X)
        values = np.empty(arrays.count_rows(X))
        for start in range(0, len(values), DIAGONAL_ROWS):
            stop = min(start + DIAGONAL_ROWS, len(values))
            rows = arrays.slice_rows(X, start, stop)
            values[start:stop] = arrays.to_host(self(rows, rows)).diagonal()
        return _as_block(values, X)

    def __str__(self) -> str:
        return _function_name(self.function)


def _as_array(values: Any) -> Array:
    values = values.toarray() if sp.issparse(values) else values
    return values if arrays.is_array(values) else np.asarray(values)


def _as_block(values: Any, X: Any) -> Array:
    """What the user returned, in the precision of the rows."""
    values = _as_array(values)
    if arrays.is_array(X) and arrays.namespace(X) is not np:
        same = arrays.namespace(values) is arrays.namespace(X)
        values = values if same else arrays.from_host(values, X, values.dtype)
    if not arrays.is_array_or_csr(X):
        return arrays.widen(values)
    return arrays.as_float(values, arrays.float_dtype(X))


def blockwise(
    function: Callable[[Any, Any], Array],
    *,
    diag: Callable[[Any], Array] | None = None,
) -> Kernel:
    """Create a kernel from a function of two blocks of rows.

    Parameters
    ----------
    function : callable
        `function(X, Y)` returns the matrix of k(x, y), of shape (rows of X, rows of Y).
        A block is a slice of the data: an array, sparse rows, or a list of objects.
    diag : callable, default=None
        `diag(X)` returns k(x, x) for each row. Without it, the diagonal comes from
        blocks of 32 rows against themselves.

    Returns
    -------
    kernel : Kernel
        A value to pass as `kernel=`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import kernels
    >>> minimum = kernels.blockwise(
    ...     lambda X, Y: np.minimum(X[:, None], Y[None]).sum(axis=2),
    ...     diag=lambda X: X.sum(axis=1),
    ... )
    >>> minimum(np.array([[1.0, 2.0]]), np.array([[2.0, 1.0], [0.0, 5.0]]))
    array([[2., 2.]])
    """
    return Blockwise(function, diag)


@dataclass(frozen=True, eq=False)
class Precomputed(Kernel):
    """Kernel that reads its values from a matrix.

    Its points are row numbers, and k(i, j) = matrix[i, j].

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_samples)
        The kernel matrix.
    """

    matrix: Any = None
    traits: ClassVar[Traits] = Traits(psd=None, uses_row_numbers=True)

    def output_like(self, X: Any) -> Any:
        if self.matrix is None:
            raise ValueError(
                "A precomputed kernel matrix is not part of a fitted model, so nothing "
                "can be evaluated here; pass it to approximate(K, landmarks)."
            )
        return self.matrix

    def __call__(self, X: Any, Y: Any) -> Array:
        rows, columns = np.asarray(X), np.asarray(Y)
        if arrays.namespace(self.matrix) is np:
            return arrays.as_float(self.matrix[np.ix_(rows, columns)])
        block = arrays.take_rows(self.matrix, rows)
        return arrays.as_float(arrays.take_rows(block.T, columns).T)

    def diag(self, X: Any) -> Array:
        rows = np.asarray(X)
        if arrays.namespace(self.matrix) is np:
            return arrays.as_float(self.matrix[rows, rows])
        diagonal = arrays.namespace(self.matrix).linalg.diagonal(self.matrix)
        return arrays.as_float(arrays.take_rows(diagonal, rows))

    def gram(self, Y: Any) -> np.ndarray:
        K = arrays.to_host(self(Y, Y)).astype(np.float64)
        return (K + K.T) / 2

    def gram_evaluations(self, n_points: int) -> int:
        return n_points * n_points

    def __str__(self) -> str:
        return "precomputed"


@dataclass(frozen=True, eq=False)
class PrecomputedCross(Precomputed):
    """Kernel values of new rows with training rows, without k(x, x).

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_training)
        Kernel values.
    """

    def diag(self, X: Any) -> Array:
        raise ValueError(
            "This needs k(x, x) of new rows, which the kernel values with training "
            "rows do not contain (kernel='precomputed'). Fit with a kernel and rows."
        )


@dataclass(frozen=True, eq=False)
class PrecomputedAtLandmarks:
    """Kernel values of new rows at the landmarks, for kernel="precomputed".

    By default, new rows are given by their kernel values with all training rows. This
    wrapper marks a matrix that has the columns of the landmarks only.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_landmarks)
        Kernel values k(x, s) for each new row x and each landmark s, in the order of
        `landmarks_.indices`.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge, kernels
    >>> X = np.random.default_rng(0).standard_normal((600, 3))
    >>> K, y = kernels.RBF(0.1)(X, X), np.sin(X[:, 0])
    >>> model = KernelRidge(kernel="precomputed", n_landmarks=50, random_state=0)
    >>> model = model.fit(K[:500, :500], y[:500])
    >>> values = K[500:, model.landmarks_.indices]
    >>> predicted = model.predict(kernels.PrecomputedAtLandmarks(values))
    >>> bool((predicted == model.predict(K[500:, :500])).all())
    True
    """

    values: Any


def split_white_noise(kernel: Any) -> tuple[Any, float]:
    """A kernel without its white noise, and the variance of that noise.

    Noise that is a term of a sum is split off. Anything else than a Gaussian-process
    kernel is returned as it is, with no noise.
    """
    if not has_white_noise(kernel):
        return kernel, 0.0
    terms = _sum_terms(kernel)
    signals = [term for term in terms if not isinstance(term, gp.WhiteKernel)]
    if not signals or any(map(has_white_noise, signals)):
        raise ValueError(
            f"kernel={kernel}: its WhiteKernel cannot be moved to alpha. Write the "
            "noise as a term of a sum, RBF() + WhiteKernel(), or leave it out and "
            "choose alpha."
        )
    noise = sum(t.noise_level for t in terms if isinstance(t, gp.WhiteKernel))
    return reduce(gp.Sum, signals), float(noise)


def _sum_terms(kernel: Any) -> list[Any]:
    if not isinstance(kernel, gp.Sum):
        return [kernel]
    return [*_sum_terms(kernel.k1), *_sum_terms(kernel.k2)]


def has_white_noise(kernel: Any) -> bool:
    """Whether a Gaussian-process kernel has a WhiteKernel anywhere in it."""
    if not isinstance(kernel, gp.Kernel):
        return False
    parts = [kernel, *kernel.get_params(deep=True).values()]
    # A CompoundKernel keeps its kernels in a list.
    parts += getattr(kernel, "kernels", [])
    return any(isinstance(part, gp.WhiteKernel) for part in parts)


def check_no_white_noise(kernel: Any, caller: str) -> None:
    """Refuse white noise where there is no ridge for it."""
    if not has_white_noise(kernel):
        return
    signal, _ = split_white_noise(kernel)
    raise ValueError(
        f"kernel={kernel} has white noise, but {caller} has no alpha to which it "
        f"could be added, as KernelRidge has. Remove it: kernel={signal}."
    )

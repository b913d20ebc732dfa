"""Dot-product kernels: linear, polynomial, sigmoid, cosine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import _arrays as arrays
from .._arrays import Array
from .._validation import check_float, check_positive
from .base import Kernel, Traits, set_checked


class DotProductKernel(Kernel):
    """k(x, y) = profile(xᵀy)."""

    @abstractmethod
    def _profile(self, P: Array) -> Array:
        """The kernel from inner products, in place where possible."""

    def __call__(self, X: Any, Y: Any) -> Array:
        X, Y = arrays.as_float(X), arrays.as_float(Y)
        # What overflows, or is no number, is found and refused where K is used.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._profile(arrays.dot(X, arrays.as_float(Y, X.dtype)))

    def diag(self, X: Any) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._profile(arrays.squared_norms(arrays.as_float(X)))


@dataclass(frozen=True)
class Linear(DotProductKernel):
    """Linear kernel, xᵀy.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Linear
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Linear()(x, Y).round(4)
    array([[5., 5.]])
    """

    def _profile(self, P: Array) -> Array:
        return P


@dataclass(frozen=True)
class Polynomial(DotProductKernel):
    """Polynomial kernel, (gamma·xᵀy + coef0)^degree.

    Parameters
    ----------
    gamma : float
        Factor of the inner product.
    degree : float
        Degree of the polynomial.
    coef0 : float
        Constant term.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Polynomial
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Polynomial(degree=2)(x, Y).round(4)
    array([[36., 36.]])
    """

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1

    def __post_init__(self) -> None:
        set_checked(self, "gamma", check_positive)
        set_checked(self, "degree", check_float, minimum=0.0)
        set_checked(self, "coef0", check_float)

    @property
    def traits(self) -> Traits:
        definite = self.degree.is_integer() and self.coef0 >= 0
        return Traits(psd=True if definite else None)

    def _profile(self, P: Array) -> Array:
        return self._power(P * self.gamma + self.coef0)

    def _power(self, P: Array) -> Array:
        if not self.degree.is_integer() or not 1 <= self.degree <= 64:
            return P**self.degree
        # Repeated squaring: NumPy's power is an order of magnitude slower.
        power, result = int(self.degree), None
        while True:
            if power & 1:
                result = P if result is None else result * P
            power >>= 1
            if not power:
                return result
            P = P * P


@dataclass(frozen=True)
class Sigmoid(DotProductKernel):
    """Sigmoid kernel, tanh(gamma·xᵀy + coef0), indefinite in general.

    Parameters
    ----------
    gamma : float
        Factor of the inner product.
    coef0 : float
        Constant term.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Sigmoid
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Sigmoid(gamma=0.1)(x, Y).round(4)
    array([[0.9051, 0.9051]])
    """

    gamma: float = 1.0
    coef0: float = 1
    traits: ClassVar[Traits] = Traits(psd=False)

    def __post_init__(self) -> None:
        set_checked(self, "gamma", check_positive)
        set_checked(self, "coef0", check_float)

    def _profile(self, P: Array) -> Array:
        return arrays.namespace(P).tanh(P * self.gamma + self.coef0)


@dataclass(frozen=True)
class Cosine(Kernel):
    """Cosine similarity, xᵀy/(‖x‖·‖y‖), and 0 for rows of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom.kernels import Cosine
    >>> x, Y = np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 1.0]])
    >>> Cosine()(x, Y).round(4)
    array([[1.    , 0.7071]])
    """

    def __call__(self, X: Any, Y: Any) -> Array:
        return self.evaluator(Y)(X)

    def evaluator(self, Y: Any) -> Callable[[Any], Array]:
        Y = _normalize_rows(Y)

        def evaluate(X: Any) -> Array:
            X = _normalize_rows(X)
            return arrays.dot(X, arrays.as_float(Y, X.dtype))

        return evaluate

    def diag(self, X: Any) -> Array:
        X = arrays.as_float(X)
        return arrays.as_float(_row_max_abs(X) > 0, X.dtype)


def _row_max_abs(X: Array) -> Array:
    """The largest |entry| of each row."""
    if sp.issparse(X):
        return abs(X).max(axis=1).toarray().ravel()
    xp = arrays.namespace(X)
    return xp.max(xp.abs(X), axis=1)


def _normalize_rows(X: Any) -> Array:
    # Scaled by the largest entry first, so that squares neither overflow nor vanish.
    X = arrays.as_float(X)
    X = _divide_rows(X, _row_max_abs(X))
    return _divide_rows(X, arrays.namespace(X).sqrt(arrays.squared_norms(X)))


def _divide_rows(X: Array, divisors: Array) -> Array:
    """Each row by its number; rows of zeros as they are."""
    xp = arrays.namespace(X)
    divisors = xp.where(divisors > 0, divisors, xp.ones_like(divisors))
    if not sp.issparse(X):
        return X / divisors[:, None]
    data = X.data / np.repeat(divisors, np.diff(X.indptr))
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)

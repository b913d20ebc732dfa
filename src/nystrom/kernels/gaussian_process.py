"""scikit-learn's Gaussian-process kernels: as kernels of this package, and with their
gradients between two blocks of rows.

`from_scikit_learn` translates a kernel, so that blocks are matrix products;
`values_and_pullback` differentiates its values by the hyper-parameters `theta` and by
the points of a block. scikit-learn itself has gradients of k(X, X) alone. A kernel that
is not known is evaluated by its own `__call__`, and differentiated numerically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp

from .. import _arrays as arrays
from . import base, stationary, user
from .dot_product import Linear, Polynomial
from .stationary import EuclideanKernel
from .user import Blockwise

#: The step of log-parameters in central differences.
DIFFERENCE_STEP = 1e-4

#: Squared distances in length scales come from products up to this norm, where they are
#: rounded by about 1e-6.
MAX_PRODUCT_NORM = 1e10

#: G ↦ Σ Gᵢⱼ ∂k(xᵢ, yⱼ)/∂theta and Σ Gᵢⱼ ∂k(xᵢ, yⱼ)/∂yⱼ; the last is None where it is
#: not known.
Pullback = Callable[[np.ndarray], tuple[np.ndarray, "np.ndarray | None"]]


class FixedKernel(gp.Kernel):
    """A kernel of this package as one of scikit-learn, without hyper-parameters."""

    def __init__(self, kernel: base.Kernel) -> None:
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        if Y is not None:
            return np.asarray(self.kernel(X, Y))
        K = self.kernel.gram(X)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        return np.asarray(self.kernel.diag(X))

    def is_stationary(self) -> bool:
        """Whether k(x, y) depends on x − y alone."""
        return self.kernel.traits.is_distance_based

    def __repr__(self) -> str:
        return str(self.kernel)


class MappedKernel(gp.Exponentiation):
    """k(xT, yT): a kernel of scikit-learn after a linear map T of the rows.

    The hyper-parameters are those of the kernel, as for `Exponentiation`.
    """

    def __init__(self, kernel: Any, transform: np.ndarray) -> None:
        self.kernel = kernel
        self.transform = transform

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The kernel and the map."""
        inner = self.kernel.get_params().items() if deep else ()
        own = {"kernel": self.kernel, "transform": self.transform}
        return own | {f"kernel__{name}": value for name, value in inner}

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and self.kernel == other.kernel  # type: ignore[attr-defined]
            and np.array_equal(self.transform, other.transform)  # type: ignore[attr-defined]
        )

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        Y = None if Y is None else np.asarray(Y) @ self.transform
        return self.kernel(np.asarray(X) @ self.transform, Y, eval_gradient)

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row."""
        return self.kernel.diag(np.asarray(X) @ self.transform)

    def __repr__(self) -> str:
        return f"MappedKernel({self.kernel})"


def as_scikit_learn(kernel: Any) -> Any:
    """A kernel of this package as one of scikit-learn, whose parameters are learnt.

    RBF, Matérn, rational quadratic and linear kernels, their sums, products and
    multiples have an equal; others are fixed.
    """
    if isinstance(kernel, base.Sum):
        return gp.Sum(as_scikit_learn(kernel.left), as_scikit_learn(kernel.right))
    if isinstance(kernel, base.Product):
        return gp.Product(as_scikit_learn(kernel.left), as_scikit_learn(kernel.right))
    if isinstance(kernel, base.Scaled):
        return gp.ConstantKernel(kernel.factor) * as_scikit_learn(kernel.kernel)
    if isinstance(kernel, stationary.RBF) and np.all(np.asarray(kernel.gamma) > 0):
        return gp.RBF(_one_or_all(1 / np.sqrt(2 * np.asarray(kernel.gamma))))
    if isinstance(kernel, stationary.Matern):
        return gp.Matern(_one_or_all(kernel.length_scale), nu=kernel.nu)
    if isinstance(kernel, stationary.RationalQuadratic) and not isinstance(
        kernel.length_scale, tuple
    ):
        return gp.RationalQuadratic(kernel.length_scale, kernel.alpha)
    if isinstance(kernel, Linear):
        return gp.DotProduct(0.0, "fixed")
    return FixedKernel(kernel)


def _one_or_all(values: Any) -> Any:
    """A number, or an array with one per feature, as scikit-learn has them."""
    return np.asarray(values) if np.ndim(values) else float(values)


def from_scikit_learn(kernel: Any) -> base.Kernel:
    """The kernel of this package with the same values, without white noise."""
    translated = _translate(kernel)
    if translated is None:
        raise ValueError(
            f"kernel={kernel} is white noise alone, from which nothing can be "
            "predicted. Add a kernel to it, such as RBF() + WhiteKernel()."
        )
    return translated


def _translate(kernel: Any) -> base.Kernel | None:
    kind = type(kernel)
    if kind is gp.WhiteKernel:
        return None
    if kind is FixedKernel:
        return kernel.kernel
    if kind is MappedKernel:
        inner = _translate(kernel.kernel)
        if inner is None or inner.traits.is_distance_based:
            return inner and stationary.Mahalanobis(inner, kernel.transform)
        return Blockwise(kernel)
    if kind is gp.Sum:
        left, right = _translate(kernel.k1), _translate(kernel.k2)
        if left is None or right is None:
            return left or right
        return left + right
    if kind is gp.Product:
        for factor, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if type(factor) is gp.ConstantKernel:
                scaled = _translate(other)
                value = float(factor.constant_value)
                return None if scaled is None else scaled * value
        left, right = _translate(kernel.k1), _translate(kernel.k2)
        return None if left is None or right is None else left * right
    if kind is gp.DotProduct:
        return Polynomial(1.0, degree=1, coef0=float(kernel.sigma_0) ** 2)
    unit = _unit_kernel(kernel)
    if unit is None:
        return Blockwise(kernel, None if kind is gp.PairwiseKernel else kernel.diag)
    length_scale: Any = np.asarray(kernel.length_scale, dtype=np.float64)
    if isinstance(unit, stationary.RBF):
        return stationary.RBF(1 / (2 * length_scale**2))
    assert isinstance(unit, (stationary.Matern, stationary.RationalQuadratic))
    return replace(unit, length_scale=length_scale)


def _unit_kernel(kernel: Any) -> EuclideanKernel | None:
    """The kernel of ‖(x − y)/length_scale‖² that one of scikit-learn is."""
    kind = type(kernel)
    if kind is gp.RBF or (kind is gp.Matern and kernel.nu == np.inf):
        return stationary.RBF(0.5)
    if kind is gp.Matern and kernel.nu in (0.5, 1.5, 2.5):
        return stationary.Matern(1.0, kernel.nu)
    if kind is gp.RationalQuadratic:
        return stationary.RationalQuadratic(1.0, float(kernel.alpha))
    return None


class ScaleNames(NamedTuple):
    """Names of the parameters of c·κ(‖x − y‖/length_scale) + white noise."""

    constant: str
    length_scale: str
    noise: str


def scale_names(kernel: Any) -> ScaleNames | None:
    """The names of a kernel of this form, κ that of RBF or Matern; None for others."""
    if type(kernel) is MappedKernel:
        names = scale_names(kernel.kernel)
        return names and ScaleNames(*(f"kernel__{name}" for name in names))
    term, white = _split_pair(kernel, gp.Sum, gp.WhiteKernel)
    scaled = getattr(kernel, term, None)
    base, constant = _split_pair(scaled, gp.Product, gp.ConstantKernel)
    unit = _unit_kernel(getattr(scaled, base, None))
    if not isinstance(unit, (stationary.RBF, stationary.Matern)):
        return None
    return ScaleNames(
        f"{term}__{constant}__constant_value",
        f"{term}__{base}__length_scale",
        f"{white}__noise_level",
    )


def _split_pair(kernel: Any, kind: type, part: type) -> tuple[str, str]:
    """Names of the other part and of the one of this kind, in a sum or a product."""
    if type(kernel) is kind:
        for other, name in (("k1", "k2"), ("k2", "k1")):
            if type(getattr(kernel, name)) is part:
                return other, name
    return "", ""


def noise_and_gradient(kernel: Any) -> tuple[float, np.ndarray]:
    """The variance of the white noise in a kernel, and its gradient by theta.

    Noise is a term of a sum, times constants.
    """
    kind, none = type(kernel), np.zeros(kernel.n_dims)
    if kind is gp.WhiteKernel:
        level = float(kernel.noise_level)
        return level, _free(kernel, noise_level=level)
    if not user.has_white_noise(kernel):
        return 0.0, none
    if kind is MappedKernel:
        return noise_and_gradient(kernel.kernel)
    if kind is gp.Sum:
        parts = noise_and_gradient(kernel.k1), noise_and_gradient(kernel.k2)
        gradients = [gradient for _, gradient in parts]
        return parts[0][0] + parts[1][0], np.concatenate(gradients)
    factors = (kernel.k1, kernel.k2) if kind is gp.Product else ()
    for factor, other in zip(factors, factors[::-1], strict=True):
        if type(factor) is gp.ConstantKernel:
            value = float(factor.constant_value)
            noise, gradient = noise_and_gradient(other)
            scaled = [_free(factor, constant_value=value * noise), value * gradient]
            order = 1 if factor is kernel.k1 else -1
            return value * noise, np.concatenate(scaled[::order])
    raise ValueError(
        f"kernel={kernel}: its WhiteKernel is multiplied by a kernel that is not "
        "constant, or raised to a power. Write the noise as a term of a sum, "
        "RBF() + WhiteKernel(), or leave it out and choose alpha."
    )


def _neighbours(kernel: Any, i: int) -> tuple[Any, Any]:
    """The kernel with entry i of theta a step up, and down."""
    step = np.zeros(kernel.n_dims)
    step[i] = DIFFERENCE_STEP
    theta = kernel.theta
    return kernel.clone_with_theta(theta + step), kernel.clone_with_theta(theta - step)


def has_point_gradient(kernel: Any) -> bool:
    """Whether the values of a kernel can be differentiated by the points."""
    if isinstance(kernel, (gp.Sum, gp.Product)):
        return has_point_gradient(kernel.k1) and has_point_gradient(kernel.k2)
    if type(kernel) in (gp.Exponentiation, MappedKernel):
        return has_point_gradient(kernel.kernel)
    flat = (gp.ConstantKernel, gp.WhiteKernel, gp.DotProduct)
    return type(kernel) in flat or _unit_kernel(kernel) is not None


def values_and_pullback(
    kernel: Any, X: Any, Y: Any = None
) -> tuple[np.ndarray, Pullback]:
    """k(x, y) of two blocks, and its pullback; without Y, k(x, x) of each row.

    White noise is not a part of these values. X and Y are float64 on the host, or lists
    of objects.
    """
    kind = type(kernel)
    term, white = _split_pair(kernel, gp.Sum, gp.WhiteKernel)
    if white:
        return _noisy(getattr(kernel, term), getattr(kernel, white), white, X, Y)
    factor, constant = _split_pair(kernel, gp.Product, gp.ConstantKernel)
    if constant:
        return _scaled(
            getattr(kernel, factor), getattr(kernel, constant), constant, X, Y
        )
    if kind is gp.Sum or kind is gp.Product:
        left, left_pullback = values_and_pullback(kernel.k1, X, Y)
        right, right_pullback = values_and_pullback(kernel.k2, X, Y)
        if kind is gp.Sum:
            return left + right, lambda G: _joined(left_pullback(G), right_pullback(G))
        return left * right, lambda G: _joined(
            left_pullback(G * right), right_pullback(G * left)
        )
    if kind is MappedKernel:
        return _mapped(kernel, X, Y)
    if kind is gp.Exponentiation:
        inner, inner_pullback = values_and_pullback(kernel.kernel, X, Y)
        p = kernel.exponent
        return inner**p, lambda G: inner_pullback(G * p * inner ** (p - 1))
    if kind in (gp.ConstantKernel, gp.WhiteKernel):
        return _constant(kernel, X, Y)
    if kind is gp.DotProduct:
        return _dot_product(kernel, X, Y)
    if kind is gp.ExpSineSquared:
        return _periodic(kernel, X, Y)
    unit = _unit_kernel(kernel)
    if unit is not None:
        return _stationary(kernel, unit, X, Y)
    return _unknown(kernel, X, Y)


def _noisy(
    term: Any, white: Any, place: str, X: Any, Y: Any
) -> tuple[np.ndarray, Pullback]:
    """A sum with white noise, which is not a part of the values."""
    K, term_pullback = values_and_pullback(term, X, Y)

    def pullback(G: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        by_theta, by_points = term_pullback(G)
        parts = [by_theta, _free(white, noise_level=0.0)]
        return np.concatenate(parts[:: 1 if place == "k2" else -1]), by_points

    return K, pullback


def _scaled(
    factor: Any, constant: Any, place: str, X: Any, Y: Any
) -> tuple[np.ndarray, Pullback]:
    """A product with a constant, of which no array is made."""
    value = float(constant.constant_value)
    unscaled, factor_pullback = values_and_pullback(factor, X, Y)
    K = value * unscaled

    def pullback(G: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        by_theta, by_points = factor_pullback(G)
        parts = [value * by_theta, _free(constant, constant_value=np.vdot(G, K))]
        by_points = None if by_points is None else value * by_points
        return np.concatenate(parts[:: 1 if place == "k2" else -1]), by_points

    return K, pullback


def _mapped(kernel: Any, X: Any, Y: Any) -> tuple[np.ndarray, Pullback]:
    T = kernel.transform
    U = X @ T
    V = None if Y is None else (U if X is Y else Y @ T)
    K, inner_pullback = values_and_pullback(kernel.kernel, U, V)

    def pullback(G: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        by_theta, by_points = inner_pullback(G)
        return by_theta, None if by_points is None else by_points @ T.T

    return K, pullback


def _joined(left: tuple, right: tuple) -> tuple[np.ndarray, np.ndarray | None]:
    known = left[1] is not None and right[1] is not None
    points = left[1] + right[1] if known else None
    return np.concatenate([left[0], right[0]]), points


def _free(kernel: Any, **gradients: Any) -> np.ndarray:
    """The entries of theta in their order, of those that are not fixed."""
    free = [gradients[h.name] for h in kernel.hyperparameters if not h.fixed]
    return np.concatenate([np.atleast_1d(g) for g in free]) if free else np.empty(0)


def _shape(X: Any, Y: Any) -> tuple[int, ...]:
    n = arrays.count_rows(X)
    return (n,) if Y is None else (n, arrays.count_rows(Y))


def _no_change(Y: Any) -> np.ndarray | None:
    return None if Y is None or not isinstance(Y, np.ndarray) else np.zeros_like(Y)


def _constant(kernel: Any, X: Any, Y: Any) -> tuple[np.ndarray, Pullback]:
    if type(kernel) is gp.WhiteKernel:
        zero = np.zeros(_shape(X, Y))
        return zero, lambda G: (_free(kernel, noise_level=0.0), _no_change(Y))
    value = float(kernel.constant_value)
    return np.full(_shape(X, Y), value), lambda G: (
        _free(kernel, constant_value=value * G.sum()),
        _no_change(Y),
    )


def _dot_product(kernel: Any, X: Any, Y: Any) -> tuple[np.ndarray, Pullback]:
    offset = float(kernel.sigma_0) ** 2
    values = arrays.squared_norms(X) if Y is None else X @ Y.T
    return values + offset, lambda G: (
        _free(kernel, sigma_0=2 * offset * G.sum()),
        None if Y is None else G.T @ X,
    )


def _periodic(kernel: Any, X: Any, Y: Any) -> tuple[np.ndarray, Pullback]:
    distance = np.zeros(len(X)) if Y is None else cdist(X, Y)
    angle = np.pi / kernel.periodicity * distance
    sine, cosine = np.sin(angle), np.cos(angle)
    scale = 1 / kernel.length_scale**2
    K = np.exp(-2 * scale * sine**2)

    def pullback(G: np.ndarray) -> tuple[np.ndarray, None]:
        H = 4 * scale * G * K * sine
        length_scale, periodicity = np.vdot(H, sine), np.vdot(H, angle * cosine)
        return _free(kernel, length_scale=length_scale, periodicity=periodicity), None

    return K, pullback


def _stationary(
    kernel: Any, unit: EuclideanKernel, X: Any, Y: Any
) -> tuple[np.ndarray, Pullback]:
    """κ(D) with D = ‖(x − y)/length_scale‖²."""
    length_scale = np.asarray(kernel.length_scale, dtype=np.float64)
    if Y is None:
        n_widths = length_scale.size
        none = np.zeros(n_widths)
        return np.ones(len(X)), lambda G: (
            _free(kernel, length_scale=none, alpha=0.0),
            None,
        )
    # Distances do not depend on the origin; products are exact near it.
    center = Y.mean(axis=0)
    U, V = (X - center) / length_scale, (Y - center) / length_scale
    norms_U, norms_V = arrays.squared_norms(U), arrays.squared_norms(V)
    largest = max(norms_U.max(initial=0.0), norms_V.max(initial=0.0))
    if not np.isfinite(largest):
        raise LinAlgError("squared distances exceed float64")
    is_far = largest > MAX_PRODUCT_NORM
    if unit.needs_exact_distance or is_far:
        D = cdist(U, V, "sqeuclidean")
    else:
        D = U @ (-2 * V.T)
        D += norms_U[:, None]
        D += norms_V
        np.maximum(D, 0.0, out=D)
        if X is Y:
            np.fill_diagonal(D, 0.0)
    c, _ = unit._constant_and_scale
    K = c * D
    slopes, factor = unit._profile_and_slope(K, np.empty_like(K))

    def pullback(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        H = slopes * G
        H *= c * factor
        if is_far:  # equal rows have no gradient, but one of rounded products
            H[D == 0] = 0.0
        by_rows, by_columns, HU = H.sum(axis=1), H.sum(axis=0), H.T @ U
        if length_scale.ndim:
            by_scale = by_rows @ U**2 + by_columns @ V**2
            by_scale = -2 * (by_scale - 2 * np.einsum("ij,ij->j", HU, V))
        else:
            by_scale = -2 * np.vdot(H, D)
        by_alpha = 0.0
        if isinstance(unit, stationary.RationalQuadratic):
            u = D / (2 * unit.alpha)
            by_alpha = unit.alpha * np.vdot(G * K, u / (1 + u) - np.log1p(u))
        by_points = 2 * (by_columns[:, None] * V - HU) / length_scale
        return _free(kernel, length_scale=by_scale, alpha=by_alpha), by_points

    return K, pullback


def _unknown(kernel: Any, X: Any, Y: Any) -> tuple[np.ndarray, Pullback]:
    """By `__call__` and `diag`, with central differences."""

    def values(changed: Any) -> np.ndarray:
        if Y is not None:
            return np.asarray(changed(X, Y))
        if type(kernel) is gp.PairwiseKernel:  # its own is a call for every row
            return np.asarray(Blockwise(changed).diag(X))
        return np.asarray(changed.diag(X))

    def pullback(G: np.ndarray) -> tuple[np.ndarray, None]:
        gradient = np.empty(kernel.n_dims)
        for i in range(len(gradient)):
            up, down = _neighbours(kernel, i)
            change = np.vdot(G, values(up) - values(down))
            gradient[i] = change / (2 * DIFFERENCE_STEP)
        return gradient, None

    return values(kernel), pullback

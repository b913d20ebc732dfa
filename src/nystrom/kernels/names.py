"""Kernels by name, with scikit-learn's strings and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel

from .._validation import both_given_error, check_choice, check_float
from .base import Kernel, check_per_feature
from .dot_product import Cosine, Linear, Polynomial, Sigmoid
from .stationary import (
    RBF,
    AdditiveChi2,
    Chi2,
    Laplacian,
    Mahalanobis,
    Matern,
    RationalQuadratic,
)
from .user import Blockwise, Pairwise, Precomputed, check_no_white_noise


@dataclass(frozen=True)
class NamedKernel:
    """How to construct a named kernel: its class and which parameters it takes."""

    make: Callable[..., Kernel]
    takes: frozenset[str] = frozenset()
    gamma: float | None = None  # the default; None is 1/n_features


def _from_gamma(make: Callable[..., Kernel], **params: Any) -> Kernel:
    """Matérn and rational quadratic from gamma = 1/(2·length_scale²), as for RBF."""
    gamma = check_per_feature(
        params.pop("gamma"), "gamma", positive="length_scale" not in params
    )
    params.setdefault("length_scale", 1 / np.sqrt(2 * np.asarray(gamma)))
    return make(**params)


def gamma_of(kernel: Any) -> Any:
    """The gamma of a kernel of a distance, or that of its length scale.

    A number, a tuple with one per feature, or the matrix of a `Mahalanobis` kernel.
    """
    if isinstance(kernel, Mahalanobis):
        scaled = kernel.transform * np.sqrt(gamma_of(kernel.kernel))
        return scaled @ scaled.T
    if hasattr(kernel, "gamma"):
        return kernel.gamma
    gamma = 1 / (2 * np.square(kernel.length_scale))
    return tuple(gamma.tolist()) if np.ndim(gamma) else float(gamma)


def with_gamma(kernel: Any, gamma: Any) -> Kernel:
    """The same kernel of a distance with another gamma, one or one per feature."""
    if hasattr(kernel, "gamma"):
        return replace(kernel, gamma=gamma)
    return replace(kernel, length_scale=1 / np.sqrt(2 * np.asarray(gamma)))


_GAMMA_PARAMETERS = frozenset({"gamma"})
_MATERN_PARAMETERS = frozenset({"gamma", "length_scale"})

NAMES: dict[str, NamedKernel] = {
    "additive_chi2": NamedKernel(AdditiveChi2),
    "chi2": NamedKernel(Chi2, _GAMMA_PARAMETERS, gamma=1.0),
    "cosine": NamedKernel(Cosine),
    "laplacian": NamedKernel(Laplacian, _GAMMA_PARAMETERS),
    "linear": NamedKernel(Linear),
    "matern": NamedKernel(partial(_from_gamma, Matern), _MATERN_PARAMETERS | {"nu"}),
    "matern12": NamedKernel(partial(_from_gamma, Matern, nu=0.5), _MATERN_PARAMETERS),
    "matern32": NamedKernel(partial(_from_gamma, Matern, nu=1.5), _MATERN_PARAMETERS),
    "matern52": NamedKernel(partial(_from_gamma, Matern, nu=2.5), _MATERN_PARAMETERS),
    "poly": NamedKernel(Polynomial, frozenset({"gamma", "degree", "coef0"})),
    "polynomial": NamedKernel(Polynomial, frozenset({"gamma", "degree", "coef0"})),
    "rational_quadratic": NamedKernel(
        partial(_from_gamma, RationalQuadratic), _MATERN_PARAMETERS | {"alpha"}
    ),
    "rbf": NamedKernel(RBF, _GAMMA_PARAMETERS),
    "sigmoid": NamedKernel(Sigmoid, frozenset({"gamma", "coef0"})),
}


def accepts_gamma(name: str) -> bool:
    """Whether the kernel of this name has a gamma; so has one that nobody knows."""
    return name != "precomputed" and (name not in NAMES or "gamma" in NAMES[name].takes)


def as_kernel(
    kernel: Any,
    *,
    n_features: int | None = None,
    gamma: Any = None,
    degree: float | None = None,
    coef0: float | None = None,
    kernel_params: dict[str, Any] | None = None,
    caller: str = "this function",
) -> Kernel:
    """The kernel that a name, a callable or a kernel stands for.

    `gamma` is a number here, or one per feature; "scale" and "median" need the data and
    are turned into numbers before.
    """
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    given = {name: value for name, value in given.items() if value is not None}
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise ValueError(
            f"kernel_params={kernel_params!r} is not allowed; it is a dict of the "
            "kernel's parameters, or None."
        )
    if isinstance(kernel, str) and kernel != "precomputed":
        return _kernel_from_name(kernel, n_features, given, dict(kernel_params or {}))
    if given:
        raise ValueError(
            f"Don't pass gamma, coef0 or degree to {caller} if using a callable or "
            "precomputed kernel"
        )
    if isinstance(kernel, str):
        return Precomputed()
    if isinstance(kernel, (Kernel, GaussianProcessKernel)):
        if kernel_params:
            raise ValueError(
                f"kernel_params={kernel_params!r} cannot be combined with the kernel "
                f"{kernel}; put its parameters into the kernel itself."
            )
        if isinstance(kernel, Kernel):
            if isinstance(kernel, Blockwise):
                check_no_white_noise(kernel.function, caller)
            return kernel
        check_no_white_noise(kernel, caller)
        return Blockwise(kernel, kernel.diag)
    if callable(kernel) and not isinstance(kernel, type):
        # A copy, so that the kernel stays a value; scikit-learn's callables get theirs
        # by keyword too.
        return Pairwise(kernel, dict(kernel_params or {}))
    raise TypeError(
        f"kernel={kernel!r} is not a kernel; pass a name ({', '.join(NAMES)}, "
        "precomputed), a callable of two rows, or a value from nystrom.kernels."
    )


def _kernel_from_name(
    name: str, n_features: int | None, given: dict[str, Any], params: dict[str, Any]
) -> Kernel:
    named = NAMES[check_choice(name, "kernel", [*NAMES, "precomputed"])]
    for key, least in (("degree", 0.0), ("coef0", -np.inf)):
        if key in given:  # checked, also where the kernel does not take it
            check_float(given[key], key, least)
    wrong = sorted(set(params) - named.takes)
    if wrong:
        raise ValueError(
            f"kernel_params has {wrong[0]!r}, which kernel={name!r} does not take; it "
            f"takes: {', '.join(sorted(named.takes)) or 'no parameters'}."
        )
    if "length_scale" in params and "gamma" in given:
        raise both_given_error(
            f"gamma={given['gamma']!r}",
            f"length_scale={params['length_scale']!r}",
            "the width of the kernel",
        )
    # As in scikit-learn, the estimator's own gamma wins, and one that the kernel does
    # not take is passed over, so that a grid over kernels can share its parameters.
    params |= {key: value for key, value in given.items() if key in named.takes}
    if "gamma" in named.takes and params.get("gamma") is None:
        params["gamma"] = (
            named.gamma if named.gamma is not None else 1.0 / (n_features or 1)
        )
    return named.make(**params)

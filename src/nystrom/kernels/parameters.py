"""The parameters of kernels: numbers, and numbers per feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..refusals import number


def set_numbers(kernel: Any, **least: float) -> None:
    """Make the named fields of a frozen kernel floats, or refuse them."""
    for name, bound in least.items():
        value = number(getattr(kernel, name), name, bound)
        object.__setattr__(kernel, name, value)


def set_per_feature(kernel: Any, name: str) -> None:
    """Make a field of a frozen kernel a float or a tuple of them, or refuse it."""
    object.__setattr__(kernel, name, per_feature(getattr(kernel, name), name))


def per_feature(value: Any, name: str) -> float | tuple[float, ...]:
    """A number, or one number per feature as a tuple, none of them negative."""
    if np.ndim(value) == 0:
        return number(value, name, least=0.0)
    if np.ndim(value) > 1:
        raise ValueError(
            f"{name} has {np.ndim(value)} dimensions; give one number, or a sequence "
            "with one number per feature."
        )
    return tuple(number(v, name, least=0.0) for v in value)


def check_width(values: Any, name: str, n_features: int) -> None:
    """Refuse a sequence that has not one number per feature."""
    if isinstance(values, tuple) and len(values) != n_features:
        raise ValueError(
            f"{name} has {len(values)} values, but rows have {n_features} features; "
            "give one number per feature, or a single number."
        )

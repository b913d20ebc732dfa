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


def set_width(kernel: Any) -> None:
    """Make gamma a float > 0: with 0 all pairs of rows have the same k(x, y)."""
    set_numbers(kernel, gamma=0.0)
    _refuse_zero(kernel.gamma, "gamma")


def set_per_feature(kernel: Any, name: str) -> None:
    """Make a field of a frozen kernel a float or a tuple of them, or refuse it."""
    object.__setattr__(kernel, name, per_feature(getattr(kernel, name), name))


def per_feature(value: Any, name: str) -> float | tuple[float, ...]:
    """A number > 0, or one per feature as a tuple, none negative and not all 0."""
    if np.ndim(value) == 0:
        found = number(value, name, least=0.0)
        _refuse_zero(found, name)
        return found
    if np.ndim(value) > 1:
        raise ValueError(
            f"{name} has {np.ndim(value)} dimensions; give one number, or a sequence "
            "with one number per feature."
        )
    several = tuple(number(v, name, least=0.0) for v in value)
    _refuse_zero(several, name)
    return several


def _refuse_zero(value: float | tuple[float, ...], name: str) -> None:
    if not np.any(value):
        given = f"{name}=0" if np.ndim(value) == 0 else f"{name} with no number but 0"
        raise ValueError(
            f"{given} is not allowed: all rows would look the same. {name} is a finite "
            "number > 0, or one per feature, where 0 leaves that feature out."
        )


def check_width(values: Any, name: str, n_features: int) -> None:
    """Refuse a sequence that has not one number per feature."""
    if isinstance(values, tuple) and len(values) != n_features:
        raise ValueError(
            f"{name} has {len(values)} values, but rows have {n_features} features; "
            "give one number per feature, or a single number."
        )

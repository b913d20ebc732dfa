"""Checks of user input, and the errors they raise.

An error says what was given, what is allowed and, where possible, what was meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, overload

import numpy as np


class KernelNotFiniteError(ValueError):
    """A kernel returned nan or inf."""


def check_finite(K: np.ndarray) -> None:
    """Refuse nan and inf."""
    if not np.all(np.isfinite(K)):
        raise KernelNotFiniteError(
            "The kernel returned nan or inf for these rows. Check its parameters (a "
            "large degree overflows, a fractional one of a negative number is nan), "
            "the scale of the data and, in a Source of your own, that rows have no NaN."
        )


def unknown_name_error(kind: str, name: Any, allowed: list[str]) -> ValueError:
    """The error for a name that is not in a list, with the nearest in spelling."""
    plain = str(name).lower().replace(" ", "_").replace("-", "_")
    near = get_close_matches(plain, allowed, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    names = ", ".join(repr(a) for a in allowed)
    return ValueError(f"{kind}={name!r} is unknown{hint} Allowed: {names}.")


def check_choice(value: Any, name: str, allowed: Iterable[str]) -> str:
    """One of the allowed names."""
    allowed = list(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise unknown_name_error(name, value, allowed)
    return value


def both_given_error(first: str, second: str, purpose: str) -> ValueError:
    """The error for two parameters, each as "name=value", that set the same thing."""
    return ValueError(f"{first} and {second} both set {purpose}; give one of them.")


def check_float(value: Any, name: str, minimum: float = -np.inf) -> float:
    """A finite number, as Python's own float, at least `minimum`."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not is_real or not np.isfinite(value) or value < minimum:
        bound = "" if minimum == -np.inf else f" >= {minimum:g}"
        shown = value if is_real else repr(value)
        raise ValueError(
            f"{name}={shown} is not allowed; {name} must be a finite number{bound}."
        )
    return float(value)


def check_positive(
    value: Any, name: str, alternative: str = "", below: float = np.inf
) -> float:
    """A finite number > 0 and less than `below`, as Python's own float."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not is_real or not 0 < float(value) < below:
        bound = "" if below == np.inf else f" and < {below:g}"
        raise ValueError(
            f"{name}={value!r} is not allowed; {name} must be a finite number > 0"
            f"{bound}{alternative}."
        )
    return float(value)


def check_numbers(
    values: Any, name: str, *, positive: bool = False, alternative: str = ""
) -> np.ndarray:
    """One finite number or several, all >= 0, or > 0 if `positive`; in float64."""
    try:
        given = np.asarray(values)
    except (TypeError, ValueError):  # lists of different lengths
        given = np.array(None)
    is_numeric = given.dtype.kind in "iuf" and given.ndim <= 1 and given.size > 0
    if (
        not is_numeric
        or not np.all(np.isfinite(given))
        or not np.all(given > 0 if positive else given >= 0)
    ):
        bound = "> 0" if positive else ">= 0"
        raise ValueError(
            f"{name}={values!r} is not allowed; {name} must be a finite number "
            f"{bound}, or several of them{alternative}."
        )
    return given.astype(np.float64)


def check_bool(value: Any, name: str) -> bool:
    """True or False: a text such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(
            f"{name}={value!r} is not allowed; {name} must be True or False."
        )
    return bool(value)


@overload
def check_int(
    value: Any, name: str, *, minimum: int = 1, optional: Literal[False] = False
) -> int: ...
@overload
def check_int(
    value: Any, name: str, *, minimum: int = 1, optional: bool
) -> int | None: ...
def check_int(
    value: Any, name: str, *, minimum: int = 1, optional: bool = False
) -> int | None:
    """A whole number, at least `minimum`, or None where that is allowed."""
    if value is None and optional:
        return None
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < minimum:
        allowed = f"a whole number >= {minimum}" + (" or None" if optional else "")
        raise ValueError(f"{name}={value!r} is not allowed; {name} must be {allowed}.")
    return int(value)


def import_optional(name: str, extra: str, purpose: str) -> Any:
    """A module by its name; where it is missing, the error says what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which cannot be imported ({error}); install "
            f'it with: pip install "nystrom[{extra}]".'
        ) from error

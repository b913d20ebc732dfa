"""Checks of user input, and the errors they raise.

An error says what was given, what is allowed and, where possible, what was meant.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from inspect import isfunction
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, overload

import numpy as np

C = TypeVar("C", bound=type)


class KernelNotFiniteError(ValueError):
    """A kernel returned nan or inf."""


def named_plainly(cls: C) -> C:
    """Leave a private class out of the names that Python's own errors have of methods.

    "predict() missing 1 required positional argument: 'X'" is what a user can read;
    the class that a method is inherited from is nothing they know.
    """
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if isfunction(function) and not name.startswith("_"):
            function.__qualname__ = name
    return cls


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


def check_float(value: Any, name: str, minimum: float = -np.inf) -> float:
    """A finite number, as Python's own float; at least `minimum`."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not is_real or not np.isfinite(value) or value < minimum:
        bound = "" if minimum == -np.inf else f" >= {minimum:g}"
        shown = value if is_real else repr(value)
        raise ValueError(
            f"{name}={shown} is not allowed; {name} is a finite number{bound}."
        )
    return float(value)


def check_positive(value: Any, name: str, alternative: str = "") -> float:
    """A finite number > 0, as Python's own float."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not is_real or not 0 < float(value) < np.inf:
        raise ValueError(
            f"{name}={value!r} is not allowed; {name} is a finite number > 0"
            f"{alternative}."
        )
    return float(value)


def check_bool(value: Any, name: str) -> bool:
    """True or False: a text such as "no" would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} is not allowed; {name} is True or False.")
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
            f'it by pip install "nystrom[{extra}]".'
        ) from error

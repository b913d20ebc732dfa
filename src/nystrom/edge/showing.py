"""One bar for one call of a user, however many passes and fits there are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from ..engines import Bar

_shown: ContextVar[Bar | None] = ContextVar("nystrom_bar", default=None)
_F = TypeVar("_F", bound=Callable[..., Any])


#: Seconds that a method takes before it shows a bar. Fits have one from the beginning,
#: but searches call `predict` many times.
BRIEF = 1.0


@contextmanager
def showing(name: str, verbose: Any, patience: float = 0.0) -> Iterator[Bar | None]:
    """If `verbose`, the bar of this call; of the one around it where there is one."""
    check_verbose(verbose)
    if not verbose:
        yield None
    elif (around := _shown.get()) is not None:
        with around.part(0.5):
            yield around
    else:
        with Bar(name=name, patience=patience) as bar:
            before = _shown.set(bar)
            try:
                yield bar
            finally:
                _shown.reset(before)


def shown(method: _F) -> _F:
    """A method of an estimator that has one bar, if it is `verbose` and takes long."""

    @wraps(method)
    def with_bar(self: Any, *given: Any, **named: Any) -> Any:
        name = f"{type(self).__name__}.{method.__name__}"
        with showing(name, self.verbose, BRIEF) as bar:
            if bar is not None:
                bar.expect(1)
            return method(self, *given, **named)

    return with_bar  # type: ignore[return-value]


def shown_function(function: _F) -> _F:
    """A function that has one bar, if its own argument `verbose` says so."""

    @wraps(function)
    def with_bar(*given: Any, verbose: Any = 0, **named: Any) -> Any:
        with showing(function.__name__, verbose):
            return function(*given, verbose=verbose, **named)

    return with_bar  # type: ignore[return-value]


def bar_for(verbose: Any) -> Bar | None:
    """The bar of the call that is running, if `verbose`; else one for each pass."""
    check_verbose(verbose)
    return (_shown.get() or Bar()) if verbose else None


def check_verbose(verbose: Any) -> None:
    """0 or more; None is as quiet as 0."""
    if verbose is None:
        return
    if not isinstance(verbose, (Integral, np.bool_)) or verbose < 0:
        raise ValueError(
            f"verbose={verbose!r} is not allowed; 0 is quiet and 1 shows a bar."
        )

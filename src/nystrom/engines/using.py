"""Which engine runs the passes of a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..sources.on_device import check_device
from .engine import Engine

_current: ContextVar[Engine | None] = ContextVar("nystrom_engine", default=None)
_device: ContextVar[str | None] = ContextVar("nystrom_device", default=None)


@contextmanager
def using(
    engine: Engine | None = None, *, device: str | None = None
) -> Iterator[Engine | None]:
    """Run all passes of a block of code on one engine, or on a device.

    Estimators and functions make an engine of threads by their own `n_jobs` otherwise.

    Parameters
    ----------
    engine : Engine or None
        What runs the passes; it decides about threads, and `n_jobs` has no say. None:
        the one in use around this block, if any.
    device : str or None
        Where blocks of dense rows are moved and worked on, as torch tensors: "cuda",
        "cuda:1", or "cpu". Results come back in the library of the rows. None: where
        the rows are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nystrom import Nystroem, engines
    >>> X, _ = load_iris(return_X_y=True)
    >>> with engines.using(engines.Threads(2)):
    ...     Z = Nystroem(n_components=20, random_state=0).fit_transform(X)
    >>> Z.shape
    (150, 20)
    """
    engine = current() if engine is None else engine
    if engine is not None and not isinstance(engine, Engine):
        raise TypeError(
            f"engine={engine!r} is no engine; pass a value such as "
            "nystrom.engines.Threads(n_jobs=2)."
        )
    if device is not None:
        check_device(device)
    before = _current.set(engine)
    device_before = _device.set(current_device() if device is None else device)
    try:
        yield engine
    finally:
        _device.reset(device_before)
        _current.reset(before)


def current() -> Engine | None:
    """The engine in use; None where none was named."""
    return _current.get()


def current_device() -> str | None:
    """The device in use; None where none was named."""
    return _device.get()

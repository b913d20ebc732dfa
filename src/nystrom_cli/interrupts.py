"""Ctrl-C that cannot get lost: readers in C take it for a bad file, or for its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_came: list[bool] = []


@contextmanager
def noticed() -> Iterator[None]:
    """Whatever becomes of the exception, `came` and `pass_on` know of Ctrl-C."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield  # somebody else's, or none of ours to see
        return

    def notice(*_: Any) -> None:
        _came.append(True)
        raise KeyboardInterrupt

    _came.clear()
    signal.signal(signal.SIGINT, notice)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def came() -> bool:
    """Whether somebody wants it to stop."""
    return bool(_came)


def pass_on() -> None:
    """Stop here, if somebody wanted that and was not heard."""
    if _came:
        raise KeyboardInterrupt

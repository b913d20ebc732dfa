"""Libraries that not everyone has: imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(name: str, extra: str, purpose: str) -> Any:
    """A module by its name; where it is missing, the error says what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which cannot be imported ({error}); install "
            f'it by pip install "nystrom[{extra}]".'
        ) from error

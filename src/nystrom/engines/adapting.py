"""What may stand for an engine: a Dask client, an executor."""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from typing import Any

from .engine import Engine
from .pool import Pool


def as_engine(engine: Any) -> Engine:
    """An engine as it is, the one on a Dask client's cluster, or on an executor."""
    if isinstance(engine, Engine):
        return engine
    distributed = sys.modules.get("distributed")  # who has a client has imported it
    if distributed is not None and isinstance(engine, distributed.Client):
        from .dask import Dask

        return Dask(engine)
    if isinstance(engine, Executor):
        return Pool(engine)
    raise TypeError(
        f"engine={engine!r} is no engine; pass a value such as "
        "nystrom.engines.Threads(n_jobs=2), a dask.distributed.Client, or a "
        "concurrent.futures executor."
    )

"""`using`: which engine runs the passes of a block of code, on which device, and what
checkpoints them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from .._arrays import check_torch_device
from .._random import seeds_from
from .base import Engine
from .checkpoint import Checkpoint, CheckpointStore
from .executor import ExecutorEngine, JoblibEngine


def as_engine(engine: Any) -> Engine:
    """An engine as it is, or the one on a client's cluster, an executor, or joblib."""
    if isinstance(engine, Engine):
        return engine
    distributed = sys.modules.get(
        "distributed"
    )  # a client exists only where it is imported
    if distributed is not None and isinstance(engine, distributed.Client):
        from .dask import Dask

        return Dask(engine)
    if isinstance(engine, Executor):
        return ExecutorEngine(engine)
    if isinstance(engine, str) and engine == "joblib":
        return JoblibEngine()
    raise TypeError(
        f"engine={engine!r} is no engine; pass a value such as "
        "nystrom.engines.Threads(n_jobs=2), a dask.distributed.Client, a "
        'concurrent.futures executor, or "joblib".'
    )


_current: ContextVar[Engine | None] = ContextVar("nystrom_engine", default=None)
_run: ContextVar[CheckpointStore | None] = ContextVar("nystrom_run", default=None)
_device: ContextVar[str | None] = ContextVar("nystrom_device", default=None)


@contextmanager
def using(
    engine: Any = None,
    *,
    device: str | None = None,
    checkpoint: str | os.PathLike[str] | CheckpointStore | None = None,
    keep_checkpoint: bool = False,
) -> Iterator[Engine | None]:
    """Run all passes of a block of code on one engine, on a device, or save them.

    Estimators and functions make an engine of threads by their own `n_jobs` otherwise.

    Parameters
    ----------
    engine : Engine, distributed.Client, Executor or "joblib", default=None
        What runs the passes; it decides about threads, and `n_jobs` has no say. A
        client stands for the workers of its Dask cluster, an executor of
        `concurrent.futures` for its own, "joblib" for those of the backend that
        `joblib.parallel_config` names: loky, threading, Dask, Ray. None: the engine in
        use around this block, if any.
    device : str, default=None
        Where blocks of dense rows are moved and worked on, as torch tensors: "cuda",
        "cuda:1", or "cpu". Results come back in the library of the rows. None: where
        the rows are.
    checkpoint : str, path or CheckpointStore, default=None
        A folder that keeps what passes have found: after every pass, and within one
        every five minutes (`CheckpointStore(path, every=seconds)`: more or less often).
        Where the process is killed, the same code continues from there, to the same
        result to the last bit; `random_state=None` stands for seeds that the folder
        keeps. `verbose=1` and the log "nystrom" say at which pass. Fits of one block
        follow each other in it. The folder is removed when the block ends without an
        error: so what is done with a model, such as `nystrom.save`, belongs into the
        block. Other data, parameters or versions are refused. A disk that is full is a
        warning, and what was saved stays as it was.
    keep_checkpoint : bool, default=False
        Whether the folder stays when all is done. The same code then returns at once,
        but for what maps rows to rows, such as `transform`, which is saved up to 16 MB.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nystrom import Nystroem, engines
    >>> X, _ = load_iris(return_X_y=True)
    >>> with engines.using(engines.Threads(2)):
    ...     Z = Nystroem(n_components=20, random_state=0).fit_transform(X)
    >>> Z.shape
    (150, 20)

    A run that survives:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with engines.using(checkpoint=f"{folder}/run.ckpt", keep_checkpoint=True):
    ...         model = Nystroem(n_components=20).fit(X)
    ...     with engines.using(checkpoint=f"{folder}/run.ckpt"):
    ...         again = Nystroem(n_components=20).fit(X)
    >>> bool((model.component_indices_ == again.component_indices_).all())
    True
    """
    if keep_checkpoint and checkpoint is None:
        raise ValueError(
            "keep_checkpoint=True is given without a checkpoint; name its folder, "
            "checkpoint='run.ckpt'."
        )
    keeps_engine = engine is None and (device, checkpoint) != (None, None)
    with ExitStack() as stack:
        if not keeps_engine:
            stack.enter_context(_set_variable(_current, as_engine(engine)))
        if device is not None:
            check_torch_device(device)
            stack.enter_context(_set_variable(_device, device))
        if checkpoint is not None:
            run = (
                checkpoint
                if isinstance(checkpoint, CheckpointStore)
                else CheckpointStore(checkpoint)
            )
            stack.enter_context(run.running(keep=keep_checkpoint))
            stack.enter_context(seeds_from(run.seed))
            stack.enter_context(_set_variable(_run, run))
        yield current()


@contextmanager
def _set_variable(variable: ContextVar, value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def current() -> Engine | None:
    """The engine in use; None where none was named."""
    return _current.get()


def current_device() -> str | None:
    """The device in use; None where none was named."""
    return _device.get()


def checkpointed(engine: Engine) -> Engine:
    """The engine, with its passes saved where a checkpoint is in use."""
    run = _run.get()
    return engine if run is None else Checkpoint(engine, run)

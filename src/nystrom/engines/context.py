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
    """Return the engine for a Dask client, an executor or joblib.

    Parameters
    ----------
    engine : Engine, distributed.Client, Executor or "joblib"
        What runs the passes.

    Returns
    -------
    engine : Engine
        The engine.
    """
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
        f"engine={engine!r} is not an engine; pass one such as "
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
    """Run all passes of a block of code on one engine or device, or save them.

    Without it, estimators and functions use threads, as many as `n_jobs` says.

    Parameters
    ----------
    engine : Engine, distributed.Client, Executor or "joblib", default=None
        What runs the passes; `n_jobs` is then ignored. A client runs them on the
        workers of its Dask cluster, an executor of `concurrent.futures` on its own,
        "joblib" on the backend of `joblib.parallel_config` (loky, threading, Dask,
        Ray). None keeps the engine in use.
    device : str, default=None
        Device to which blocks of dense rows are moved as torch tensors: "cuda",
        "cuda:1" or "cpu". Results come back in the library of the rows. None leaves
        rows where they are.
    checkpoint : str, path-like or CheckpointStore, default=None
        Folder that stores the results of passes, after every pass and every five
        minutes within one (`CheckpointStore(path, every=seconds)` changes this). If the
        process is killed, the same code resumes to the same result, to the last bit.
        With `random_state=None`, the folder keeps the seeds. Other data, parameters or
        versions are refused; a full disk is a warning. The folder is removed when the
        block ends without an error, so save the model inside the block.
    keep_checkpoint : bool, default=False
        Whether to keep the folder at the end. The same code then returns at once,
        except for methods that map rows to rows, whose results are stored up to 16 MB.

    Yields
    ------
    engine : Engine or None
        The engine in use.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nystrom import Nystroem, engines
    >>> X, _ = load_iris(return_X_y=True)
    >>> with engines.using(engines.Threads(2)):
    ...     Z = Nystroem(n_components=20, random_state=0).fit_transform(X)
    >>> Z.shape
    (150, 20)

    A run that can be resumed:

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
            "keep_checkpoint=True needs a checkpoint; name its folder, "
            "checkpoint='run.ckpt'."
        )
    keeps_engine = engine is None and (device, checkpoint) != (None, None)
    with ExitStack() as stack:
        if not keeps_engine:
            stack.enter_context(set_variable(_current, as_engine(engine)))
        if device is not None:
            check_torch_device(device)
            stack.enter_context(set_variable(_device, device))
        if checkpoint is not None:
            run = (
                checkpoint
                if isinstance(checkpoint, CheckpointStore)
                else CheckpointStore(checkpoint)
            )
            stack.enter_context(run.running(keep=keep_checkpoint))
            stack.enter_context(seeds_from(run.seed))
            stack.enter_context(set_variable(_run, run))
        yield current()


@contextmanager
def set_variable(variable: ContextVar, value: Any) -> Iterator[None]:
    """The variable has another value in a block of code."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def current() -> Engine | None:
    """Return the engine in use.

    Returns
    -------
    engine : Engine or None
        The engine of the innermost `using` block; None outside.
    """
    return _current.get()


def current_device() -> str | None:
    """The device in use; None where none was named."""
    return _device.get()


def checkpointed(engine: Engine) -> Engine:
    """Return the engine, or one that saves its passes if a checkpoint is in use."""
    run = _run.get()
    return engine if run is None else Checkpoint(engine, run)

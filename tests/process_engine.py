"""An engine as unkind as a cluster: what travels is pickled, and comes back read-only.

Functions, sources, `shared` and results go through pickle to other processes; blocks of
tiles are worked on in random order; no array may be written to that was not made there.
What runs here identically to threads will run on any cluster.
"""

import copy
import pickle
import random
from concurrent.futures import ProcessPoolExecutor, as_completed
from enum import Enum
from functools import lru_cache
from multiprocessing import get_context

import numpy as np

from nystrom.engines import Engine, single_threaded_blas
from nystrom.engines.base import Pass, SumTree, count_tiles, tile_blocks
from nystrom.kernels import Kernel


def frozen(value):
    """The value, with every array in it read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for part in value:
            frozen(part)
    elif hasattr(value, "__dict__") and not isinstance(value, Enum):
        for part in vars(value).values():
            frozen(part)
    return value


def arrays_in(value):
    """Every array in a value; a kernel's own are its data, as rows are a source's."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_in(part)
    elif hasattr(value, "__dict__") and not isinstance(value, (Enum, Kernel)):
        for part in vars(value).values():
            yield from arrays_in(part)


@lru_cache(maxsize=1)
def unpacked(payload):
    return frozen(pickle.loads(payload))


def work(payload, reducing, first, last):
    """One task, in another process: the result, pickled."""
    f, source, shared = unpacked(payload)
    with single_threaded_blas():
        made = Pass(f, source, shared, reducing).run(first, last)
    return pickle.dumps(made)


class Processes(Engine):
    """Two worker processes."""

    def __init__(self, seed=0, tiles_per_task=2):
        self.pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
        self.order = random.Random(seed)
        self.tiles_per_task = tiles_per_task
        self.passes = []
        self.n_tasks = [0]  # shared by all that `telling` makes of it
        self.holds_rows = False

    @property
    def local(self):
        """As unkind, for rows that are held where the pass is begun."""
        engine = copy.copy(self)
        engine.holds_rows = True
        return engine

    def map(self, f, source, sink, shared, name):
        complete = False
        sink.open()
        try:
            for _, _, rows in self._results(f, source, shared, name, reducing=False):
                for start, part in rows:
                    sink.put(start, part)
            complete = True
        finally:
            sink.close(complete)

    def reduce(self, f, source, shared, name):
        results = self._results(f, source, shared, name, reducing=True)
        tree = SumTree()
        for _, size, term in sorted(results, key=lambda result: result[0]):
            tree.push(term, size)
        return frozen(tree.total())

    def _results(self, f, source, shared, name, *, reducing):
        """(first tile, size, result) of every block, as they are done."""
        self.passes.append(name)
        n_tiles = count_tiles(source.n_rows)
        self.progress(name, 0, n_tiles)
        if not self.holds_rows:
            long = [a.shape for a in arrays_in(shared) if source.n_rows in a.shape]
            assert not long, f"{name}: shared has an entry per row: {long}"
        payload = pickle.dumps((f, source, shared))
        blocks = tile_blocks(n_tiles, self.tiles_per_task)
        self.order.shuffle(blocks)
        tasks = {
            self.pool.submit(work, payload, reducing, first, last): (first, size)
            for first, last, size in blocks
        }
        self.n_tasks[0] += len(tasks)
        for n_done, task in enumerate(as_completed(tasks), 1):
            first, size = tasks[task]
            yield first, size, frozen(pickle.loads(task.result()))
            self.progress(name, min(n_done, n_tiles), n_tiles)

    def close(self):
        self.pool.shutdown()

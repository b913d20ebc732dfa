"""How a pass over the rows runs.

An engine has two verbs: `map(f, source, sink, shared, name)` puts rows out and
`reduce(f, source, shared, name)` adds results up. `Threads` is the default; every
estimator and function takes `n_jobs` and makes one. `using` names another for a block
of code: a Dask client, an executor of `concurrent.futures`, or an engine of your own.
"""

from .adapting import as_engine
from .bar import Bar
from .blas import single_threaded_blas
from .checkpoint import Checkpoint
from .engine import TILE, Engine
from .pool import Pool
from .progress import Hook, silent
from .run_file import CheckpointError, RunFile
from .stored import storable
from .summing import SumSink
from .threads import Threads
from .using import checkpointed, current, using

__all__ = [
    "TILE",
    "Bar",
    "Checkpoint",
    "CheckpointError",
    "Engine",
    "Hook",
    "Pool",
    "RunFile",
    "SumSink",
    "Threads",
    "as_engine",
    "checkpointed",
    "current",
    "silent",
    "single_threaded_blas",
    "storable",
    "using",
]

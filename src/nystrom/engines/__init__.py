"""How a pass over the rows runs.

An engine has two verbs: `map(f, source, sink, shared, name)` writes rows out and
`reduce(f, source, shared, name)` sums. `Threads` is the default; every estimator and
function takes `n_jobs` and makes one. `using` sets another for a block of code: a
Dask client, an executor of `concurrent.futures`, joblib, or an engine of your own.
"""

from .base import TILE, Engine, ProgressHook, SumSink, silent
from .blas import single_threaded_blas
from .checkpoint import Checkpoint, CheckpointError, CheckpointStore, storable
from .context import as_engine, checkpointed, current, using
from .executor import ExecutorEngine, JoblibEngine
from .progress import Bar
from .threads import Threads

__all__ = [
    "TILE",
    "Bar",
    "Checkpoint",
    "CheckpointError",
    "CheckpointStore",
    "Engine",
    "ExecutorEngine",
    "JoblibEngine",
    "ProgressHook",
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

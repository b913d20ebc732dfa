"""How a pass over the rows runs.

An engine has two verbs: `map(f, source, sink, shared)` puts rows out and
`reduce(f, source, shared)` adds results up. `Threads` is the default; every estimator
and function takes `n_jobs` and makes one.
"""

from .base import TILE, Engine
from .blas import single_threaded_blas
from .progress import Bar, Hook, silent
from .threads import Threads

__all__ = ["TILE", "Bar", "Engine", "Hook", "Threads", "silent", "single_threaded_blas"]

"""Where rows go.

A `Sink` takes the result of each block by the number of its first row, from several
threads at once. An `Output` is what users give as `out`: nothing, an array, or the path
of a file, which is written block by block, complete or not at all. A file that exists
is replaced only by the path of an `Overwrite`. `replacing` is how, for whoever writes a
file in another way.
"""

from .output import ARRAY, Output, Overwrite
from .replacing import replacing
from .sink import ArraySink, Sink, SplitSink, ThenSink, opened

__all__ = [
    "ARRAY",
    "ArraySink",
    "Output",
    "Overwrite",
    "Sink",
    "SplitSink",
    "ThenSink",
    "opened",
    "replacing",
]

"""Where rows go.

A `Sink` takes the result of each block by the number of its first row, from several
threads at once.
"""

from .sink import ArraySink, Sink, SplitSink

__all__ = ["ArraySink", "Sink", "SplitSink"]

"""Where rows go.

A `Sink` takes the result of each block by the number of its first row, from several
threads at once.
"""

from .memory import ArraySink, Sink

__all__ = ["ArraySink", "Sink"]

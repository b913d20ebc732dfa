"""Ways to damage a model file: each takes a generator and bytes, and returns bytes."""

from . import archive, arrays, schema

WAYS = [*archive.WAYS, *arrays.WAYS, *schema.WAYS]

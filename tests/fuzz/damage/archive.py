"""Damage to the file as bytes, and to the zip that it is."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile

import numpy as np


def entries_of(data) -> dict[str, bytes]:
    """The entries by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(entries, compression=zipfile.ZIP_STORED) -> bytes:
    """A zip of (name, content) pairs; names may be there twice."""
    file = io.BytesIO()
    pairs = entries.items() if isinstance(entries, dict) else entries
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in pairs:
            # Of no time: the same bytes whenever they are made.
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def some(rng, things):
    """One of some things."""
    return things[int(rng.integers(len(things)))]


def flipped(rng, data):
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def flipped_directory(rng, data):
    """Other bytes in the list of entries: sizes, places, checksums, names."""
    begins = data.find(b"PK\x01\x02")
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        changed[rng.integers(begins, len(data))] = rng.integers(256)
    return bytes(changed)


def cut(rng, data):
    return data[: rng.integers(len(data))]


def part_removed(rng, data):
    a, b = np.sort(rng.integers(len(data), size=2))
    return data[:a] + data[b:]


def part_zeroed(rng, data):
    a, b = np.sort(rng.integers(len(data), size=2))
    return data[:a] + bytes(int(b - a)) + data[b:]


def noise(rng, data):
    return rng.bytes(int(rng.integers(0, 500)))


def noise_around(rng, data):
    return rng.bytes(int(rng.integers(50))) + data + rng.bytes(int(rng.integers(50)))


def bomb(rng, data):
    """An entry that is small in the file and large out of it."""
    entries = entries_of(data)
    name = some(rng, [*entries, "more.npy"])
    size = int(2 ** rng.uniform(15, 25))
    begins = entries.get(name, b"")[:128] if rng.random() < 0.5 else b""
    entries[name] = begins + bytes(size)
    return zipped(entries, zipfile.ZIP_DEFLATED)


def overlapping(rng, data):
    """One entry under many names, each of which says to be all of it."""
    begins, ends = data.find(b"PK\x01\x02"), data.rfind(b"PK\x05\x06")
    directory, record = data[begins:ends], data[ends:]
    name = some(rng, list(entries_of(data))).encode()
    place = directory.find(name) - 46
    length = 46 + sum(struct.unpack("<HHH", directory[place + 28 : place + 34]))
    one, times = directory[place : place + length], int(rng.integers(2, 5000))
    names = (f"{i:0{len(name)}d}".encode()[: len(name)] for i in range(times))
    many = b"".join(one.replace(name, other) for other in names)
    n_entries = struct.unpack("<H", record[10:12])[0] + times
    size = len(directory) + len(many)
    counts = struct.pack("<HHII", n_entries, n_entries, size, begins)
    return data[:begins] + directory + many + record[:8] + counts + record[20:]


def outside_names(rng, data):
    """Names that lead out of the archive, in the list and in the schema."""
    entries = entries_of(data)
    name = some(rng, list(entries))
    places = ["../../out", "/etc/passwd", "C:\\out", "..\\out", "a/../../b", "a\x00b"]
    new = some(rng, places)
    said = entries["schema.json"].decode().replace(name, json.dumps(new)[1:-1])
    pairs = [(k, v) for k, v in entries.items() if k != "schema.json"]
    if rng.random() < 0.5:
        pairs = [(new if k == name else k, v) for k, v in pairs]
    return zipped([*pairs, ("schema.json", said)])


def twice(rng, data):
    entries = entries_of(data)
    name = some(rng, list(entries))
    return zipped([*entries.items(), (name, flipped(rng, entries[name]))])


def entry_missing(rng, data):
    entries = entries_of(data)
    entries.pop(some(rng, list(entries)))
    return zipped(entries)


def entries_swapped(rng, data):
    """Arrays in each other's places."""
    entries = entries_of(data)
    arrays = [name for name in entries if not name.endswith(".json")] or [*entries]
    a, b = some(rng, arrays), some(rng, arrays)
    entries[a], entries[b] = entries[b], entries[a]
    return zipped(entries)


WAYS = [
    flipped,
    flipped_directory,
    cut,
    part_removed,
    part_zeroed,
    noise,
    noise_around,
    bomb,
    overlapping,
    outside_names,
    twice,
    entry_missing,
    entries_swapped,
]

"""The checkpoint on disk: results of passes as JSON and arrays, written atomically; it
holds no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import numpy as np
import scipy.sparse as sp

_STORABLE: dict[str, type] = {}


class NotStorableError(TypeError):
    """A value that has no place in such a file."""


def storable(cls: type) -> type:
    """Mark a dataclass, whose fields are storable, by its name."""
    if _STORABLE.setdefault(cls.__name__, cls) is not cls:
        raise ValueError(f"Two storable classes are called {cls.__name__}.")
    return cls


def encode_value(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value as JSON; arrays are put behind those found so far."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        arrays.append(np.asarray(value))
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: len(arrays) - 1}
    if type(value) in (tuple, list):
        parts = [encode_value(part, arrays) for part in value]
        return {"tuple" if type(value) is tuple else "list": parts}
    if isinstance(value, sp.csr_array):
        parts = [value.data, value.indices, value.indptr]
        return {
            "csr": [encode_value(part, arrays) for part in parts],
            "shape": value.shape,
        }
    name = type(value).__name__
    known = _STORABLE.get(name)
    if known is not None and type(value) is known:
        parts = [getattr(value, f.name) for f in fields(known)]
        return {"value": name, "fields": [encode_value(part, arrays) for part in parts]}
    raise NotStorableError(f"{name} cannot be stored.")


def decode_value(tree: Any, arrays: list[np.ndarray]) -> Any:
    """The value that `packed` made JSON of."""
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return arrays[tree["array"]]
    if "scalar" in tree:
        return arrays[tree["scalar"]][()]
    if "csr" in tree:
        parts = [decode_value(part, arrays) for part in tree["csr"]]
        return sp.csr_array(tuple(parts), shape=tuple(tree["shape"]))
    if "value" in tree:
        parts = [decode_value(part, arrays) for part in tree["fields"]]
        return _STORABLE[tree["value"]](*parts)
    kind, parts = next(iter(tree.items()))
    values = [decode_value(part, arrays) for part in parts]
    return tuple(values) if kind == "tuple" else values


#: Counts up when a file can no longer be read by the versions before.
CHECKPOINT_FORMAT = 1
MANIFEST_ENTRY = "nystrom-run.json"
#: Saving between passes may take this share of the time.
MAX_SAVING_SHARE = 0.05
_PACKAGE = sys.modules["nystrom"]


class CheckpointError(ValueError):
    """A checkpoint that is damaged, or of other data, parameters or versions."""


@dataclass(frozen=True)
class PassKey:
    """What a pass is known by."""

    name: str
    function: str
    rows: str
    original: str

    def differs_from(self, other: PassKey) -> str:
        """In what, in words."""
        if (self.name, self.function) != (other.name, other.function):
            return f"is {self.name!r} and would now be {other.name!r}"
        if self.rows != other.rows:
            return f"({self.name!r}) was over other rows, weights or targets"
        return f"({self.name!r}) was made with other parameters"


@dataclass(frozen=True)
class PartialSum:
    """The sum over the first tiles of a pass: (how many tiles, their sum), in order."""

    next_tile: int
    sums: list[tuple[int, Any]]


class CheckpointStore:
    """Where a run is saved: a path, and how often.

    Parameters
    ----------
    path : str or path
        The file. It is made where there is none, and else continued.
    every : float, default=300
        Within a pass it is saved after so many seconds. Between passes it is saved at
        once, unless that would take more than a twentieth of the time.
    """

    path: Path
    every: float
    n_passes: int
    n_seeds: int

    def __init__(self, path: str | os.PathLike[str], every: float = 300.0) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                f"checkpoint={path!r} is not allowed; give the path of a file, or "
                "nystrom.engines.CheckpointStore(path, every=seconds)."
            )
        if not every >= 0:
            raise ValueError(f"every={every!r} is not allowed; give seconds >= 0.")
        # A link is followed, not replaced.
        self.path, self.every = Path(os.path.realpath(path)), float(every)

    @contextmanager
    def running(self, *, keep: bool = True) -> Iterator[CheckpointStore]:
        """One run: from its first pass, or on from where it was saved.

        Unless it is to be kept, the file is removed where the run ends without an
        error; not one of a longer run, of which this was the beginning.
        """
        self._begin()
        try:
            yield self
        except BaseException:
            self._save_rest()
            raise
        about = self._manifest
        longer = self.n_passes < len(about["passes"]) or about["partial"] is not None
        if keep or longer:
            self._save_rest()
        else:
            self._remove()

    def _save_rest(self) -> None:
        if self._unsaved:
            self.save()

    def _remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self.path} of a run that is done could not be "
                f"removed: {error}. Delete it.",
                RuntimeWarning,
                stacklevel=4,
            )

    def _begin(self) -> None:
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"The folder {self.path.parent} does not exist; make it first, or keep "
                "the checkpoint in a folder that exists."
            )
        if self.path.is_dir():
            raise IsADirectoryError(
                f"checkpoint={str(self.path)!r} is a folder; give the name of a file "
                'in it, such as "run.ckpt".'
            )
        for stale in self.path.parent.glob(f".{self.path.name}.*.tmp"):
            with suppress(OSError):  # a process was killed while it wrote
                stale.unlink()
        exists = self.path.exists()
        self._manifest = self._read_about() if exists else _new_manifest()
        self._n_saved = len(self._manifest["passes"])
        self._resumed = exists and (self._n_saved, self._manifest["partial"]) != (
            0,
            None,
        )
        self._unsaved: dict[str, list[np.ndarray]] = {}
        self.n_passes = self.n_seeds = 0
        self._warned, self._last_save_seconds, self._saved_at = (
            False,
            0.0,
            time.perf_counter(),
        )

    def seed(self) -> int:
        """The next seed where the user gave none: the same when the run is repeated."""
        self.n_seeds += 1
        text = f"{self._manifest['seed']} {self.n_seeds}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 1

    def next_pass(self, key: PassKey) -> int:
        """The number of the pass that begins, if it is the one that was saved."""
        number, saved = self.n_passes, self._manifest["passes"]
        partial = self._manifest["partial"]
        if number < len(saved):
            self._compare(number, saved[number]["key"], key)
        elif partial is not None and number == len(saved):
            self._compare(number, partial["key"], key)
        self.n_passes += 1
        return number

    def _compare(self, number: int, saved: dict[str, str], key: PassKey) -> None:
        before = PassKey(**saved)
        if before != key:
            raise CheckpointError(
                f"{self.path} is of another run: its pass {number + 1} "
                f"{before.differs_from(key)}. Repeat what it was made by, with the "
                "same data, parameters and versions, or delete the file to begin anew."
            )

    def resumed_at(self, number: int) -> bool:
        """Whether this is the pass at which a saved run continues: true once."""
        if not self._resumed or number < self._n_saved:
            return False
        self._resumed = False
        return True

    def is_done(self, number: int) -> bool:
        """Whether the result of a pass is at hand."""
        saved = self._manifest["passes"]
        return number < len(saved) and saved[number]["value"] is not None

    def result(self, number: int) -> Any:
        """What a pass found."""
        value = self._manifest["passes"][number]["value"]
        return decode_value(
            value["tree"], self._arrays(f"pass {number}", value["arrays"])
        )

    def part(self, number: int) -> PartialSum:
        """What is known of a pass that was not finished: nothing, perhaps."""
        value = self._manifest["partial"]
        if value is None or number != len(self._manifest["passes"]):
            return PartialSum(0, [])
        arrays = self._arrays("partial", value["arrays"])
        sums = [(size, term) for size, term in decode_value(value["tree"], arrays)]
        return PartialSum(value["next_tile"], sums)

    def finish(self, number: int, key: PassKey, result: Any, *, keep: bool) -> None:
        """A pass is done. What is not kept, or cannot be, will be made again."""
        if number < len(self._manifest["passes"]):
            return
        value, arrays = None, list[np.ndarray]()
        if keep:
            with suppress(NotStorableError):
                value = {"tree": encode_value(result, arrays), "arrays": len(arrays)}
        self._manifest["passes"].append({"key": asdict(key), "value": value})
        self._manifest["partial"] = None
        self._unsaved.pop("partial", None)
        self._unsaved[f"pass {number}"] = arrays if value else []
        seconds_since_save = time.perf_counter() - self._saved_at
        if (
            seconds_since_save
            < min(self.every, self._last_save_seconds / MAX_SAVING_SHARE)
            or not self.save()
        ):
            self._copy_unsaved()

    def save_partial(
        self, key: PassKey, partial: PartialSum, *, force: bool = False
    ) -> None:
        """Save a pass that goes on, if it is time to."""
        if not force and time.perf_counter() - self._saved_at < self.every:
            return
        arrays = list[np.ndarray]()
        try:
            tree = encode_value([list(entry) for entry in partial.sums], arrays)
        except NotStorableError:
            return
        value = {"key": asdict(key), "next_tile": partial.next_tile, "tree": tree}
        self._manifest["partial"] = {**value, "arrays": len(arrays)}
        self._unsaved["partial"] = arrays
        if not self.save():
            # Its arrays are used up by the sum that goes on.
            self._manifest["partial"] = None
            del self._unsaved["partial"]

    def save(self) -> bool:
        """Write the file; whether it could be. One warning if not: the run goes on."""
        started = time.perf_counter()
        try:
            self._write()
        except (OSError, BadZipFile, ValueError) as error:  # the last two by zipfile
            self._warn(error)
            return False
        finally:
            self._saved_at = time.perf_counter()
            self._last_save_seconds = self._saved_at - started
        self._n_saved, self._unsaved = len(self._manifest["passes"]), {}
        return True

    def _warn(self, error: Exception) -> None:
        if self._warned:
            return
        self._warned = True
        warnings.warn(
            f"The checkpoint {self.path} could not be written: {error}. It stays as "
            "it was, and the run goes on without saving until it can be written again.",
            RuntimeWarning,
            stacklevel=2,
        )

    def _write(self) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                self._write_entries(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(self.path.parent)

    def _write_entries(self, file: BinaryIO) -> None:
        """What the file has of passes that are done, what is new, and the rest."""
        with ZipFile(file, "w") as new:
            if self._n_saved:
                with ZipFile(self.path) as old:
                    for name in old.namelist():
                        if name.startswith("pass "):
                            new.writestr(name, old.read(name))
            for entry_name, arrays in self._unsaved.items():
                for i, array in enumerate(arrays):
                    with new.open(
                        f"{entry_name}/{i}.npy", "w", force_zip64=True
                    ) as entry:
                        np.lib.format.write_array(entry, array, allow_pickle=False)
            new.writestr(MANIFEST_ENTRY, json.dumps(self._manifest))

    def _copy_unsaved(self) -> None:
        """Results go on to whoever asked for them, and may be changed there."""
        for where, found in self._unsaved.items():
            self._unsaved[where] = [np.array(array, order="K") for array in found]

    def _arrays(self, where: str, count: int) -> list[np.ndarray]:
        if where in self._unsaved:
            return self._unsaved[where]
        with ZipFile(self.path) as archive:
            arrays = []
            for i in range(count):
                with archive.open(f"{where}/{i}.npy") as entry:
                    arrays.append(np.lib.format.read_array(entry, allow_pickle=False))
            return arrays

    def _read_about(self) -> dict[str, Any]:
        try:
            with ZipFile(self.path) as archive:
                bad_entry = archive.testzip()  # reads all, and compares the checksums
                manifest = json.loads(archive.read(MANIFEST_ENTRY))
            if bad_entry is not None:
                raise BadZipFile(f"{bad_entry} is not as it was written")
            format_number, version = manifest["format"], manifest["nystrom"]
        except (BadZipFile, KeyError, ValueError, TypeError, EOFError) as error:
            raise CheckpointError(
                f"{self.path} is no checkpoint, or a damaged one ({error}). Delete it "
                "to begin anew, or give the name of another file."
            ) from None
        if (format_number, version) != (CHECKPOINT_FORMAT, _PACKAGE.__version__):
            raise CheckpointError(
                f"{self.path} was written by nystrom {version}, and this is nystrom "
                f"{_PACKAGE.__version__}: passes may differ. Continue with that "
                "version, or delete the file to begin anew."
            )
        return manifest


def _new_manifest() -> dict[str, Any]:
    return {
        "format": CHECKPOINT_FORMAT,
        "nystrom": _PACKAGE.__version__,
        "seed": secrets.randbits(63),
        "passes": [],
        "partial": None,
    }


def _sync_folder(folder: Path) -> None:
    """The new name, too, is on the disk; where a folder can be told so."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

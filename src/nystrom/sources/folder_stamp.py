"""What a folder was when it was opened, for formats that keep a file per chunk."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from .file_errors import FileError, changed


@dataclass(frozen=True)
class FolderStamp:
    """Sizes and times of all files in a folder, and when the last of them changed.

    A few bytes, however many files there are: a source travels with its stamp.
    """

    digest: str
    #: The last change of a file or folder. Not of `digest`, as copies have others.
    newest: int = field(repr=False, compare=False)

    @classmethod
    def of(cls, path: str) -> FolderStamp:
        """The stamp of a folder as it is now."""
        try:
            newest = _last_change(os.stat(path))
            inside = sorted(_inside(path, ""), key=itemgetter(0))
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}.") from error
        seen = hashlib.sha256()
        for name, found in inside:
            newest = max(newest, _last_change(found))
            if not stat.S_ISDIR(found.st_mode):
                line = f"{name}|{found.st_size}|{found.st_mtime_ns}|"
                seen.update(line.encode("utf-8", "surrogateescape"))
        return cls(seen.hexdigest()[:16], newest)

    def check(self, path: str) -> None:
        """Refuse a folder of which any file is another one by now."""
        if FolderStamp.of(path) != self:
            raise changed(path)

    def check_files(self, folder: str, files: Iterable[str]) -> None:
        """Refuse some files, known by their names in a folder, that changed since.

        One that is deleted, or was not there before, changes the folder that it is in.
        """
        seen: set[str] = set()
        for file in files:
            path = os.path.join(folder, file)
            while path not in seen:
                seen.add(path)
                self.check_file(path)
                if path == folder:
                    break
                path = os.path.dirname(path)

    def check_file(self, path: str) -> None:
        """Refuse one that changed since."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return  # its folder tells whether it was there
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}.") from error
        if _last_change(found) > self.newest:
            raise changed(path)


def _last_change(found: os.stat_result) -> int:
    """Of content or, since a time can be set back, of what is known about a file."""
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _inside(path: str, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """All files and folders in a folder, by their names in it."""
    with os.scandir(os.path.join(path, prefix)) as entries:
        for entry in entries:
            name = os.path.join(prefix, entry.name)
            yield name, entry.stat()
            if entry.is_dir():
                yield from _inside(path, name)

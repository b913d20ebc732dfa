"""The set as the public archive has it: downloaded once, checked every time.

A file is taken only if it is the one expected: by its published sha256, or, where none
has been published, by what is in it; its own sha256 is then kept beside it, so that a
change on the disk is noticed. Files appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError

from .archive import Archive, ArchiveFile, RawTable
from .original_files import read_paths
from .parsed_copy import read_copy, write_copy


def read_archive(
    archive: Archive,
    folder: Path,
    *,
    download_if_missing: bool,
    n_retries: int,
    delay: float,
) -> tuple[RawTable, str]:
    """X and y of the whole set, and whether it came by "download" or from the "cache".

    Whatever keeps the set from being had is an OSError that says what to do about it.
    """
    arrived: list[ArchiveFile] = []
    try:
        for file in archive.files:
            if not _is_whole(folder, file):
                if not download_if_missing:
                    raise OSError(
                        f"{folder / file.filename} is missing or damaged, and "
                        "download_if_missing=False"
                    )
                _download(folder, file, n_retries, delay)
                arrived.append(file)
        X, y = _read_and_check(archive, folder)
        for file in archive.files:
            _record_hash(folder, file)
    except OSError as error:
        _forget(folder, arrived)
        raise OSError(_what_to_do(archive, folder, error)) from error
    except BaseException:
        _forget(folder, arrived)
        raise
    return (X, y), "download" if arrived else "cache"


def _read_and_check(archive: Archive, folder: Path) -> RawTable:
    paths = [folder / file.filename for file in archive.files]
    hashes = [_hash(path) for path in paths] if archive.keeps_parsed else []
    table = read_copy(folder, hashes) if hashes else None
    if table is not None:
        return table  # checked before it was copied
    try:
        X, y = read_paths(archive, paths)
    except ValueError as error:
        raise OSError(str(error)) from error
    difference = (
        f"it has {len(X)} rows, not {archive.n_rows}"
        if len(X) != archive.n_rows
        else archive.differs_in(X, y)
    )
    if difference:
        names = ", ".join(file.filename for file in archive.files)
        raise OSError(f"{names} in {folder} is not the original: {difference}")
    if hashes:
        write_copy(folder, hashes, (X, y))
    return X, y


def _is_whole(folder: Path, file: ArchiveFile) -> bool:
    local = folder / file.filename
    if not local.exists():
        return False
    expected = _expected_hash(folder, file)
    return expected is None or _hash(local) == expected


def _download(folder: Path, file: ArchiveFile, n_retries: int, delay: float) -> None:
    from sklearn.datasets import fetch_file

    local = folder / file.filename
    folder.mkdir(parents=True, exist_ok=True)
    damaged = local.exists()
    try:
        with warnings.catch_warnings():
            # Of retries, and of a damaged file, which is said below in our words.
            warnings.simplefilter("ignore")
            fetch_file(
                file.url,
                folder=folder,
                local_filename=file.filename,
                sha256=_expected_hash(folder, file),
                n_retries=n_retries,
                delay=delay,
            )
    except (OSError, HTTPException) as error:
        before = f"{local} is damaged, as its sha256 shows, and " if damaged else ""
        reason = str(error) or type(error).__name__
        if isinstance(error, HTTPError):
            error.close()  # it holds the connection
        raise OSError(
            f"{before}{file.url} could not be downloaded: {reason}"
        ) from error
    if damaged:
        warnings.warn(
            f"{local} was damaged, as its sha256 showed; it was downloaded again.",
            stacklevel=5,
        )


def _expected_hash(folder: Path, file: ArchiveFile) -> str | None:
    """The published hash, else that of the first download, else None."""
    if file.sha256 is not None:
        return file.sha256
    try:
        return _record(folder, file).read_text(encoding="ascii").split()[0]
    except (OSError, ValueError, IndexError):
        return None


def _record(folder: Path, file: ArchiveFile) -> Path:
    return folder / f"{file.filename}.sha256"


def _record_hash(folder: Path, file: ArchiveFile) -> None:
    if _expected_hash(folder, file) is not None:
        return
    line = f"{_hash(folder / file.filename)}  {file.filename}\n"
    beside = folder / f"{file.filename}.{uuid.uuid4().hex}"
    # A folder that cannot be written to can still be read from.
    with suppress(PermissionError):
        try:
            beside.write_text(line, encoding="ascii")
            os.replace(beside, _record(folder, file))
        finally:
            beside.unlink(missing_ok=True)


def _hash(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _forget(folder: Path, arrived: list[ArchiveFile]) -> None:
    """Remove what a failed call downloaded, but for files known to be right."""
    with suppress(OSError):
        for file in arrived:
            if file.sha256 is None:
                (folder / file.filename).unlink(missing_ok=True)
        folder.rmdir()  # only if nothing is left in it


def _what_to_do(archive: Archive, folder: Path, error: OSError) -> str:
    urls = " and ".join(file.url for file in archive.files)
    return (
        f"{archive} cannot be had: {error}. It was looked for in {folder} and comes "
        f"from {urls}. Connect to the network and call again, after deleting that "
        "folder if a file in it is damaged; or download by other means and pass path=; "
        'or pass missing="generate" for generated data of the same shape.'
    )

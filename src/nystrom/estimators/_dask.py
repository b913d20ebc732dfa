"""Lazy results for Dask arrays: methods return Dask arrays, computed chunk by chunk."""

from __future__ import annotations

import copy
import uuid
from typing import Any

import numpy as np

from ..engines import Threads, using
from ..sources.dask import as_dask_matrix, column_names
from ._inputs import check_feature_names_match


def lazy_result(method: str, fitted: Any, X: Any, args: tuple, options: dict) -> Any:
    """What a method returns for rows, as a lazy Dask array.

    What is fitted now counts, also if the estimator is fitted anew before the result is
    computed.
    """
    from dask import delayed

    check_feature_names_match(column_names(X), fitted._fitted_names)
    fitted, X = copy.copy(fitted), as_dask_matrix(X, known_lengths=False)
    vars(fitted).pop("feature_names_in_", None)  # chunks are arrays, without names
    # One row tells what comes out, and is refused where all would be.
    prototypes, is_tuple = _call_method(
        fitted, method, _prototype_row(fitted, X), args, options
    )
    widths = [part.shape[1] if part.ndim == 2 else 1 for part in prototypes]
    bounds = np.cumsum([0, *widths])
    side_by_side = X.map_blocks(
        _call_on_chunk,
        # Once for all chunks.
        fitted=delayed(fitted, name=f"fitted-{uuid.uuid4().hex}"),
        method=method,
        args=args,
        options=options,
        width=int(bounds[-1]),
        dtype=np.result_type(*prototypes),
        chunks=(X.chunks[0], (int(bounds[-1]),)),
        meta=np.empty((0, 0), np.result_type(*prototypes)),
    )
    lazy = []
    for part, start, stop in zip(prototypes, bounds[:-1], bounds[1:], strict=True):
        columns = slice(start, stop) if part.ndim == 2 else start
        lazy.append(side_by_side[:, columns].astype(part.dtype))
    return tuple(lazy) if is_tuple else lazy[0]


def _prototype_row(fitted: Any, X: Any) -> np.ndarray:
    """A row as those of X: a landmark if there are such, since any kernel takes it."""
    landmarks = getattr(fitted, "landmarks_", None)
    points = getattr(landmarks, "points", None)
    if isinstance(points, np.ndarray) and points.shape[1:] == X.shape[1:]:
        return points[:1].astype(X.dtype)
    return np.zeros((1, X.shape[1]), X.dtype)


def _call_method(
    fitted: Any, method: str, rows: np.ndarray, args: tuple, options: dict
) -> tuple[list[np.ndarray], bool]:
    """What the method returns for some rows, and whether that is several arrays."""
    with using(Threads(1)):  # Dask has threads of its own
        result = getattr(fitted, method)(rows, *args, **options)
    is_tuple = isinstance(result, tuple)
    return [np.asarray(part) for part in (result if is_tuple else (result,))], is_tuple


def _call_on_chunk(
    rows: Any, fitted: Any, method: str, args: tuple, options: dict, width: int
) -> np.ndarray:
    """All that the method returns for the rows of a chunk, side by side."""
    if len(rows) == 0:  # of a chunk of unknown length
        return np.empty((0, width))
    parts, _ = _call_method(fitted, method, np.asarray(rows), args, options)
    return np.concatenate([part.reshape(len(rows), -1) for part in parts], axis=1)

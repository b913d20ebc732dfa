"""`KernelPCA` on landmarks: its parameters checked, what is fitted, the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import svd_flip

from .. import _arrays as arrays
from ..engines import Engine
from ..kernels import AdditiveChi2, Chi2
from ..landmarks import Landmarks
from ..methods.linear_map import LinearMap
from ..methods.pca import Components
from ..methods.preimage import Preimage, preimage
from ..refusals import count, number, unknown
from ..sources import Source, as_source
from .on_landmarks import in_library_of

SOLVERS = ("auto", "dense", "arpack", "randomized")


def check_options(ours: Any) -> None:
    """Refuse parameters that are none; scikit-learn checks its own."""
    count(ours.n_components, "n_components", optional=True)
    if ours.eigen_solver not in SOLVERS:
        raise unknown("eigen_solver", ours.eigen_solver, list(SOLVERS))
    number(ours.alpha, "alpha", least=0.0)
    number(ours.tol, "tol", least=0.0)
    count(ours.max_iter, "max_iter", optional=True)
    if ours.iterated_power != "auto":
        count(ours.iterated_power, "iterated_power", least=0)
    width = getattr(ours.kernel, "gamma", ours.gamma)
    if ours.fit_inverse_transform and np.ndim(width) > 0:
        raise ValueError(
            "fit_inverse_transform=True needs one gamma: the way back is a kernel "
            "of coordinates, not of features."
        )
    if ours.fit_inverse_transform and _of_histograms(ours.kernel):
        raise ValueError(
            f"fit_inverse_transform=True is not possible with kernel="
            f"{ours.kernel!r}: the way back is a kernel of coordinates, which have "
            "both signs. Use another kernel, or leave fit_inverse_transform out."
        )


def _of_histograms(kernel: Any) -> bool:
    if isinstance(kernel, str):
        return kernel in ("chi2", "additive_chi2")
    return isinstance(kernel, (AdditiveChi2, Chi2))


def fitted_on_landmarks(
    ours: Any, landmarks: Landmarks, found: Components, source: Source
) -> dict[str, Any]:
    """What is fitted, by its name."""
    values, dual, offset = _wanted(found, ours.n_components, ours.remove_zero_eig)
    eigenvectors, _ = svd_flip(u=dual * np.sqrt(values), v=None)
    # The coordinates get the signs that the eigenvectors have.
    signs = np.where(np.sum(eigenvectors * dual, axis=0) < 0, -1.0, 1.0)
    like = landmarks.kernel.like(landmarks.points)
    # Where all rows are landmarks, in the precision that scikit-learn's would have, if
    # it has such numbers.
    narrow = arrays.host_dtype(like)
    fits = values.max(initial=0.0) <= np.finfo(narrow).max
    whole = len(landmarks) == source.n_rows
    dtype = narrow if whole and fits else values.dtype
    narrowed, total = values.astype(dtype), float(found.total)
    shares = narrowed / total if total > 0 else np.zeros(len(narrowed))
    return {
        "X_fit_": landmarks.points,
        "_map": LinearMap.as_precise_as_needed(
            landmarks, source, dual * signs, -offset * signs
        ),
        "eigenvalues_": arrays.from_host(values, like, dtype),
        "eigenvectors_": arrays.from_host(eigenvectors, like, dtype),
        "explained_variance_ratio_": arrays.from_host(shares, like, shares.dtype),
        "n_landmarks_path_": arrays.from_host(found.sizes, like, found.sizes.dtype),
        "explained_variance_path_": arrays.from_host(
            found.shares, like, found.shares.dtype
        ),
    }


def _wanted(
    found: Components, n_components: int | None, remove_zero_eig: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, directions, offsets: as many as asked for, as theirs has it."""
    values, dual, offset = found.values, found.dual, found.offset
    if remove_zero_eig or n_components is None:
        kept = values > 0
        return values[kept], dual[:, kept], offset[kept]
    missing = min(n_components, len(dual)) - len(values)
    if missing <= 0:
        return values, dual, offset
    columns = np.zeros((len(dual), missing))
    none = np.zeros(missing)
    return (
        np.concatenate([values, none]),
        np.concatenate([dual, columns], axis=1),
        np.concatenate([offset, none]),
    )


def way_back(
    landmarks: Landmarks, forth: LinearMap, source: Source, alpha: float, engine: Engine
) -> dict[str, Any]:
    """What is fitted of the way from coordinates to rows, by its name."""
    _check_rows_of_numbers(landmarks.points)
    back = preimage(landmarks, forth, source, alpha, engine)
    return {
        "_preimage": back,
        "dual_coef_": in_library_of(landmarks, back.map.dual),
        "X_transformed_fit_": back.landmarks.points,
    }


def _check_rows_of_numbers(points: Any) -> None:
    if sp.issparse(points):
        raise NotImplementedError(
            "Inverse transform not implemented for sparse matrices!"
        )
    if not arrays.is_array(points):
        raise ValueError("fit_inverse_transform=True needs rows of numbers.")


def rows_at(back: Preimage, X: Any, engine: Engine) -> Any:
    """Rows that have about the coordinates given."""
    X = X if arrays.is_array(X) else np.asarray(X)
    source = as_source(arrays.detached(X))
    width = back.landmarks.points.shape[1]
    if source.n_features != width:
        raise ValueError(
            f"X has {source.n_features} columns; the coordinates of this KernelPCA "
            f"have {width}."
        )
    return back.map(back.landmarks, source, engine, "rows")

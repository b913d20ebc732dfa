"""gamma="learn": from an estimator's targets to the kernel that it is fitted with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array

from .. import _arrays as arrays
from ..edge.rows import check_lengths, explaining, in_memory
from ..edge.widths import EACH, width_from_data
from ..engines import Engine
from ..kernels import Kernel
from ..kernels.names import NAMES, as_kernel, width_of
from ..kernels.slopes import has_slopes
from ..methods.widths.learning import learn
from ..methods.widths.looked import POINTS, Looked
from ..sources import Source

#: More widths than this are not learnt.
MOST_FEATURES = 2**14


def check_learning(gamma: str, kernel: Any) -> None:
    """Refuse kernels whose widths cannot be learnt."""
    if isinstance(kernel, str) and kernel in NAMES and has_slopes(as_kernel(kernel)):
        return
    known = [name for name in NAMES if has_slopes(as_kernel(name))]
    raise ValueError(
        f"gamma={gamma!r} is for kernels of a distance, by their name: "
        f"{', '.join(known)}; not for kernel={kernel!r}."
    )


def learnt_kernel(
    gamma: str,
    name: str,
    kernel: Kernel,
    source: Source,
    engine: Engine,
    *,
    size: Any,
    intercept: bool,
    seed: int,
) -> Kernel:
    """The kernel, which has the width "scale", with the widths learnt.

    `size` is how many landmarks there will be, where that is known.
    """
    each = gamma == EACH
    if each and (source.n_features or 0) > MOST_FEATURES:
        raise ValueError(
            f"gamma={gamma!r} has a width for each of {source.n_features} features, "
            f"and takes at most {MOST_FEATURES}; use gamma='learn', one for all."
        )
    if not source.weights.any():
        return kernel
    looked = Looked.at(
        source,
        engine,
        size=size if isinstance(size, int) else POINTS,
        intercept=intercept,
        dense=each,
        seed=seed,
    )
    scale, median = width_of(kernel), width_from_data("median", name, source, engine)
    assert isinstance(scale, float)
    return learn(kernel, [scale, median], looked, each=each)


def targets_or_classes(X: Any, y: Any) -> Any:
    """Targets for gamma="learn" of y that may be anything, or of a source.

    Numbers are what is of a floating-point type; anything else stands for classes,
    which become ±1 for each of them.
    """
    if y is None:
        return getattr(X, "targets", None)
    y = np.asarray(arrays.fetched(in_memory(y)))
    check_lengths(X, y)
    if y.dtype.kind != "f":
        return LabelBinarizer(neg_label=-1).fit_transform(y).astype(np.float64)
    with explaining(y=y):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y[:, None] if y.ndim == 1 else y

"""Kernels k(x, y) as small immutable values.

`kernel(X, Y)` is the block of K for two blocks of rows and `kernel.diag(X)` its
diagonal. Kernels add and multiply, `RBF(0.1) + 0.5 * Linear()`, and every estimator and
function takes one wherever it takes a name. `gamma` and `length_scale` may be one
number or one per feature. A function of two rows is a kernel as it is; `blockwise`
makes one from a function of two blocks.

Examples
--------
>>> import numpy as np
>>> from nystrom import kernels
>>> kernel = kernels.RBF(gamma=0.5) + 2.0 * kernels.Linear()
>>> kernel(np.array([[0.0], [1.0]]), np.array([[1.0]])).round(3)
array([[0.607],
       [3.   ]])
>>> print(kernel)
RBF(gamma=0.5) + 2 * Linear()
"""

from .base import Kernel, Traits
from .dot_product import Cosine, Linear, Polynomial, Sigmoid
from .stationary import (
    RBF,
    AdditiveChi2,
    Chi2,
    Laplacian,
    Mahalanobis,
    Matern,
    RationalQuadratic,
)
from .user import (
    Blockwise,
    Pairwise,
    Precomputed,
    PrecomputedAtLandmarks,
    PrecomputedCross,
    blockwise,
)

__all__ = [
    "RBF",
    "AdditiveChi2",
    "Blockwise",
    "Chi2",
    "Cosine",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mahalanobis",
    "Matern",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "PrecomputedAtLandmarks",
    "PrecomputedCross",
    "RationalQuadratic",
    "Sigmoid",
    "Traits",
    "blockwise",
]

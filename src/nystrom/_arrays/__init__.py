"""The only place that tells NumPy from torch and the rest.

Blocks of rows, and of K, stay in the library and on the device that the user's array
came in; everything small (s × s matrices, one number per row that decides) lives on
the host in NumPy, float64. `to_host` and `from_host` are the border between the two:
nothing crosses it elsewhere. Besides, the few operations for which NumPy has a faster
form than the array API standard. All is used as `arrays.name`, whichever file has it.
"""

from array_api_compat import device

from .arithmetic import (
    at_least,
    by_label,
    column_squares,
    dot,
    exp_,
    sqrt_,
    squared_norms,
    sums_by_label,
    tanh_,
    total,
    zeros,
)
from .floats import (
    aligned,
    as_float,
    canonical,
    epsilon,
    float_dtype,
    host_dtype,
    own_dtype,
    widen,
)
from .moving import (
    beside,
    check_torch_device,
    detached,
    fetched,
    from_host,
    host_values,
    to_host,
    torch_tensor,
)
from .pairwise import additive_chi2, cityblock, squared_distances, with_norms
from .places import Array, has_float64, is_array, is_block, namespace, on_host, place
from .rows import (
    append_rows,
    count_rows,
    first_of_equals,
    side_by_side,
    slice_rows,
    stack_rows,
    take_columns,
    take_rows,
    with_rows,
)

__all__ = [
    "Array",
    "additive_chi2",
    "aligned",
    "append_rows",
    "as_float",
    "at_least",
    "beside",
    "by_label",
    "canonical",
    "check_torch_device",
    "cityblock",
    "column_squares",
    "count_rows",
    "detached",
    "device",
    "dot",
    "epsilon",
    "exp_",
    "fetched",
    "first_of_equals",
    "float_dtype",
    "from_host",
    "has_float64",
    "host_dtype",
    "host_values",
    "is_array",
    "is_block",
    "namespace",
    "on_host",
    "own_dtype",
    "place",
    "side_by_side",
    "slice_rows",
    "sqrt_",
    "squared_distances",
    "squared_norms",
    "stack_rows",
    "sums_by_label",
    "take_columns",
    "take_rows",
    "tanh_",
    "to_host",
    "torch_tensor",
    "total",
    "widen",
    "with_norms",
    "with_rows",
    "zeros",
]

"""
How do I fit a model on a Dask cluster?
=======================================

Inside ``engines.using(client)`` every pass over the rows runs on the workers of the
cluster. The landmarks and coefficients are the same as without it, to the last bit.

When not to use it: on one machine threads are faster, and they need no set-up
(``n_jobs=-1``).
"""

import importlib.util

import numpy as np

from nystrom import KernelRidge, engines, sources


def make_rows(start, stop):
    """Rows start to stop, always the same: workers generate their own."""
    t = np.arange(start, stop)
    return np.column_stack([np.cos(t), np.sin(t), np.cos(t * t)])


rows = sources.GeneratedRows(make_rows, 100_000, 3)
target = np.sin(3 * make_rows(0, 100_000)[:, 0])
model = KernelRidge(0.1, kernel="rbf", gamma=0.5, n_landmarks=50, random_state=0)
here = model.fit(rows, target).dual_coef_

# %%
# The same on a cluster; here its two workers are threads of this process.
if importlib.util.find_spec("distributed"):
    from distributed import Client

    options = {"processes": False, "dashboard_address": None}
    with (
        Client(n_workers=2, threads_per_worker=1, **options) as client,
        engines.using(client),
    ):
        there = model.fit(rows, target).dual_coef_
    print("the same coefficients:", np.array_equal(here, there))
else:
    print("dask.distributed is not installed (pip install 'dask[distributed]').")

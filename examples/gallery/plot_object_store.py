"""
How do I fit a model to a folder in S3?
=======================================

``sources.open`` reads a pattern of Parquet files in an object store, with the columns,
target and filter that you name. Here the store is a local test server.

When not to use it: if you fit many models, copy the files to a local disk first,
because every pass reads them again.
"""

import importlib.util

import numpy as np

from nystrom import KernelRidge, sources

needed = ("moto", "s3fs", "flask", "pyarrow")
missing = [name for name in needed if not importlib.util.find_spec(name)]
if missing:
    print(f"This example needs {', '.join(missing)} (pip install s3fs 'moto[server]').")

# %%
# A server on this machine, and a bucket with four files:
if not missing:
    import logging

    import pyarrow as pa
    import pyarrow.parquet as pq
    import s3fs
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "key": "user",
        "secret": "secret",
        "client_kwargs": {"endpoint_url": f"http://{host}:{port}"},
    }
    store = s3fs.S3FileSystem(**options)
    store.mkdir("songs")
    rng = np.random.default_rng(0)
    for year in (2000, 2005, 2010, 2015):
        X = rng.standard_normal((5000, 2))
        noise = 0.1 * rng.standard_normal(5000)
        columns = {"tempo": X[:, 0], "energy": X[:, 1], "rating": X[:, 0] ** 2 + noise}
        with store.open(f"songs/year={year}/part.parquet", "wb") as file:
            pq.write_table(pa.table(columns), file)

# %%
# Folders named ``year=2005`` become a column, which the filter uses:
if not missing:
    from pyarrow import compute as pc

    songs = sources.open(
        "s3://songs/year=*/*.parquet",
        target="rating",
        columns=["tempo", "energy"],
        filter=pc.field("year") > 2002,
        storage_options=options,
    )
    model = KernelRidge(0.1, kernel="rbf", gamma=0.5, n_landmarks=100, random_state=0)
    model.fit(songs)
    print(songs.n_rows, "rows, R² =", round(model.score(songs), 3))
    print(model.landmarks_)
    server.stop()

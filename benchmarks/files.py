"""Kernel ridge regression on rows in files, beside the same rows in memory.

    python3 dev.py bench files [rows]

20 columns and a target, float32, made once in the folder for temporary files and
removed afterwards; KernelRidge with 500 landmarks by the default sampler. Each fit runs
in a process of its own, in turn. Fits from .npy and Parquet may map less than the size
of the data beside what the libraries have mapped, or 1.2 GB if the data are less. CSV
counts with its conversion. With moto and s3fs installed, the rows are read from an S3
server on this machine too, a Parquet file for each row group: moto reads all of a file
for every part that is asked for. Peaks are of resident memory. The table goes to
results/files.csv.
"""

from __future__ import annotations

import csv
import importlib.util
import logging
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

RESULTS = Path(__file__).parent / "results" / "files.csv"
COLUMNS, SIZE, BLOCK, REPEATS = 20, 500, 2**18, 3


def blocks(n_rows: int):
    """Rows with their target in the last column, block by block."""
    directions = np.random.default_rng(0).standard_normal((6, COLUMNS))
    for start in range(0, n_rows, BLOCK):
        rng = np.random.default_rng([1, start])
        stop = min(start + BLOCK, n_rows)
        hidden = rng.standard_normal((stop - start, 6))
        rows = hidden @ directions + 0.5 * rng.standard_normal((stop - start, COLUMNS))
        y = np.sin(hidden[:, 0]) + hidden[:, 1] * hidden[:, 2]
        yield np.column_stack([rows, y]).astype(np.float32)


def write(folder: Path, n_rows: int) -> None:
    """The same rows as .npy, Parquet and CSV."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    shape = (n_rows, COLUMNS + 1)
    array = np.lib.format.open_memmap(
        folder / "rows.npy", mode="w+", dtype=np.float32, shape=shape
    )
    names = [*(f"x{i}" for i in range(COLUMNS)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    place, parts = 0, folder / "parts"
    parts.mkdir()
    options = {"use_dictionary": False, "compression": "zstd"}
    with (
        parquet.ParquetWriter(folder / "rows.parquet", schema, **options) as writer,
        arrow_csv.CSVWriter(folder / "rows.csv", schema) as lines,
    ):
        for rows in blocks(n_rows):
            array[place : place + len(rows)] = rows
            place += len(rows)
            columns = [np.ascontiguousarray(column) for column in rows.T]
            table = pa.table(columns, schema=schema)
            writer.write_table(table)
            parquet.write_table(table, parts / f"{place:09d}.parquet", **options)
            lines.write_table(table)
    array.flush()


def fit(kind: str, folder: str, limit: int, queue: multiprocessing.Queue) -> None:
    """In a process of its own: seconds, peak memory, passes, coefficients."""
    from nystrom import KernelRidge, sources

    options = {"kernel": "rbf", "gamma": 0.02, "alpha": 1.0, "random_state": 0}
    model = KernelRidge(n_landmarks=SIZE, **options)
    rng = np.random.default_rng(0)
    few = rng.standard_normal((5000, COLUMNS)).astype(np.float32)
    KernelRidge(n_landmarks=50, **options).fit(few, few[:, 0])  # libraries load
    X = y = None
    if kind == "memory":
        rows = np.load(f"{folder}/rows.npy")
        X, y = np.ascontiguousarray(rows[:, :-1]), rows[:, -1].astype(np.float64)
        del rows
    elif kind == "npy":
        X = sources.open(f"{folder}/rows.npy", target=-1)
    elif kind == "parquet":
        X = sources.open(f"{folder}/rows.parquet", target="y")
    elif kind == "s3":
        endpoint = {"endpoint_url": (Path(folder) / "endpoint").read_text()}
        options = {"key": "key", "secret": "secret", "client_kwargs": endpoint}
        path = "s3://rows/*.parquet"
        X = sources.open(path, target="y", storage_options=options)
    if limit and kind in ("npy", "parquet"):
        used = int(Path("/proc/self/statm").read_text().split()[0])
        room = used * resource.getpagesize() + limit
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    begun = time.perf_counter()
    if kind == "csv":
        X = sources.open(f"{folder}/rows.csv", target="y")
    model.fit(X, y)
    seconds = time.perf_counter() - begun
    # What getrusage tells is also that of the process that began this one.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    checked = float(np.abs(model.dual_coef_).sum())
    queue.put((seconds, peak, model.landmarks_.n_passes, checked))


def main() -> None:
    """In turn, as often as it takes for medians; a table after each round."""
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000_000
    kinds = ["memory", "npy", "parquet", "csv"]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows)
        if all(importlib.util.find_spec(name) for name in ("moto", "s3fs")):
            serve(Path(folder))
            kinds.append("s3")
        else:
            print("s3: moto or s3fs is not installed; skipped.")
        found: dict[str, list] = {kind: [] for kind in kinds}
        data = (Path(folder) / "rows.npy").stat().st_size
        limit = max(int(0.9 * data), 1_200_000_000)
        for _ in range(REPEATS):
            for kind, runs in found.items():
                runs.append(measured(kind, folder, limit))
                print(kind, *(f"{value:.6g}" for value in runs[-1]), flush=True)
            tell(n_rows, found)


def serve(folder: Path) -> None:
    """An S3 server with the Parquet file, until this process ends."""
    import s3fs
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    (folder / "endpoint").write_text(endpoint)
    options = {"client_kwargs": {"endpoint_url": endpoint}}
    files = s3fs.S3FileSystem(key="key", secret="secret", **options)
    files.mkdir("rows")
    for path in sorted((folder / "parts").iterdir()):
        files.put_file(str(path), f"rows/{path.name}")


def measured(kind: str, folder: str, limit: int) -> tuple:
    """What `fit` hands back."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=fit, args=(kind, folder, limit, queue))
    process.start()
    while process.is_alive() and queue.empty():
        time.sleep(0.1)
    if process.exitcode:
        raise RuntimeError(f"the fit of rows from {kind} has failed")
    result = queue.get()
    process.join()
    return result


def tell(n_rows: int, found: dict[str, list]) -> None:
    """The table of the rounds so far."""
    names = "rows from", "seconds", "of memory's", "peak MB", "passes to choose"
    base = median(run[0] for run in found["memory"])
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, "Σ|dual|", "rows", "rounds"])
        for kind, runs in found.items():
            seconds, peak = median(run[0] for run in runs), max(run[1] for run in runs)
            told = f"{seconds:.4g}", f"{seconds / base:.3g}", f"{peak:.0f}"
            checked = f"{runs[0][3]:.10g}"
            writer.writerow([kind, *told, runs[0][2], checked, n_rows, len(runs)])
            print(kind, *told)


if __name__ == "__main__":
    main()

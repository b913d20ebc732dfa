"""Small archives, made by hand in the original formats, and a server to fetch from."""

from __future__ import annotations

import gzip
import hashlib
import io
import threading
import zipfile
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from nystrom.datasets import adult, cod_rna, covertype, year_prediction_msd
from nystrom.datasets.adult_columns import CATEGORIES, COLUMNS

MODULES = {
    "adult": adult,
    "cod_rna": cod_rna,
    "covertype": covertype,
    "year_prediction_msd": year_prediction_msd,
}


@dataclass
class Sample:
    """A few rows of a set: the files as the archive has them, and what is in them."""

    files: dict[str, bytes]
    X: np.ndarray
    y: np.ndarray


def sample(name: str) -> Sample:
    return {
        "adult": adult_sample,
        "cod_rna": cod_rna_sample,
        "covertype": covertype_sample,
        "year_prediction_msd": year_sample,
    }[name]()


def covertype_sample() -> Sample:
    rng = np.random.default_rng(1)
    X = rng.integers(-170, 7000, (30, 54))
    X[:, 10:] = rng.integers(0, 2, (30, 44))
    X[:, 20] = 1  # one constant column
    y = rng.integers(1, 8, 30)
    lines = [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    return Sample({"covtype.data.gz": gzip.compress(text(lines))}, X, y)


def year_sample() -> Sample:
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(25, 90)) * np.geomspace(1, 1000, 90)).round(5)
    X[0, :3] = 49.94357, 21.47114, 73.07750
    y = rng.integers(1922, 2012, 25)
    y[0] = 2001
    here = Sample({}, X, y)
    content = zipped({"YearPredictionMSD.txt": year_text(here)})
    here.files["YearPredictionMSD.txt.zip"] = content
    return here


def year_text(here: Sample) -> bytes:
    return text(
        [
            ",".join([str(year), *(f"{value:.5f}" for value in row)])
            for row, year in zip(here.X, here.y, strict=True)
        ]
    )


def cod_rna_sample() -> Sample:
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [
            rng.integers(-1500, 0, 20),
            rng.integers(67, 134, 20),
            rng.uniform(0, 0.5, (20, 6)).round(6),
        ]
    )
    X[4, 3] = 0  # left out of the text
    y = rng.choice([-1, 1], 20)
    lines = [
        " ".join([str(label), *(f"{j}:{v:g}" for j, v in enumerate(row, 1) if v)])
        for row, label in zip(X, y, strict=True)
    ]
    X = np.vectorize(lambda value: float(f"{value:g}"))(X)
    return Sample({"cod-rna": text(lines[:12]), "cod-rna.t": text(lines[12:])}, X, y)


def adult_sample() -> Sample:
    rng = np.random.default_rng(4)
    X = np.array(
        [
            [
                str(rng.choice(CATEGORIES[column]))
                if column in CATEGORIES
                else str(rng.integers(1, 90000))
                for column in COLUMNS
            ]
            for _ in range(22)
        ]
    )
    X[5, 1] = "?"
    y = rng.choice(["<=50K", ">50K"], 22)
    lines = [", ".join([*row, label]) for row, label in zip(X, y, strict=True)]
    test = ["|1x3 Cross validator", *(f"{line}." for line in lines[15:]), ""]
    return Sample(
        {"adult.data": text([*lines[:15], ""]), "adult.test": text(test)}, X, y
    )


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def zipped(files: dict[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as inside:
        for name, content in files.items():
            # Of one date: the name of a test may hold these bytes.
            inside.writestr(zipfile.ZipInfo(name), content)
    return memory.getvalue()


@dataclass
class ArchiveServer:
    """Serves `files`; `failures` are the answers to come first, one per request."""

    files: dict[str, bytes] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    missing_bytes: int = 0
    requests: list[str] = field(default_factory=list)

    def __enter__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *_):
                """Not to the terminal."""

        self.listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.listener.server_port}/"
        self.thread = threading.Thread(target=self.listener.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.listener.shutdown()
        self.listener.server_close()
        self.thread.join()

    def answer(self, request):
        name = request.path.removeprefix("/")
        self.requests.append(name)
        body = self.files.get(name)
        status = self.failures.pop(0) if self.failures else 200
        if body is None or status != 200:
            request.send_error(404 if body is None else status)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: len(body) - self.missing_bytes])


def serve(monkeypatch, server: ArchiveServer, name: str) -> Sample:
    """Let a fetcher believe that its archive is the sample on this server."""
    here = sample(name)
    module = MODULES[name]
    files = tuple(
        replace(
            file,
            url=server.url + file.filename,
            sha256=file.sha256
            and hashlib.sha256(here.files[file.filename]).hexdigest(),
        )
        for file in module.ARCHIVE.files
    )
    server.files.update(here.files)
    archive = replace(module.ARCHIVE, files=files, n_rows=len(here.X))
    monkeypatch.setattr(module, "ARCHIVE", archive)
    if name == "cod_rna":
        values = here.X.astype("<f4").tobytes() + here.y.astype(np.int8).tobytes()
        digest = hashlib.sha256(values).hexdigest()
        monkeypatch.setattr(module, "SHA256_OF_VALUES", digest)
    return here

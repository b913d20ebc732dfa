"""Fits and files that a signal meets at any moment, each in a process of its own.

Called as a program with a folder, a number of moments and a seed: it prints, as JSON,
what was wrong (nothing, one hopes) and how often the signal came during the fit, while
a file was written, or too late. Processes are forked here, where there are no threads
yet, so that many moments are cheap.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import skops.io  # noqa: F401  (once, not in every process)
from sklearn.base import clone, is_classifier
from threadpoolctl import threadpool_info

import nystrom
from nystrom import engines

N_ROWS, DEADLINE = 6 * engines.TILE + 5, 60.0
rng = np.random.default_rng(0)
X = rng.standard_normal((N_ROWS, 3)) * rng.choice([0.2, 1.0, 3.0], (N_ROWS, 1))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N_ROWS)

few = {"n_landmarks": 24, "gamma": 0.5, "n_jobs": 2, "random_state": 0}
ESTIMATORS = {
    "Nystroem": nystrom.Nystroem(gamma=0.5, n_components=24, n_jobs=2, random_state=0),
    "KernelRidge": nystrom.KernelRidge(kernel="rbf", **few),
    "KernelRidgeCV": nystrom.KernelRidgeCV(kernel="rbf", **few),
    "KernelRidgeClassifier": nystrom.KernelRidgeClassifier(kernel="rbf", **few),
    "KernelLogisticRegression": nystrom.KernelLogisticRegression(**few),
    "KernelPCA": nystrom.KernelPCA(2, kernel="rbf", **few),
    "KernelKMeans": nystrom.KernelKMeans(3, n_init=1, **few),
    "KernelCCA": nystrom.KernelCCA(1, **few),
}
#: Ctrl-C; what asks a process to end, made an exception of, or left as it is.
SIGNALS = ["SIGINT", "SIGTERM caught", "SIGTERM"]


def targets(name):
    """What an estimator is fitted to."""
    if is_classifier(ESTIMATORS[name]):
        return y > 0
    return y[:, None] if name == "KernelCCA" else y


def rows_of(estimator):
    """What a fitted estimator makes of the rows."""
    verb = "transform" if hasattr(estimator, "transform") else "predict"
    return np.asarray(getattr(estimator, verb)(X))


def limits():
    """How many threads each BLAS may use."""
    return sorted((lib["filepath"], lib["num_threads"]) for lib in threadpool_info())


def work(name, folder, where):
    """Fit, save the model, and write what it makes of the rows; say where it is."""
    estimator = clone(ESTIMATORS[name])
    try:
        where.append("fit")
        estimator.fit(X, targets(name))
        where.append("save")
        nystrom.save(estimator, folder / "model.nystrom")
        where.append("write")
        out = {"out": folder / "rows.npy"}
        if name in ("Nystroem", "KernelRidge", "KernelRidgeCV"):
            verb = "transform" if name == "Nystroem" else "predict"
            getattr(estimator, verb)(X, **out)
        where.append("done")
    except (KeyboardInterrupt, SystemExit):
        where.append("stopped")
    return estimator


def left_behind(name, estimator, where, before, expected):
    """What is wrong after the signal: nothing, or the first thing."""
    for thread in threading.enumerate():
        if thread.name.startswith("nystrom") and thread.ident is not None:
            thread.join(timeout=10)
            if thread.is_alive():
                return f"a thread goes on: {thread.name}"
    if limits() != before:
        return f"BLAS has {limits()}, not {before}"
    fitted = [key for key in vars(estimator) if key.endswith("_")]
    if "save" in where and not fitted:
        return "fitted, and then not"
    # The last step of a fit is not cut in two: all of it is there, or none.
    if fitted and not np.array_equal(rows_of(estimator), expected):
        return f"half fitted: {fitted}"
    again = clone(estimator).fit(X, targets(name))
    if not np.array_equal(rows_of(again), expected):
        return "fitted again, to something else"
    return None


def files(folder, expected, *, hidden):
    """What is wrong with the files: each is whole or not there; and no other is."""
    for path in folder.iterdir():
        if path.name == "model.nystrom":
            if not np.array_equal(rows_of(nystrom.load(path)), expected):
                return "the model in the file is another one"
        elif path.name == "rows.npy":
            if not np.array_equal(np.load(path), expected):
                return "the rows in the file are others"
        elif not (hidden and path.name.startswith(".")):
            return f"left behind: {path.name}"
    return None


def child(name, which, folder, expected, report):
    """The process that is interrupted; what it found goes to `report`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if which == "SIGTERM caught":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    before, where = limits(), []
    try:
        os.write(report, b"ready\n")
        estimator = work(name, folder, where)
        try:
            wrong = left_behind(name, estimator, where, before, expected)
        except (KeyboardInterrupt, SystemExit):  # the signal came too late
            where.append("late")
            wrong = left_behind(name, estimator, where, before, expected)
    except (KeyboardInterrupt, SystemExit):  # before it began, or just after it
        wrong = None
    except BaseException:
        wrong = traceback.format_exc()
    os.write(report, json.dumps([where, wrong]).encode())
    os._exit(0)


def waited_for(process):
    """Wait until it ends; its exit code, None where it does not in time."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def once(name, which, folder, after, expected):
    """(where the signal came, what is wrong) for one moment."""
    folder.mkdir()
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.close(read)
        child(name, which, folder, expected, write)
    os.close(write)
    with os.fdopen(read, "rb", buffering=0) as report:
        report.read(6)  # it is ready
        time.sleep(after)
        sent = getattr(signal, which.split()[0])
        os.kill(process, sent)
        code = waited_for(process)
        told = report.read()
    if code is None:
        return "hangs", f"no end in {DEADLINE:.0f} s"
    if code not in (0, -sent):
        return "crashed", f"exit code {code}"
    if told:
        where, wrong = json.loads(told)
        met = where[-2] if "stopped" in where else "late"
        killed = False
    else:  # by the signal itself
        met, wrong, killed = "killed", None, True
    wrong = wrong or files(folder, expected, hidden=killed)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return met, wrong


def time_of(name, folder):
    """(seconds that the work takes, what comes of it), in a process of its own."""
    path = folder / "expected.npy"
    process = os.fork()
    if not process:
        within = folder / "alone"
        within.mkdir()
        begun = time.monotonic()
        estimator = work(name, within, [])
        np.save(folder / "takes.npy", time.monotonic() - begun)
        np.save(path, rows_of(estimator))
        os._exit(0)
    os.waitpid(process, 0)
    return float(np.load(folder / "takes.npy")), np.load(path)


if __name__ == "__main__":
    folder, n_moments = Path(sys.argv[1]), int(sys.argv[2])
    luck = random.Random(int(sys.argv[3]))
    known, met, wrong = {}, {}, []
    for i in range(n_moments):
        name, which = list(ESTIMATORS)[i % len(ESTIMATORS)], SIGNALS[i % len(SIGNALS)]
        if name not in known:
            place = folder / name
            place.mkdir()
            known[name] = time_of(name, place)
        takes, expected = known[name]
        after = takes * luck.uniform(0, 0.9)
        where, what = once(name, which, folder / f"{i}", after, expected)
        met[where] = met.get(where, 0) + 1
        if what:
            wrong.append([i, name, which, where, what])
    print(json.dumps({"met": met, "wrong": wrong}))

"""Runs that are killed again and again, each in a process of its own.

Called as a program with a folder: it prints, as JSON, for each estimator whether the
run that was killed came to the same result as the one that was not, how often it was
killed, and how many of the runs began in the middle of a pass. Processes are forked
here, where there are no threads yet, so that many kills are cheap.
"""

import json
import os
import pickle
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

import nystrom
from nystrom import engines

N_ROWS, N_KILLS = 9 * engines.TILE + 5, 12
rng = np.random.default_rng(0)
X = rng.standard_normal((N_ROWS, 3)) * rng.choice([0.2, 1.0, 3.0], (N_ROWS, 1))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(N_ROWS)

few = {"n_landmarks": 24, "gamma": 0.5, "n_jobs": 1}
FITS = {
    "Nystroem": lambda: nystrom.Nystroem(n_components=24, n_jobs=1).fit(X),
    "KernelRidge": lambda: nystrom.KernelRidge(kernel="rbf", **few).fit(X, y),
    "KernelRidge by cg": lambda: nystrom.KernelRidge(
        kernel="rbf", solver="cg", **few
    ).fit(X, y, np.abs(y)),
    "KernelRidgeCV": lambda: nystrom.KernelRidgeCV(kernel="rbf", cv=3, **few).fit(X, y),
    "KernelRidgeClassifier": lambda: nystrom.KernelRidgeClassifier(
        kernel="rbf", **few
    ).fit(X, y > 0),
    "KernelLogisticRegression": lambda: nystrom.KernelLogisticRegression(
        [0.1, 1.0], **few
    ).fit(X, y > 0, np.abs(y)),
    "KernelRidgeClassifierCV": lambda: nystrom.KernelRidgeClassifierCV(**few).fit(
        X, y > 0
    ),
    "KernelPCA": lambda: nystrom.KernelPCA(2, kernel="rbf", **few).fit(X),
    "KernelKMeans": lambda: nystrom.KernelKMeans(3, **few).fit(X),
    "KernelCCA": lambda: nystrom.KernelCCA(1, **few).fit(X, y[:, None]),
}


def arrays_of(value, depth=4):
    """All numbers of a fitted estimator, but for the time it took."""
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    if isinstance(value, (tuple, list)):
        return [part for entry in value for part in arrays_of(entry, depth)]
    if isinstance(value, (int, float, str)):
        return [repr(value)]
    if depth and hasattr(value, "__dict__"):
        state = {k: v for k, v in vars(value).items() if k not in ("seconds", "factor")}
        return [part for k in sorted(state) for part in arrays_of(state[k], depth - 1)]
    return []


def attempt(fit, path, result, log):
    """One run, in a process of its own; the process's number."""
    child = os.fork()
    if child:
        return child
    next_pass = engines.CheckpointStore.next_pass

    def noted(self, key):
        found = next_pass(self, key)
        if len(found[1]) > 1:
            with open(log, "a") as file:
                file.write("x")
        return found

    engines.CheckpointStore.next_pass = noted
    # It may be killed once it is done, too.
    run = engines.CheckpointStore(path, every=0)
    with engines.using(checkpoint=run, keep_checkpoint=True):
        fitted = arrays_of(fit())
    temporary = result.with_suffix(".part")
    temporary.write_bytes(pickle.dumps(fitted))
    os.replace(temporary, result)
    os._exit(0)


def killed(name, folder, luck):
    """What became of a run that was killed again and again."""
    path, whole, result, log = (
        folder / f"{name}.{end}" for end in ("ckpt", "whole", "result", "log")
    )
    log.touch()
    # The seed of the run is in the folder, so that is written first, with no pass.
    with engines.CheckpointStore(path).running():
        pass
    other = folder / f"{name}.other"
    shutil.copytree(path, other)
    started = time.monotonic()
    os.waitpid(attempt(FITS[name], other, whole, folder / "ignored"), 0)
    takes = time.monotonic() - started
    n_killed = 0
    for _ in range(N_KILLS):
        child = attempt(FITS[name], path, result, log)
        time.sleep(takes * luck.uniform(0.0, 0.4))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        n_killed += os.WIFSIGNALED(status)
    os.waitpid(attempt(FITS[name], path, result, log), 0)
    same = result.exists() and result.read_bytes() == whole.read_bytes()
    size = len(pickle.loads(whole.read_bytes()))
    left_over = len(list(path.glob(".*")))
    return same, n_killed, len(log.read_text()), size, left_over


if __name__ == "__main__":
    luck = random.Random(int(sys.argv[2]))
    print(json.dumps({name: killed(name, Path(sys.argv[1]), luck) for name in FITS}))

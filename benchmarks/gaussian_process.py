"""GaussianProcessRegressor beside scikit-learn and GPyTorch.

`dev.py bench gaussian_process --data FOLDER` has three parts; `--only` chooses:

- `sklearn`: scikit-learn's own class on 2,000 and 4,000 rows (`--exact-rows`), with 300
  landmarks for ours: hyper-parameters, likelihood, predictions and time.
- `peers`: GPyTorch's SGPR and SVGP on the sets of `bench gp` (`uci/NAME.npz` in the
  folder; `--sets`, `--splits`, `--sizes`, `--methods`), a Matérn 3/2 kernel with a
  length scale per feature. Before that, the bounds must agree at fixed
  hyper-parameters.
- `rows`: a million rows × 10 in float64 (`--rows`) with 1,000 landmarks, beside
  `KernelRidge` with the kernel and noise that were found: seconds, those of them that
  optimise on part of the rows, and megabytes above the data.

Each case runs in a process of its own, so that peak memory is its own. Seconds are to
be compared within a run.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import gp
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from nystrom import GaussianProcessRegressor, KernelRidge
from nystrom.estimators import _hyperparameters
from nystrom.kernels.gaussian_process import from_scikit_learn
from nystrom.models import gaussian_process as models

RESULTS = Path(__file__).parent / "results" / "gaussian_process.csv"
EXACT_LANDMARKS, MILLION_LANDMARKS = 300, 1000
#: Parameters of ours by the name of the method.
OURS: dict[str, dict[str, Any]] = {
    "selected": {},
    "moved": {"optimize_landmarks": True},
    "matrix": {"optimize_landmarks": True, "metric": "matrix"},
}
PEERS = {"sgpr": gp.sgpr, "svgp": gp.svgp}


def smooth(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and noisy targets of a smooth function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * X[:, -1]
    return X, y + 0.1 * rng.standard_normal(n)


def noisy(d: int, kind: type = RBF, **options: Any) -> Any:
    """A kernel with a length scale per feature, and white noise."""
    return ConstantKernel() * kind(np.ones(d), (1e-2, 1e3), **options) + WhiteKernel(
        0.1, (1e-6, 1e1)
    )


def scores(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    """RMSE, negative log-likelihood and coverage of 95 % intervals."""
    row = gp.measure(gp.Prediction(*model.predict(X, return_std=True)), y)
    row["bound"] = model.log_marginal_likelihood_value_
    return row


def agreement_with_scikit_learn(n: int) -> dict[str, Any]:
    """Both on the same rows: the largest differences, and seconds."""
    X, y = smooth(n, 2)
    new, truth = smooth(1000, 2, seed=1)
    options = {"n_landmarks": EXACT_LANDMARKS, "random_state": 0}
    begun = time.perf_counter()
    ours = GaussianProcessRegressor(noisy(2), **options).fit(X, y)
    middle = time.perf_counter()
    exact = ExactProcess(noisy(2)).fit(X, y)
    row: dict[str, Any] = {"seconds": middle - begun}
    row["exact_seconds"] = time.perf_counter() - middle
    row["exact_likelihood"] = exact.log_marginal_likelihood_value_
    row["kl_bound"] = ours.kl_bound_
    gaps = np.abs(ours.kernel_.theta - exact.kernel_.theta)
    row["log_parameter_gap"] = float(gaps.max())
    means, stds = zip(
        *(model.predict(new, return_std=True) for model in (ours, exact)), strict=True
    )
    row["mean_gap"] = float(np.abs(means[0] - means[1]).max())
    row["std_gap"] = float(np.abs(stds[0] / stds[1] - 1).max())
    return row | scores(ours, new, truth)


def peer(folder: Path, name: str, split: int, size: int, method: str) -> dict[str, Any]:
    """One method on one split of a set."""
    X, y, new, truth = gp.load(folder / "uci" / f"{name}.npz", split)
    if method in PEERS:
        importlib.import_module("gpytorch")
    before, begun = peak_megabytes(), time.perf_counter()
    if method in PEERS:
        row = gp.measure(PEERS[method](X, y, new, size, split), truth)
    else:
        model = GaussianProcessRegressor(
            noisy(X.shape[1], Matern, nu=1.5),
            n_landmarks=size,
            random_state=split,
            **OURS[method],
        ).fit(X, y)
        row = scores(model, new, truth)
    row["seconds"] = time.perf_counter() - begun
    return row | {"megabytes": peak_megabytes() - before}


def bound_gap() -> dict[str, Any]:
    """The relative difference from SGPR's bound at fixed hyper-parameters, float64."""
    import gpytorch
    import torch

    X, y = smooth(2000, 4)
    lengths = np.array([1.0, 1.5, 2.0, 0.8])
    kernel = ConstantKernel(1.7) * Matern(lengths, nu=1.5) + WhiteKernel(0.5)
    ours = GaussianProcessRegressor(
        kernel, n_landmarks=150, optimizer=None, random_state=0
    ).fit(X, y)
    given = [torch.tensor(a, dtype=torch.float64) for a in (X, y, ours.X_train_)]
    model, likelihood = (part.double() for part in gp.sgpr_model(*given))
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    base = model.covar_module.base_kernel
    likelihood.noise, base.outputscale = 0.5, 1.7
    base.base_kernel.lengthscale = torch.tensor(lengths)
    with gpytorch.settings.fast_computations(False, False, False):
        theirs = float(objective(model(given[0]), given[1])) * len(X)
    gap = abs(theirs - ours.log_marginal_likelihood_value_) / abs(theirs)
    if gap > 1e-6:
        raise AssertionError(f"the bounds differ by {gap:.1e}")
    return {"bound_gap": gap}


def many_rows(n: int) -> dict[str, Any]:
    """Ours and KernelRidge with the kernel and noise that ours found: the same mean."""
    X, y = smooth(n, 10)
    size = {"n_landmarks": MILLION_LANDMARKS, "random_state": 0}
    before = peak_megabytes()
    part = [0.0]

    def timed(function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            found = function(*args, **options)
            part[0] += time.perf_counter() - begun
            return found

        return call

    begun = time.perf_counter()
    with ExitStack() as stack:
        for module, name in (
            (_hyperparameters, "learn_hyperparameters"),
            (models, "_curvature"),
        ):
            function = timed(getattr(module, name))
            stack.enter_context(mock.patch.object(module, name, function))
        model = GaussianProcessRegressor(noisy(10), **size).fit(X, y)
    row = {"seconds": time.perf_counter() - begun, "part_seconds": part[0]}
    row["megabytes"] = peak_megabytes() - before
    kernel, noise = from_scikit_learn(model.kernel_), model.kernel_.k2.noise_level
    begun = time.perf_counter()
    KernelRidge(noise, kernel=kernel, **size).fit(X, y)
    row["ridge_seconds"] = time.perf_counter() - begun
    row["ratio"] = (row["seconds"] - part[0]) / row["ridge_seconds"]
    return row | scores(model, *smooth(1000, 10, seed=1))


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cases(given: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by its name."""
    has_gpytorch = importlib.util.find_spec("gpytorch") is not None
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    if "sklearn" in given.only:
        for n in given.exact_rows:
            found[f"sklearn/{n}"] = partial(agreement_with_scikit_learn, n)
    if "peers" in given.only:
        if has_gpytorch:
            found["peers/bound"] = bound_gap
        else:
            print("gpytorch is not installed: SGPR and SVGP are skipped")
        if given.data is None:
            print("without --data FOLDER the sets are skipped")
        for name in given.sets if given.data is not None else ():
            for split in given.splits:
                for size in given.sizes:
                    for method in given.methods:
                        if method in OURS or has_gpytorch:
                            case = f"peers/{name}/{split}/{size}/{method}"
                            run = partial(peer, given.data, name, split, size, method)
                            found[case] = run
    if "rows" in given.only:
        found[f"rows/{given.rows}"] = partial(many_rows, given.rows)
    return found


def main() -> None:
    """Measure every case in a process of its own, and keep a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", default=["sklearn", "peers", "rows"])
    parser.add_argument("--exact-rows", nargs="+", type=int, default=[2000, 4000])
    parser.add_argument("--sets", nargs="+", default=["kin40k", "elevators", "pol"])
    parser.add_argument("--splits", nargs="+", type=int, default=[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[512])
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.case:
        warnings.simplefilter("ignore")
        print(json.dumps(cases(given)[given.case]()))
        return
    rows = []
    for name in cases(given):
        command = [sys.executable, __file__, "--case", name, *sys.argv[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name} failed: {done.stderr.splitlines()[-1]}", flush=True)
            continue
        row = {"case": name} | json.loads(done.stdout.splitlines()[-1])
        row = {k: float(f"{v:.6g}") if k != "case" else v for k, v in row.items()}
        print(row, flush=True)
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    given.out.parent.mkdir(exist_ok=True)
    with given.out.open("w", newline="") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()

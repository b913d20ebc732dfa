"""GaussianProcessRegressor beside scikit-learn and GPyTorch.

`dev.py bench gaussian_process --data FOLDER`: scikit-learn's own class on 2,000 and
4,000 rows, GPyTorch's SGPR with 512 points on split 0 of kin40k (`uci/kin40k.npz` in
the folder), and a million rows × 10 with 1,000 landmarks beside a fit of `KernelRidge`.
Before anything is timed, the bound of SGPR must agree with ours at fixed
hyper-parameters. Each case runs in a process of its own, so that peak memory is its
own; seconds are to be compared within a run. `--only sklearn sgpr million` chooses.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from nystrom import GaussianProcessRegressor, KernelRidge

RESULTS = Path(__file__).parent / "results" / "gaussian_process.csv"
#: Rows of the comparison with scikit-learn, and landmarks.
EXACT_ROWS, EXACT_LANDMARKS = (2000, 4000), 300
SGPR_POINTS = 512
MILLION, MILLION_LANDMARKS = 1_000_000, 1000


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


def scores(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """RMSE, negative log-likelihood and coverage of 95 % intervals."""
    error = y - mean
    losses = np.log(2 * np.pi * std**2) / 2 + error**2 / (2 * std**2)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "nll": float(losses.mean()),
        "coverage": float(np.mean(np.abs(error) < 1.96 * std)),
    }


def small(ours: bool, n: int) -> dict[str, Any]:
    """Few enough rows for scikit-learn: likelihood, hyper-parameters, predictions."""
    X, y = smooth(n, 2)
    new, truth = smooth(1000, 2, seed=1)
    options: dict[str, Any] = {}
    if ours:
        options = {"n_landmarks": EXACT_LANDMARKS, "random_state": 0}
    kind = GaussianProcessRegressor if ours else ExactProcess
    begun = time.perf_counter()
    model = kind(noisy(2), **options).fit(X, y)
    seconds = time.perf_counter() - begun
    mean, std = model.predict(new, return_std=True)
    row = {"seconds": seconds, "bound": model.log_marginal_likelihood_value_}
    row["theta"] = json.dumps(np.round(model.kernel_.theta, 4).tolist())
    return row | scores(truth, mean, std)


def load_kin40k(folder: Path) -> tuple[np.ndarray, ...]:
    """Rows and targets of split 0, standardised by the training rows."""
    data = np.load(folder / "uci" / "kin40k.npz")
    X, y, test = data["X"], data["y"].ravel(), data["test_mask"][:, 0].astype(bool)
    X = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    y = (y - y[~test].mean()) / y[~test].std()
    return X[~test], y[~test], X[test], y[test]


def kin40k(folder: Path, move: bool) -> dict[str, Any]:
    """Ours with 512 landmarks, rows or moved."""
    X, y, new, truth = load_kin40k(folder)
    begun = time.perf_counter()
    model = GaussianProcessRegressor(
        noisy(X.shape[1], Matern, nu=1.5),
        n_landmarks=SGPR_POINTS,
        optimize_landmarks=move,
        random_state=0,
    ).fit(X, y)
    seconds = time.perf_counter() - begun
    mean, std = model.predict(new, return_std=True)
    row = {"seconds": seconds, "bound": model.log_marginal_likelihood_value_}
    return row | scores(truth, mean, std)


def sgpr_model(X: Any, y: Any, points: Any) -> tuple[Any, Any, Any]:
    """GPyTorch's SGPR: Matérn 3/2 with a length scale per feature, no mean."""
    import gpytorch

    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.base = gpytorch.kernels.ScaleKernel(matern)
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                self.base, points, likelihood
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Model()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return model, likelihood, objective


def sgpr(folder: Path) -> dict[str, Any]:
    """100 Adam steps at 0.1 from random rows, in float32."""
    import torch

    torch.manual_seed(0)
    X, y, new, truth = load_kin40k(folder)
    X, y, new = (torch.tensor(a, dtype=torch.float32) for a in (X, y, new))
    points = X[torch.randperm(len(X))[:SGPR_POINTS]].clone()
    begun = time.perf_counter()
    model, likelihood, objective = sgpr_model(X, y, points)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    for _ in range(100):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begun
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        posterior = likelihood(model(new))
    row = {"seconds": seconds, "bound": -float(loss) * len(X)}
    return row | scores(truth, posterior.mean.numpy(), posterior.stddev.numpy())


def sgpr_gap() -> dict[str, Any]:
    """The relative difference of the bounds at fixed hyper-parameters, in float64."""
    import gpytorch
    import torch

    X, y = smooth(2000, 4)
    lengths = np.array([1.0, 1.5, 2.0, 0.8])
    kernel = ConstantKernel(1.7) * Matern(lengths, nu=1.5) + WhiteKernel(0.5)
    ours = GaussianProcessRegressor(
        kernel, n_landmarks=150, optimizer=None, random_state=0
    ).fit(X, y)
    given = (torch.tensor(a, dtype=torch.float64) for a in (X, y, ours.X_train_))
    rows, targets, points = given
    model, likelihood, objective = sgpr_model(rows, targets, points)
    model, likelihood = model.double(), likelihood.double()
    likelihood.noise, model.base.outputscale = 0.5, 1.7
    model.base.base_kernel.lengthscale = torch.tensor(lengths)
    with gpytorch.settings.fast_computations(False, False, False):
        theirs = float(objective(model(rows), targets)) * len(X)
    gap = abs(theirs - ours.log_marginal_likelihood_value_) / abs(theirs)
    if gap > 1e-6:
        raise AssertionError(f"the bounds differ by {gap:.1e}")
    return {"gap": gap}


def million(ridge: bool) -> dict[str, Any]:
    """A million rows in float32, with the memory above the data."""
    X, y = smooth(MILLION, 10)
    X = X.astype(np.float32)
    before = peak_megabytes()
    begun = time.perf_counter()
    size = {"n_landmarks": MILLION_LANDMARKS, "random_state": 0}
    if ridge:
        KernelRidge(0.1, kernel="rbf", gamma=0.05, **size).fit(X, y)
        return {"seconds": time.perf_counter() - begun, "above": above(before)}
    model = GaussianProcessRegressor(noisy(10), **size).fit(X, y)
    row = {"seconds": time.perf_counter() - begun, "above": above(before)}
    new, truth = smooth(1000, 10, seed=1)
    mean, std = model.predict(new, return_std=True)
    row["bound"] = model.log_marginal_likelihood_value_
    return row | scores(truth, mean, std)


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def above(before: float) -> float:
    """Megabytes beyond what the data took."""
    return peak_megabytes() - before


def cases(folder: Path | None) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by its name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for n in EXACT_ROWS:
        found[f"sklearn/ours/{n}"] = lambda n=n: small(True, n)
        found[f"sklearn/theirs/{n}"] = lambda n=n: small(False, n)
    if importlib.util.find_spec("gpytorch") is not None:
        found["sgpr/agreement"] = sgpr_gap
    if folder is not None:
        found["sgpr/rows"] = lambda: kin40k(folder, False)
        found["sgpr/moved"] = lambda: kin40k(folder, True)
        if importlib.util.find_spec("gpytorch") is not None:
            found["sgpr/theirs"] = lambda: sgpr(folder)
    found["million/ridge"] = lambda: million(True)
    found["million/process"] = lambda: million(False)
    return found


def main() -> None:
    """Measure every case in a process of its own, and keep a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="*", default=["sklearn", "sgpr", "million"])
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.case:
        warnings.simplefilter("ignore")
        print(json.dumps(cases(given.data)[given.case]()))
        return
    if importlib.util.find_spec("gpytorch") is None:
        print("gpytorch is not installed: SGPR is left out")
    if given.data is None:
        print("--data FOLDER has kin40k: it is left out")
    rows = []
    for name in cases(given.data):
        if name.split("/")[0] not in given.only:
            continue
        command = [sys.executable, __file__, "--case", name]
        command += ["--data", str(given.data)] if given.data else []
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = {"case": name} | json.loads(done.stdout.splitlines()[-1])
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

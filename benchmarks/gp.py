"""Regression with intervals on UCI sets: `dev.py bench gp --data FOLDER`.

Each set is NAME.npz in the folder `uci` of the data, with X, y and `test_mask`
(n × splits, the published 90/10 splits). Rows and targets are standardised by the
training rows. RMSE, negative log-likelihood, coverage and mean width of the 95 %
interval are those of the test rows, in these units. Each fit runs in a process of its
own, one after the other; seconds are for fit and predictions, to be compared within a
run, and memory is the peak above what the process had after its imports. GPyTorch (SGPR
and SVGP), xRFM and XGBoost take part where they are installed. Before anything runs,
means and deviations at fixed hyper-parameters are compared with GPyTorch's and
scikit-learn's. `--summary` prints the medians over the splits.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import multiprocessing
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.model_selection import train_test_split

from nystrom import KernelRidge, KernelRidgeCV
from nystrom.kernels import Matern

SETS = ("pol", "elevators", "bike", "kin40k", "protein", "keggdirected")
RESULTS = Path(__file__).parent / "results" / "gp.csv"
COLUMNS = ["set", "split", "size", "method", "rmse", "nll", "coverage", "width"]
COLUMNS += ["seconds", "megabytes"]
#: Adam steps and rate of GPyTorch's SGPR; epochs, rows of a batch and rate of its SVGP.
SGPR_STEPS, SGPR_RATE = 100, 0.1
SVGP_EPOCHS, SVGP_BATCH, SVGP_RATE = 50, 1024, 0.01


class Prediction(NamedTuple):
    """Means and, where a method has them, deviations and interval ends."""

    mean: np.ndarray
    std: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


def nystrom(options: dict[str, Any]) -> Callable[..., Prediction]:
    """KernelRidgeCV with a Matérn 3/2 kernel."""

    def fit_predict(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
        model = KernelRidgeCV(
            kernel="matern32", n_landmarks=size, random_state=seed, **options
        ).fit(X, y)
        mean, std = model.predict(X_new, return_std=True, noise=True)
        return Prediction(mean, std, *model.predict(X_new, interval=0.95))

    return fit_predict


def all_rows(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """All rows in place of landmarks, with the metric and alpha learnt on landmarks."""
    common: dict[str, Any] = {"n_landmarks": size, "random_state": seed}
    first = KernelRidgeCV(kernel="matern32", gamma="matrix", cv=5, **common).fit(X, y)
    model = KernelRidge(
        first.alpha_, kernel=first.landmarks_.kernel, solver="full", **common
    )
    return Prediction(model.fit(X, y).predict(X_new))


def boosting(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """scikit-learn's gradient boosting with its defaults."""
    model = HistGradientBoostingRegressor(random_state=seed).fit(X, y)
    return Prediction(model.predict(X_new))


def xgboost(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """XGBoost with its defaults."""
    from xgboost import XGBRegressor

    return Prediction(XGBRegressor(random_state=seed).fit(X, y).predict(X_new))


def xrfm(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """xRFM with its defaults; a fifth of the rows is its validation set."""
    from xrfm import xRFM

    X, X_val, y, y_val = train_test_split(
        X.astype(np.float32), y.astype(np.float32), test_size=0.2, random_state=seed
    )
    model = xRFM(random_state=seed, verbose=False)
    model.fit(X, y[:, None], X_val, y_val[:, None])
    return Prediction(np.asarray(model.predict(X_new.astype(np.float32))).ravel())


def sgpr_model(X: Any, y: Any, points: Any) -> tuple[Any, Any]:
    """GPyTorch's SGPR with a Matérn 3/2 kernel and a length per feature."""
    import gpytorch

    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                gpytorch.kernels.ScaleKernel(kernel), points, likelihood
            )

        def forward(self, x: Any) -> Any:
            covariance = self.covar_module(x)
            mean = self.mean_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    return Model(), likelihood


def sgpr(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """GPyTorch's SGPR, its inducing points optimised with all else by Adam."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    X, y, X_new = (torch.tensor(a, dtype=torch.float32) for a in (X, y, X_new))
    points = X[torch.randperm(len(X))[:size]].clone()
    model, likelihood = sgpr_model(X, y, points)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=SGPR_RATE)
    model.train()
    for _ in range(SGPR_STEPS):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        posterior = likelihood(model(X_new))
    return Prediction(posterior.mean.numpy(), posterior.stddev.numpy())


def svgp(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """GPyTorch's SVGP by Adam on batches."""
    import gpytorch
    import torch
    from gpytorch.variational import CholeskyVariationalDistribution as Distribution
    from gpytorch.variational import VariationalStrategy

    torch.manual_seed(seed)
    X, y, X_new = (torch.tensor(a, dtype=torch.float32) for a in (X, y, X_new))

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points: Any) -> None:
            super().__init__(VariationalStrategy(self, points, Distribution(size)))
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: Any) -> Any:
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    model = Model(X[torch.randperm(len(X))[:size]].clone())
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    parameters = [*model.parameters(), *likelihood.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=SVGP_RATE)
    for _ in range(SVGP_EPOCHS):
        for rows in torch.randperm(len(X)).split(SVGP_BATCH):
            optimizer.zero_grad()
            loss = -objective(model(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        posterior = likelihood(model(X_new))
    return Prediction(posterior.mean.numpy(), posterior.stddev.numpy())


class Method(NamedTuple):
    """How to predict, what it needs, and whether the number of landmarks matters."""

    run: Callable[..., Prediction]
    package: str | None = None
    has_size: bool = True


OPTIMIZED = {"gamma": "matrix", "optimize_landmarks": True}
METHODS = {
    "scale": Method(nystrom({"gamma": "scale"})),
    "default": Method(nystrom({})),
    "learn": Method(nystrom({"gamma": "learn"})),
    "ard": Method(nystrom({"gamma": "ard"})),
    "matrix": Method(nystrom({"gamma": "matrix"})),
    "optimized": Method(nystrom(OPTIMIZED)),
    "full": Method(all_rows),
    "boosting": Method(boosting, has_size=False),
    "xgboost": Method(xgboost, "xgboost", has_size=False),
    "xrfm": Method(xrfm, "xrfm", has_size=False),
    "sgpr": Method(sgpr, "gpytorch"),
    "svgp": Method(svgp, "gpytorch"),
}


def load(path: Path, split: int) -> tuple[np.ndarray, ...]:
    """Training and test rows and targets of one split, standardised."""
    data = np.load(path)
    X, y, test = data["X"], data["y"].ravel(), data["test_mask"][:, split]
    scale = X[~test].std(axis=0)
    X = (X - X[~test].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    y = (y - y[~test].mean()) / y[~test].std()
    return X[~test], y[~test], X[test], y[test]


def measure(predicted: Prediction, y: np.ndarray) -> dict[str, float]:
    """RMSE, and likelihood and coverage where there are deviations."""
    error = y - predicted.mean
    row = {"rmse": float(np.sqrt(np.mean(error**2)))}
    std = predicted.std
    if std is not None:
        losses = np.log(2 * np.pi * std**2) / 2 + error**2 / (2 * std**2)
        row["nll"] = float(losses.mean())
        half = 1.96 * std
        lower, upper = predicted.mean - half, predicted.mean + half
        if predicted.lower is not None and predicted.upper is not None:
            lower, upper = predicted.lower, predicted.upper
        row["coverage"] = float(np.mean((lower <= y) & (y <= upper)))
        row["width"] = float(np.mean(upper - lower))
    return row


def check_agreement() -> None:
    """The same hyper-parameters give the same means and deviations.

    Deviations agree up to one factor, by which ours are calibrated. GPyTorch's lack
    k(x, x) − k̃(x, x), which is added; its landmarks are ours.
    """
    rng = np.random.default_rng(0)
    X, X_new = rng.uniform(-2, 2, (600, 3)), rng.uniform(-2, 2, (50, 3))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(600)
    lengths, noise = np.array([1.0, 2.0, 3.0]), 0.02
    exact = GaussianProcessRegressor(
        kernels.Matern(lengths, nu=1.5), alpha=noise, optimizer=None
    )
    kernel = Matern(lengths)
    ours = KernelRidge(noise, kernel=kernel, n_landmarks=600)
    compare("scikit-learn", ours, exact.fit(X, y).predict(X_new, True), X, y, X_new)
    if importlib.util.find_spec("gpytorch") is None:
        print("gpytorch is not installed; its agreement is not checked.")
        return
    import gpytorch
    import torch

    tensors = [torch.tensor(a) for a in (X, y, X_new, X[:60])]
    model, likelihood = sgpr_model(*tensors[:2], tensors[3].clone())
    model, likelihood = model.double(), likelihood.double()
    base = model.covar_module.base_kernel
    base.base_kernel.lengthscale, base.outputscale = torch.tensor(lengths), 1.0
    likelihood.noise = noise
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.sgpr_diagonal_correction(False):
        posterior = likelihood(model(tensors[2]))
        mean, variance = posterior.mean.numpy(), posterior.variance.numpy()
    K_S, K_SS = kernel(X_new, X[:60]), kernel(X[:60], X[:60])
    explained = np.einsum("ij,ij->i", K_S, np.linalg.solve(K_SS, K_S.T).T)
    std = np.sqrt(variance + 1 - explained)
    ours = KernelRidge(noise, kernel=kernel, sampler=X[:60], n_landmarks=60)
    compare("GPyTorch's SGPR", ours, (mean, std), X, y, X_new)


def compare(peer: str, model: Any, expected: Any, X: Any, y: Any, X_new: Any) -> None:
    """Stop where means or deviations differ by more than 1e-6."""
    is_exact = peer == "scikit-learn"
    mean, std = model.fit(X, y).predict(X_new, return_std=True, noise=not is_exact)
    ratio = std / expected[1]
    worst = np.abs(mean - expected[0]).max(), np.ptp(ratio) / ratio.mean()
    print(f"{peer}: means differ by {worst[0]:.1g}, deviations by {worst[1]:.1g}.")
    if max(worst) > 1e-6:
        sys.exit(f"{peer} and nystrom do not agree.")


def peak_kilobytes() -> int:
    """The most memory that this process had, where the system tells (Linux)."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(x.split()[1]) for x in lines if x.startswith("VmHWM")), 0)


def run_method(path: Path, split: int, size: int, name: str, results: Any) -> None:
    """Fit and predict in this process, and report what was measured."""
    X, y, X_new, y_new = load(path, split)
    package = METHODS[name].package
    if package is not None:
        importlib.import_module(package)
    before = peak_kilobytes()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = METHODS[name].run(X, y, X_new, size, split)
    seconds = time.perf_counter() - start
    after = peak_kilobytes()
    measured = {key: round(v, 4) for key, v in measure(predicted, y_new).items()}
    measured |= {"seconds": round(seconds, 1), "megabytes": (after - before) // 1024}
    results.put(measured)


def measure_in_process(*arguments: Any) -> dict[str, Any] | None:
    """What a method reached, in a process of its own; None where it failed."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=run_method, args=(*arguments, results))
    process.start()
    process.join()
    return None if process.exitcode else results.get()


def print_summary(path: Path) -> None:
    """Medians over the splits, a line for each set, size and method."""
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in csv.DictReader(path.open()):
        key = row["set"], row["size"], row["method"]
        groups.setdefault(key, []).append(row)
    for key, rows in sorted(groups.items()):
        medians = []
        for column in COLUMNS[4:]:
            values = [float(row[column]) for row in rows if row[column]]
            if values:
                medians.append(f"{column} {statistics.median(values):.4g}")
        print(*key, f"({len(rows)} splits):", ", ".join(medians))


def main() -> None:
    """Run what is asked for, and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--sizes", nargs="+", type=int, default=[512, 1024, 2048])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if options.summary:
        print_summary(options.out)
        return
    check_agreement()
    is_new = not options.out.exists()
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        for name, split in ((n, s) for n in options.sets for s in options.splits):
            path = options.data / "uci" / f"{name}.npz"
            for method in options.methods:
                _, package, has_size = METHODS[method]
                if package is not None and importlib.util.find_spec(package) is None:
                    print(f"{method}: {package} is not installed; skipped.")
                    continue
                for size in options.sizes if has_size else options.sizes[:1]:
                    measured = measure_in_process(path, split, size, method)
                    if measured is None:
                        print(f"{name}, split {split}, {method} {size}: failed.")
                        continue
                    row = {"set": name, "split": split, "method": method}
                    row |= {"size": size if has_size else ""} | measured
                    writer.writerow(row)
                    file.flush()
                    print(row, flush=True)


if __name__ == "__main__":
    main()

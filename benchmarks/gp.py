"""Regression with intervals on UCI sets: `dev.py bench gp --data FOLDER`.

Each set is NAME.npz in the folder `uci` of the data, with X, y and `test_mask`
(n × splits, the published 90/10 splits). Rows and targets are standardised by the
training rows. RMSE, negative log-likelihood, coverage and mean width of the 95 %
interval are those of the test rows, in these units. Methods run one after the other in
one process; seconds are to be compared within a run. GPyTorch's SGPR and XGBoost take
part where they are installed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from nystrom import KernelRidgeCV

SETS = ("pol", "elevators", "bike", "kin40k", "protein", "keggdirected")
RESULTS = Path(__file__).parent / "results" / "gp.csv"


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


def boosting(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """scikit-learn's gradient boosting with its defaults."""
    model = HistGradientBoostingRegressor(random_state=seed).fit(X, y)
    return Prediction(model.predict(X_new))


def xgboost(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """XGBoost with its defaults."""
    from xgboost import XGBRegressor

    return Prediction(XGBRegressor(random_state=seed).fit(X, y).predict(X_new))


def sgpr(X: Any, y: Any, X_new: Any, size: int, seed: int) -> Prediction:
    """GPyTorch's SGPR: Matérn 3/2, a length per feature, 100 Adam steps at 0.1."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    X, y, X_new = (torch.tensor(a, dtype=torch.float32) for a in (X, y, X_new))
    likelihood = gpytorch.likelihoods.GaussianLikelihood()

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            points = X[torch.randperm(len(X))[:size]].clone()
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                gpytorch.kernels.ScaleKernel(kernel), points, likelihood
            )

        def forward(self, x: Any) -> Any:
            covariance = self.covar_module(x)
            mean = self.mean_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, covariance)

    model = Model()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    for _ in range(100):
        optimizer.zero_grad()
        loss = -objective(model(X), y)
        loss.backward()
        optimizer.step()
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        posterior = likelihood(model(X_new))
    return Prediction(posterior.mean.numpy(), posterior.stddev.numpy())


METHODS: dict[str, tuple[str | None, Callable[..., Prediction]]] = {
    "learn": (None, nystrom({"gamma": "learn"})),
    "ard": (None, nystrom({"gamma": "ard"})),
    "matrix": (None, nystrom({"gamma": "matrix"})),
    "optimized": (None, nystrom({"gamma": "matrix", "optimize_landmarks": True})),
    "boosting": (None, boosting),
    "xgboost": ("xgboost", xgboost),
    "sgpr": ("gpytorch", sgpr),
}


def load(path: Path, split: int) -> tuple[np.ndarray, ...]:
    """Training and test rows and targets of one split, standardised."""
    data = np.load(path)
    X, y, test = data["X"], data["y"].ravel(), data["test_mask"][:, split]
    scale = X[~test].std(axis=0)
    X = (X - X[~test].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    y = (y - y[~test].mean()) / y[~test].std()
    return X[~test], y[~test], X[test], y[test]


def measure(predicted: Prediction, y: np.ndarray) -> dict[str, float | None]:
    """RMSE, and likelihood and coverage where there are deviations."""
    error = y - predicted.mean
    row: dict[str, float | None] = {"rmse": float(np.sqrt(np.mean(error**2)))}
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


def main() -> None:
    """Run what is asked for, and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--sizes", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    columns = ["set", "split", "size", "method", "rmse", "nll", "coverage", "width"]
    columns += ["seconds"]
    is_new = not options.out.exists()
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns)
        if is_new:
            writer.writeheader()
        for name, split in ((n, s) for n in options.sets for s in options.splits):
            X, y, X_new, y_new = load(options.data / "uci" / f"{name}.npz", split)
            for method, size in (
                (m, s) for m in options.methods for s in options.sizes
            ):
                needed, run = METHODS[method]
                if needed is not None and importlib.util.find_spec(needed) is None:
                    print(f"{method}: {needed} is not installed; skipped.")
                    continue
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = run(X, y, X_new, size, split)
                seconds = round(time.perf_counter() - start, 1)
                row = {"set": name, "split": split, "size": size, "method": method}
                row |= measure(predicted, y_new)
                row = {
                    key: round(v, 4) if isinstance(v, float) else v
                    for key, v in row.items()
                } | {"seconds": seconds}
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()

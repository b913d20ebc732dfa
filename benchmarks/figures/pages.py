"""Pictures of the user guide that need no long experiment, or are read from results."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from nystrom import (
    GaussianProcessRegressor,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
)

from .reading import curves, draw, log_log, rows, save_for_pages

SIZE = (6.4, 3.6)


def intervals() -> None:
    """docs/regression.md: a curve with its interval, and the coverage."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-4, 4, (4000, 1))
    signal = np.sin(2 * X[:, 0]) / (1 + X[:, 0] ** 2 / 4)
    y = signal + 0.2 * rng.standard_normal(4000)
    model = KernelRidge(0.05, kernel="rbf", gamma=2.0, n_landmarks=60, random_state=0)
    model.fit(X[:2000], y[:2000])
    grid = np.linspace(-5, 5, 400)[:, None]
    low, high = model.predict(grid, interval=0.95)
    inside = model.predict(X[2000:], interval=0.95)
    share = np.mean((inside[0] <= y[2000:]) & (y[2000:] <= inside[1]))
    picture, panel = plt.subplots(figsize=SIZE, layout="constrained")
    panel.plot(X[:2000], y[:2000], ".", color="0.75", markersize=2)
    panel.plot(grid, model.predict(grid), color="tab:green")
    panel.fill_between(grid[:, 0], low, high, color="tab:green", alpha=0.25)
    panel.set(ylim=(-1.8, 1.8), xlabel="x", ylabel="y")
    panel.set_title(f"95 % intervals; {100 * share:.1f} % of 2000 new targets inside")
    save_for_pages(picture, "intervals")


def gaussian_process() -> None:
    """docs/gaussian_process.md: mean, deviation and draws beside a gap in the rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-4, 4, (3000, 1))
    X = X[np.abs(X[:, 0] - 1.5) > 1.0]  # the gap
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(len(X))
    kernel = ConstantKernel() * Matern(nu=2.5)
    model = GaussianProcessRegressor(kernel, alpha=0.04, n_landmarks=40, random_state=0)
    model.fit(X, y)
    grid = np.linspace(-4.5, 4.5, 400)[:, None]
    mean, std = model.predict(grid, return_std=True)
    picture, panel = plt.subplots(figsize=SIZE, layout="constrained")
    panel.plot(X, y, ".", color="0.75", markersize=2)
    panel.plot(grid, model.sample_y(grid, 3), color="tab:blue", linewidth=0.8)
    panel.plot(grid, mean, color="tab:green", label="mean")
    low, high = mean - 2 * std, mean + 2 * std
    panel.fill_between(grid[:, 0], low, high, color="tab:green", alpha=0.25)
    panel.plot(model.X_train_[:, 0], 0 * model.X_train_[:, 0] - 2.1, "r|")
    panel.set(ylim=(-2.3, 2.3), xlabel="x (landmarks in red)", ylabel="y")
    panel.set_title("mean, two standard deviations and three draws")
    save_for_pages(picture, "gaussian_process")


def components() -> None:
    """docs/components.md: two components of digits, and two clusters."""
    X, y = load_digits(return_X_y=True)
    pca = KernelPCA(2, kernel="rbf", gamma=1e-3, n_landmarks=300, random_state=0)
    moons, _ = make_moons(3000, noise=0.06, random_state=0)
    clusters = KernelKMeans(
        2, gamma=20.0, n_landmarks=200, affinity_normalize=True, random_state=0
    )
    picture, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
    left.scatter(*pca.fit_transform(X).T, c=y, s=4, cmap="tab10")
    left.set(title="KernelPCA of digits", xticks=[], yticks=[])
    right.scatter(*moons.T, c=clusters.fit_predict(moons), s=4, cmap="coolwarm")
    right.set(title="spectral clustering", xticks=[], yticks=[])
    save_for_pages(picture, "components")


def memory() -> None:
    """docs/scaling.md: memory of a selection by the number of rows."""
    picture, panel = plt.subplots(figsize=SIZE, layout="constrained")
    for sampler in ("uniform", "accelerated", "auto"):
        found = rows("generated_rows", sampler=sampler)
        n = [float(row["rows"]) for row in found]
        panel.plot(n, [float(row["MB more"]) for row in found], "o-", label=sampler)
        panel.lines[-1].set_label(f'"{sampler}"')
    dense = np.array([1e5, 1e8])
    panel.plot(dense, dense * 40 / 1e6, ":", color="0.5", label="the rows themselves")
    log_log(panel, "rows", "MB")
    panel.set_title("memory to select 200 landmarks of generated rows")
    panel.legend()
    save_for_pages(picture, "memory")


def swap() -> None:
    """docs/performance.md: time beside scikit-learn's Nystroem by n/s."""
    picture, panel = plt.subplots(figsize=SIZE, layout="constrained")
    for sampler, marker in (("auto", "o"), ("uniform", "s")):
        found = [row for row in rows("swap", sampler=sampler) if row["s"]]
        ratio = [float(row["n"]) / float(row["s"]) for row in found]
        times = [float(row["ratio"]) for row in found]
        panel.plot(ratio, times, marker, label=f'sampler="{sampler}"')
    panel.axhline(1, color="0.5", linewidth=1)
    panel.set(xscale="log", xlabel="rows per landmark, n/s")
    panel.set_ylabel("time / scikit-learn's")
    panel.legend()
    save_for_pages(picture, "swap")


def error_against_samples() -> None:
    """docs/reproduction.md: the paper's Figure 2 on Covertype."""
    found = rows("paper", experiment=("error", "error, many"), data="covertype")
    picture, panel = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for method, (s, error) in curves(found, "spectral_error").items():
        if method != "nothing":
            draw(panel, method, s, error)
    sizes = sorted({int(row["s"]) for row in found})
    log_log(panel, "landmarks s", "‖K − K̃‖₂", sizes)
    panel.set_title("Covertype, 20 000 rows")
    picture.legend(loc="outside lower center", ncols=3, fontsize=9)
    save_for_pages(picture, "error_against_samples")


def figure() -> None:
    """Draw all of them."""
    for draw_page in (intervals, gaussian_process, components, memory, swap):
        draw_page()
    error_against_samples()


if __name__ == "__main__":
    figure()

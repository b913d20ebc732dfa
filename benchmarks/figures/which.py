"""The pictures of docs/landmarks.md: what estimators find, and what samplers leave."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
)

from .reading import (
    LOOKS,
    TITLES,
    curves,
    draw,
    geometric_mean,
    log_log,
    rows,
    save_for_pages,
)

#: Of results/paper.csv: 20 000 rows of each set, the cross-validated width.
MEASURED = ("error", "error, many", "greedy")
SAMPLERS = ("accelerated", "recursive", "greedy", "rpcholesky", "auto")
DRAWN = (*SAMPLERS, "uniform")
POINTS = {"s": 5, "linewidths": 0}


def regression(panel) -> None:
    """A curve, and where new targets lie."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (1500, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(1500)
    model = KernelRidge(0.1, kernel="rbf", gamma=1.0, n_landmarks=30, random_state=0)
    grid = np.linspace(-3, 3, 200)[:, None]
    mean, std = model.fit(X, y).predict(grid, return_std=True, noise=True)
    panel.scatter(X[:, 0], y, color="0.7", **POINTS)
    panel.plot(grid, mean, color="tab:green")
    band = {"alpha": 0.25, "color": "tab:green", "linewidth": 0}
    panel.fill_between(grid[:, 0], mean - 1.96 * std, mean + 1.96 * std, **band)
    panel.set_title("KernelRidge: numbers, intervals")


def surface(panel, model, method: str, levels) -> None:
    """What a classifier says of every place, with the rows."""
    X, y = make_moons(1500, noise=0.25, random_state=0)
    sides = np.linspace(-1.8, 2.8, 120), np.linspace(-1.4, 1.9, 100)
    places = np.stack(np.meshgrid(*sides), axis=-1)
    said = getattr(model.fit(X, y), method)(places.reshape(-1, 2))
    said = said[:, 1] if said.ndim == 2 else said
    values = said.reshape(places.shape[:2])
    looks = {"cmap": "RdBu", "alpha": 0.7}
    panel.contourf(*sides, values, levels, **looks)
    colours = np.where(y, "tab:blue", "tab:red")
    panel.scatter(*X.T, c=colours, **POINTS)


def classes(panel) -> None:
    """One class or the other."""
    options = {"kernel": "rbf", "gamma": 1.0, "n_landmarks": 60, "random_state": 0}
    surface(
        panel, KernelRidgeClassifier(0.1, **options), "decision_function", [-99, 0, 99]
    )
    panel.set_title("KernelRidgeClassifierCV: classes")


def probabilities(panel) -> None:
    """How sure it is."""
    model = KernelLogisticRegression(10.0, gamma=1.0, n_landmarks=60, random_state=0)
    surface(panel, model, "predict_proba", np.linspace(0, 1, 11))
    panel.set_title("KernelLogisticRegression: probabilities")


def coordinates(panel) -> None:
    """Digits by two components, each digit a colour."""
    X, y = load_digits(return_X_y=True)
    model = KernelPCA(2, kernel="rbf", gamma=1e-3, n_landmarks=300, random_state=0)
    panel.scatter(*model.fit_transform(X).T, c=y, cmap="tab10", **POINTS)
    panel.set_title("KernelPCA: coordinates (of digits)")


def clusters(panel) -> None:
    """Clusters that are not round."""
    X, _ = make_moons(1500, noise=0.07, random_state=0)
    model = KernelKMeans(
        2, gamma=20, n_landmarks=100, affinity_normalize=True, random_state=0
    )
    colours = np.array(["tab:orange", "tab:blue"])[model.fit_predict(X)]
    panel.scatter(*X.T, c=colours, **POINTS)
    panel.set_title("KernelKMeans: clusters")


def views(panel) -> None:
    """What two measurements of one angle have in common."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 2000)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    Y = np.stack([np.cos(2 * angle), np.sin(2 * angle)], axis=1)
    X, Y = (view + 0.1 * rng.standard_normal(view.shape) for view in (X, Y))
    model = KernelCCA(1, gamma=0.5, n_landmarks=100, random_state=0).fit(X, Y)
    a, b = model.transform(X, Y)
    panel.scatter(a.ravel(), b.ravel(), c=angle % np.pi, cmap="twilight", **POINTS)
    panel.set_title("KernelCCA: what two views share")


def estimators() -> None:
    """One panel each."""
    parts = (regression, classes, probabilities, coordinates, clusters, views)
    picture, panels = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
    for part, panel in zip(parts, panels.flat, strict=True):
        part(panel)
        panel.title.set_fontsize(9.5)
        panel.set(xticks=[], yticks=[])
    save_for_pages(picture, "which_estimator")


def samplers() -> None:
    """Errors over those of uniform landmarks, against their number: a line each."""
    errors = {
        "trace_error": "tr(K − K̃)\nover uniform's",
        "spectral_error": "‖K − K̃‖₂\nover uniform's",
    }
    picture, panels = plt.subplots(
        2, len(TITLES), figsize=(11, 5), layout="constrained", sharex=True, sharey="row"
    )
    for column, (data, title) in zip(panels.T, TITLES.items(), strict=True):
        column[0].set_title(title)
        found = rows("paper", data=data, experiment=MEASURED, method=DRAWN)
        for panel, error in zip(column, errors, strict=True):
            lines = curves(found, error, geometric_mean)
            base = dict(zip(*lines["uniform"], strict=True))
            for method in SAMPLERS:
                sizes, values = lines[method]
                both = [k for k, s in enumerate(sizes) if s in base]
                ratios = [values[k] / base[sizes[k]] for k in both]
                draw(panel, method, sizes[both], ratios)
                panel.lines[-1].set_label(f'"{method}"')
            panel.axhline(1, color=LOOKS["uniform"][0], lw=1, label='"uniform"')
            panel.grid(alpha=0.3)
    for panel, label in zip(panels[:, 0], errors.values(), strict=True):
        log_log(panel, "", label, (50, 200, 800, 3200))
    for panel in panels[1]:
        panel.set_xlabel("landmarks")
    picture.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6
    )
    save_for_pages(picture, "which_sampler")


def figure() -> None:
    """Both."""
    estimators()
    samplers()


if __name__ == "__main__":
    figure()

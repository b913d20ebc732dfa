"""Rows of a results file, and curves of means over seeds."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

BENCHMARKS = Path(__file__).parents[1]
RESULTS = BENCHMARKS / "results"
PICTURES = BENCHMARKS.parent / "build" / "figures"
IMAGES = BENCHMARKS.parent / "docs" / "images"
Row = dict[str, str]

TITLES = {
    "adult": "Adult",
    "covertype": "Covertype",
    "cod_rna": "Cod-RNA",
    "year": "YearPredictionMSD",
}
#: Line colour and marker of a method, the same in all figures.
LOOKS = {
    "fourier": ("tab:gray", "x", "random Fourier features"),
    "uniform": ("tab:blue", "s", "uniform"),
    "sklearn": ("tab:blue", "D", "scikit-learn"),
    "recursive": ("tab:red", "o", "recursive RLS"),
    "accelerated": ("tab:orange", "^", "accelerated RLS"),
    "leverage": ("tab:brown", "P", "exact RLS"),
    "rpcholesky": ("tab:purple", "v", "RPCholesky"),
    "greedy": ("tab:pink", "*", "greedy"),
    "auto": ("tab:green", "d", "auto"),
    "plain recursive": ("lightcoral", "o", "Algorithm 3, plain NumPy"),
    "plain rpcholesky": ("plum", "v", "RPCholesky, plain NumPy"),
    "KernelRidge": ("black", ".", "KernelRidge"),
}


def rows(name: str, **where: str | tuple[str, ...]) -> list[Row]:
    """The rows of results/name.csv that have these values."""
    path = Path(name) if name.endswith(".csv") else RESULTS / f"{name}.csv"
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    for column, value in where.items():
        allowed = value if isinstance(value, tuple) else (value,)
        found = [row for row in found if row[column] in allowed]
    return found


def number(row: Row, name: str) -> float:
    """A cell, 0 where it is empty; "seconds" is all that was timed."""
    if name == "seconds":
        parts = ("fit_seconds", "transform_seconds", "learn_seconds")
        return sum(number(row, part) for part in parts)
    return float(row[name] or 0)


def curves(
    found: list[Row], name: str, mean: Callable = np.mean
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each method: sizes, and the mean of a column over seeds."""
    cells: dict[str, dict[int, list[float]]] = {}
    for row in found:
        sizes = cells.setdefault(row["method"], {})
        sizes.setdefault(int(row["s"]), []).append(number(row, name))
    return {
        method: (
            np.array(sorted(sizes)),
            np.array([mean(sizes[s]) for s in sorted(sizes)]),
        )
        for method, sizes in cells.items()
    }


def geometric_mean(values: list[float]) -> float:
    """exp of the mean logarithm."""
    return float(np.exp(np.mean(np.log(values))))


def log_log(axes, xlabel: str, ylabel: str, sizes: Iterable[float] = ()) -> None:
    """Logarithmic axes, with the sizes themselves as ticks where they are along x."""
    axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if high < 100 * low:  # too few powers of ten to read it by
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    if sizes:
        axes.set_xticks(list(sizes), [f"{size:g}" for size in sizes], fontsize=8)


def draw(axes, method: str, x: np.ndarray, y: np.ndarray) -> None:
    """One curve, in the method's colours."""
    colour, marker, label = LOOKS.get(method, ("black", ".", method))
    axes.plot(x, y, color=colour, marker=marker, markersize=4, lw=1.2, label=label)


def save(figure, name: str) -> Path:
    """Write build/figures/name.png, and say so."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    figure.savefig(path, dpi=130, bbox_inches="tight")
    print(f"drew {path.relative_to(BENCHMARKS.parent)}")
    return path


def save_for_pages(figure, name: str) -> None:
    """Write docs/images/name.png, which is tracked; on white, for dark pages too."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=120, facecolor="white")
    plt.close(figure)

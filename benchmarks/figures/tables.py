"""The paper's claims as numbers, from the same results as the figures."""

from __future__ import annotations

import numpy as np

from .peers import interpolated
from .reading import TITLES, Row, curves, number, rows

EXPERIMENTS = ("error", "error, many", "greedy")


def errors(data: str) -> list[Row]:
    """Rows of Figures 2 to 4 for one set."""
    found = rows("paper", experiment=EXPERIMENTS, data=data)
    return [row for row in found if row["method"] != "nothing"]


def line(*cells: object) -> None:
    """A row of a Markdown table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def header(*cells: str) -> None:
    """A Markdown table's head."""
    print()
    line(*cells)
    line(*("---" for _ in cells))


def error_against_samples() -> None:
    """Figure 2: mean errors, relative to uniform's at the same size."""
    for data, title in TITLES.items():
        found = curves(errors(data), "spectral_error")
        if "uniform" not in found:
            continue
        sizes = found["uniform"][0]
        print(f"\n{title}: ‖K − K̃‖₂ of uniform, and of others as a share of it")
        header("method", *(f"s = {s}" for s in sizes))
        base = dict(zip(*found["uniform"], strict=True))
        line("uniform", *(f"{base[s]:.3g}" for s in sizes))
        for method, (s, error) in found.items():
            mine = dict(zip(s, error, strict=True))
            if method != "uniform":
                shares = (
                    f"{mine[k] / base[k]:.3g}" if k in mine else "-" for k in sizes
                )
                line(method, *shares)


def time_to_error() -> None:
    """Figure 3: seconds to the error that uniform has with its most samples."""
    print("\nSeconds to the error of uniform with its most samples, and samples for it")
    header("set", "method", "samples", "seconds", "of uniform's time")
    for data, title in TITLES.items():
        found = errors(data)
        error, seconds = (
            curves(found, "spectral_error"),
            curves(found, "seconds", np.median),
        )
        if "uniform" not in error:
            continue
        aim, base = error["uniform"][1][-1], seconds["uniform"][1][-1]
        for method, (s, e) in error.items():
            if method in ("fourier", "greedy"):
                continue
            took = interpolated(e, seconds[method][1], aim)
            size = interpolated(e, s, aim)
            line(title, method, f"{size:.0f}", f"{took:.2f}", f"{took / base:.2f}")


def accelerated() -> None:
    """Figure 4: its time and error beside those of its neighbours, on Covertype."""
    found = errors("covertype")
    seconds = curves(found, "seconds", np.median)
    error = curves(found, "spectral_error")
    print("\nCovertype, accelerated: seconds and error, as multiples")
    columns = ("time / uniform", "time / fourier", "time / recursive")
    header("s", *columns, "error / recursive", "error / uniform")
    for i, s in enumerate(seconds["accelerated"][0]):
        mine = seconds["accelerated"][1][i]
        cells = [
            f"{mine / seconds[peer][1][i]:.2f}"
            for peer in ("uniform", "fourier", "recursive")
        ]
        cells += [
            f"{error['accelerated'][1][i] / error[peer][1][i]:.2f}"
            for peer in ("recursive", "uniform")
        ]
        line(s, *cells)


def exact_scores() -> None:
    """What exact leverage scores give beside those of the recursion."""
    print("\n2500 rows: ‖K − K̃‖₂ as a share of that of exact leverage scores")
    methods = ("recursive", "accelerated", "uniform", "auto")
    header("set", "s", *methods)
    for data, title in TITLES.items():
        found = curves(rows("paper", experiment="exact", data=data), "spectral_error")
        if "leverage" not in found:
            continue
        for i, s in enumerate(found["leverage"][0]):
            base = found["leverage"][1][i]
            line(title, s, *(f"{found[m][1][i] / base:.2f}" for m in methods))


def learning() -> None:
    """Figure 5, and the times for n = 463 716."""
    for experiment, unit in (("classification", "% wrong"), ("regression", "RMSE")):
        found = curves(rows("paper", experiment=experiment), "test_error")
        if not found:
            continue
        spread = curves(rows("paper", experiment=experiment), "test_error", np.std)
        sizes = next(iter(found.values()))[0]
        print(f"\n{experiment}: {unit}, mean ± deviation over seeds")
        header("method", *(f"s = {s}" for s in sizes))
        for method, (_, error) in found.items():
            pairs = zip(error, spread[method][1], strict=True)
            line(method, *(f"{e:.2f} ± {d:.2f}" for e, d in pairs))
    large = rows("paper", experiment="large")
    if large:
        print(f"\nn = {large[0]['n']}, d = {large[0]['d']}, s = 2000: seconds, means")
        header("method", "features", "regression", "in all", "MB")
    for method in dict.fromkeys(row["method"] for row in large):
        part = [row for row in large if row["method"] == method]
        both = [number(r, "fit_seconds") + number(r, "transform_seconds") for r in part]
        rest = [number(row, "learn_seconds") for row in part]
        memory = np.mean([number(row, "peak_mb") for row in part])
        total = np.mean(both) + np.mean(rest)
        cells = (np.mean(both), np.mean(rest), total, memory)
        line(method, *(f"{cell:.0f}" for cell in cells))


def figure() -> None:
    """All tables."""
    error_against_samples()
    time_to_error()
    accelerated()
    exact_scores()
    learning()


if __name__ == "__main__":
    figure()

"""Cost against n and s: fitted exponents with their intervals, and the picture.

Table 1 of the paper: every application costs n times something.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import scipy.optimize
import scipy.stats

from .reading import Row, draw, log_log, number, rows, save


def exponent(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """p of y ∝ xᵖ by least squares of logarithms, and half its 95 % interval."""
    fitted = scipy.stats.linregress(np.log(x), np.log(y))
    if len(x) < 3:
        return float(fitted.slope), float("nan")
    t = scipy.stats.t.ppf(0.975, len(x) - 2)
    return float(fitted.slope), float(t * fitted.stderr)


def beside_fixed(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """p of y = c + b·xᵖ, c ≥ 0, by least squares of logarithms, and half its interval.

    Choosing has work that does not depend on n; a plain power law takes it for a
    smaller exponent.
    """
    start = np.log([y[0] / 2, y[-1] / x[-1], np.e])

    def miss(parameters: np.ndarray) -> np.ndarray:
        c, b = np.exp(parameters[:2])
        return np.log(c + b * x ** parameters[2]) - np.log(y)

    fitted = scipy.optimize.least_squares(miss, start, x_scale="jac")
    freedom = len(x) - 3
    if freedom < 1:
        return float(fitted.x[2]), float("nan")
    noise = 2 * fitted.cost / freedom
    deviation = np.sqrt(noise * np.linalg.pinv(fitted.jac.T @ fitted.jac)[2, 2])
    return float(fitted.x[2]), float(scipy.stats.t.ppf(0.975, freedom) * deviation)


def series(found: list[Row], along: str, name: str) -> dict[str, tuple]:
    """For each method: values of n or s, and the least of a column over seeds.

    Other work on the machine only ever adds seconds.
    """
    cells: dict[str, dict[float, list[float]]] = {}
    for row in found:
        line = cells.setdefault(row["method"], {})
        line.setdefault(float(row[along]), []).append(number(row, name))
    return {
        method: (
            np.array(sorted(line)),
            np.array([min(line[x]) for x in sorted(line)]),
        )
        for method, line in cells.items()
    }


def table(title: str, found: list[Row], along: str, least: float = 0) -> None:
    """Exponents of seconds and of kernel evaluations, as Markdown."""
    print(f"\n{title}\n")
    columns = ("exponent of time", "beside a fixed part", "of kernel evaluations")
    print(f"| | {along} from – to | " + " | ".join(columns) + " |")
    print("|---|---|---|---|---|")
    evaluations = series(found, along, "evaluations")
    for method, (x, seconds) in series(found, along, "fit_seconds").items():
        used = x >= least
        if used.sum() < 2:
            continue
        p, dp = exponent(x[used], seconds[used])
        q, dq = (float("nan"),) * 2
        if evaluations[method][1].min() > 0:
            q, dq = exponent(x[used], evaluations[method][1][used])
        span = f"{x[used][0]:.0f} – {x[used][-1]:.0f}"
        f, df = beside_fixed(x[used], seconds[used])
        cells = [f"{a:.2f} ± {b:.2f}" for a, b in ((p, dp), (f, df), (q, dq))]
        print(f"| {method} | {span} | " + " | ".join(cells) + " |")


def billion(found: list[Row]) -> None:
    """Seconds and memory for 10⁹ rows, from the largest n that was measured."""
    largest = max(int(row["n"]) for row in found)
    print(f"\n10⁹ rows, as {1e9 / largest:.0f} × what {largest} rows take\n")
    print("| | seconds measured | hours predicted | MB beside the rows, measured |")
    print("|---|---|---|---|")
    for row in found:
        if int(row["n"]) == largest and row["seed"] == "0":
            seconds = number(row, "fit_seconds")
            hours = seconds * 1e9 / largest / 3600
            memory = number(row, "peak_mb")
            name = f"{row['method']}, {row['threads']} threads"
            print(f"| {name} | {seconds:.1f} | {hours:.1f} | {memory:.0f} |")


def figure() -> None:
    """Seconds against n and against s, for two threads; tables for both."""
    picture, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for panel, along in zip(panels, ("n", "s"), strict=True):
        experiments = ("n",) if along == "n" else ("s", "s-largest")
        found = rows("scaling", experiment=experiments)
        two = [row for row in found if row["threads"] == "2"]
        for method, (x, seconds) in series(two, along, "fit_seconds").items():
            draw(panel, method, x, seconds)
        log_log(panel, along, "seconds")
        panel.legend(fontsize=7)
        for threads in ("1", "2"):
            part = [row for row in found if row["threads"] == threads]
            if along == "n":
                table(f"{threads} threads, all n", part, along)
                table(f"{threads} threads, n ≥ 500 s", part, along, 500 * 200)
            else:
                table(f"{threads} threads, s", part, along)
        if along == "n" and found:
            billion(found)
    panels[0].set_title("s = 200", fontsize=9)
    panels[1].set_title("n = 100 000", fontsize=9)
    for s in ("100", "200", "400"):
        part = rows("scaling", experiment="applications", s=s)
        table(f"Table 1, s = {s}", part, "n")
    part = rows("scaling", experiment="applications", rows="400000")
    table("Table 1, 400 000 rows", part, "s")
    save(picture, "scaling")


if __name__ == "__main__":
    figure()

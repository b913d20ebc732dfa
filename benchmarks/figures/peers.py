"""Ours beside every peer, at equal error, at equal time and at equal rank."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .reading import Row, curves, draw, geometric_mean, log_log, number, rows, save

BASE = "sklearn"


def groups(found: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by data set and width."""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        parts.setdefault((row["data"], row["width"]), []).append(row)
    return parts


def equal_rank(found: list[Row]) -> None:
    """What s columns cost and give, by method: means over seeds, for each s."""
    print(
        "\n| s | method | ‖K − K̃‖₂ | trace error | seconds | MB | evaluations / n·s |"
    )
    print("|---|---|---|---|---|---|---|")
    sizes = sorted({int(row["s"]) for row in found})
    methods = list(dict.fromkeys(row["method"] for row in found))
    for s in sizes:
        for method in methods:
            part = [r for r in found if r["method"] == method and int(r["s"]) == s]
            if not part:
                continue
            trace = np.mean([number(r, "trace_error") for r in part])
            cells = [
                f"{geometric_mean([number(r, 'spectral_error') for r in part]):.3g}",
                f"{trace / number(part[0], 'trace'):.3g}",
                f"{np.median([number(r, 'seconds') for r in part]):.2f}",
                f"{np.median([number(r, 'peak_mb') for r in part]):.0f}",
            ]
            share = np.mean([number(r, "evaluations") for r in part])
            cells.append(f"{share / (s * int(part[0]['n'])):.2f}")
            print(f"| {s} | {method} | " + " | ".join(cells) + " |")


def interpolated(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """y at x = `at`, linear in logarithms, between measured points only."""
    order = np.argsort(x)
    x, y = x[order], y[order]
    if not x[0] <= at <= x[-1]:
        return float("nan")
    return float(np.exp(np.interp(np.log(at), np.log(x), np.log(y))))


def trade_off(found: list[Row]) -> None:
    """Time at the error of scikit-learn with most landmarks, error in its time."""
    errors = curves(found, "spectral_error", geometric_mean)
    seconds = curves(found, "seconds", np.median)
    error, time = errors[BASE][1][-1], seconds[BASE][1][-1]
    print(f"\n{BASE} with s = {errors[BASE][0][-1]}: error {error:.3g}, {time:.2f} s\n")
    columns = ("s for that error", "seconds", "of its time", "error in its time")
    print("| method | " + " | ".join(columns) + " |")
    print("|---|---|---|---|---|")
    for method, (s, e) in errors.items():
        if method == "nothing":
            continue
        t = seconds[method][1]
        if e[0] <= error:  # the smallest size measured is more than is needed
            size, took, word = float(s[0]), float(t[0]), "≤ "
        else:
            size, took = interpolated(e, s, error), interpolated(e, t, error)
            word = ""
        reached = interpolated(t, e, time)
        if t[-1] < time:
            reached = float(e[-1])
        cells = [f"{word}{size:.0f}", f"{word}{took:.2f}", f"{word}{took / time:.3f}"]
        if np.isnan(size):
            cells = ["not reached", "–", "–"]
        print(f"| {method} | " + " | ".join([*cells, f"{reached:.3g}"]) + " |")


def ratios(found: list[Row], peers: tuple[str, ...]) -> None:
    """auto / peer: spectral error, seconds to fit, seconds in all, by case."""
    print(
        "\n| case | n / s | peer | spectral error | trace error | choosing | in all |"
    )
    print("|---|---|---|---|---|---|---|")
    for (data, _), part in groups(found).items():
        for s in sorted({int(row["s"]) for row in part}):
            at = [row for row in part if int(row["s"]) == s]
            for peer in peers:
                cells = []
                for column in (
                    "spectral_error",
                    "trace_error",
                    "fit_seconds",
                    "seconds",
                ):
                    mean = geometric_mean if "error" in column else np.median
                    two = [
                        mean([number(r, column) for r in at if r["method"] == method])
                        for method in ("auto", peer)
                        if any(r["method"] == method for r in at)
                    ]
                    cells.append(f"{two[0] / two[1]:.2f}" if len(two) == 2 else "-")
                ratio = int(at[0]["n"]) / s
                case = f"{data}, γ {float(at[0]['gamma']):.3g}, s = {s}"
                print(f"| {case} | {ratio:.0f} | {peer} | " + " | ".join(cells) + " |")


def figure() -> None:
    """Covertype whole: error against seconds, and all tables."""
    found = rows("peers", experiment="covertype")
    print("## All of Covertype, at equal rank")
    equal_rank(found)
    trade_off(found)
    picture, panel = plt.subplots(figsize=(6, 4.2))
    errors = curves(found, "spectral_error", geometric_mean)
    for method, (_, seconds) in curves(found, "seconds", np.median).items():
        if method != "nothing":
            draw(panel, method, seconds, errors[method][1])
    log_log(panel, "seconds", "‖K − K̃‖₂ on 8000 rows")
    panel.set_title("Covertype, 581 012 rows", fontsize=9)
    panel.legend(fontsize=7)
    save(picture, "peers")
    everything = rows("peers", experiment="covertype")
    print("\n## auto against its peers, ratios")
    ratios(everything, ("rpcholesky", "plain rpcholesky", "sklearn"))
    print("\n## Whole models, Covertype")
    print("\n| method | s | % wrong | seconds | MB |\n|---|---|---|---|---|")
    models = rows("peers", experiment="models")
    for method in dict.fromkeys(row["method"] for row in models):
        for s in sorted({int(row["s"]) for row in models}):
            part = [r for r in models if r["method"] == method and int(r["s"]) == s]
            wrong = np.mean([number(r, "test_error") for r in part])
            took = np.median([number(r, "seconds") for r in part])
            memory = np.median([number(r, "peak_mb") for r in part])
            print(f"| {method} | {s} | {wrong:.2f} | {took:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    figure()

"""Ratios of the samplers' errors, seed by seed, on nine sets in three widths."""

from __future__ import annotations

import numpy as np

from .reading import Row, geometric_mean, number, rows

METHODS = ["uniform", "recursive", "accelerated", "rpcholesky", "greedy", "auto"]
METHODS += ["kmeans"]
BASELINES = ["rpcholesky", "uniform"]
#: Errors below this share of tr K, or of ‖K‖₂, are rounding.
NOISE = 1e-12
#: An error, and what it is relative to.
ERRORS = {"spectral_error": "norm", "trace_error": "trace"}


def by_case(found: list[Row]) -> dict[str, dict[str, dict[str, Row]]]:
    """Rows as case → method → seed → row."""
    cases: dict[str, dict[str, dict[str, Row]]] = {}
    for row in found:
        case = f"{row['data']} {row['width']} n={row['n']} s={row['s']}"
        methods = cases.setdefault(case, {})
        methods.setdefault(row["method"], {})[row["seed"]] = row
    return cases


def table(title: str, lines: dict[str, dict[str, float]]) -> None:
    """Print cases against methods."""
    names = [m for m in METHODS if any(m in line for line in lines.values())]
    width = max(map(len, lines), default=0) + 2
    print(f"\n{title}\n{'':{width}}" + "".join(f"{name:>12}" for name in names))
    for label, values in lines.items():
        cells = (f"{values[k]:12.4g}" if k in values else f"{'-':>12}" for k in names)
        print(f"{label:{width}}" + "".join(cells))


def ratios(found: list[Row], error: str, baseline: str) -> None:
    """One error relative to one baseline: each case, their mean, and the worst.

    A case where the baseline is down at rounding for some seed is left out.
    """
    lines: dict[str, dict[str, float]] = {}
    for case, methods in by_case(found).items():
        own = methods.get(baseline, {})
        base = {seed: number(row, error) for seed, row in own.items()}
        floor = NOISE * max((number(r, ERRORS[error]) for r in own.values()), default=0)
        if not base or min(base.values()) < floor:
            print(f"left out: {case}, {baseline} is at rounding")
            continue
        for method in methods.keys() - {baseline}:
            seeds = methods[method]
            pairs = [
                max(number(seeds[seed], error), floor) / base[seed]
                for seed in seeds.keys() & base.keys()
            ]
            lines.setdefault(case, {})[method] = geometric_mean(pairs)
    columns = {m: [line[m] for line in lines.values() if m in line] for m in METHODS}
    ends = {
        "ALL CASES": {m: geometric_mean(v) for m, v in columns.items() if v},
        "WORST CASE": {m: max(v) for m, v in columns.items() if v},
    }
    title = f"{error} / that of {baseline}, geometric means over seeds"
    table(title, lines | ends)


def costs(found: list[Row]) -> None:
    """Kernel evaluations of choosing and of the features, as multiples of n·s."""
    lines: dict[str, dict[str, float]] = {}
    for case, methods in by_case(found).items():
        for method, seeds in methods.items():
            mean = np.mean([number(row, "evaluations") for row in seeds.values()])
            some = next(iter(seeds.values()))
            share = float(mean / (number(some, "n") * number(some, "s")))
            lines.setdefault(case, {})[method] = share
    table("kernel evaluations / (n·s), the features' own 1 included", lines)


def figure() -> None:
    """All tables."""
    found = rows("landmarks")
    for error in ERRORS:
        for baseline in BASELINES:
            ratios(found, error, baseline)
    costs(found)


if __name__ == "__main__":
    figure()

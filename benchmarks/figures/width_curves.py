"""Error against gamma for several numbers of landmarks, and where the rules put it.

A picture of docs/kernels.md.
"""

from __future__ import annotations

import matplotlib.pyplot as plt

from .reading import TITLES, number, rows, save

LINES = {"scale": "tab:gray", "median": "tab:blue", "learn": "tab:green"}


def figure() -> None:
    """One panel per set."""
    found = rows("width_curves")
    sets = list(dict.fromkeys(row["data"] for row in found))
    picture, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for panel, data in zip(panels, sets, strict=True):
        of_set = [row for row in found if row["data"] == data]
        sizes = sorted({int(row["s"]) for row in of_set})
        for place, size in enumerate(sizes):
            line = [r for r in of_set if r["way"] == "number" and int(r["s"]) == size]
            x = [number(row, "times_scale") for row in line]
            y = [number(row, "left") for row in line]
            shade = plt.get_cmap("viridis")(0.9 - 0.35 * place)
            panel.plot(x, y, color=shade, marker=".", lw=1.2, label=f"s = {size}")
        for way, colour in LINES.items():
            at = next(r for r in of_set if r["way"] == way)
            where = number(at, "times_scale")
            panel.axvline(where, color=colour, lw=1, ls="--", label=f'"{way}"')
        panel.set(xscale="log", xlabel='gamma / that of "scale"')
        panel.set_title(f"{TITLES[data]}, 2000 rows", fontsize=9)
    panels[0].set_ylabel("share of the variance left, 5 folds")
    names = panels[0].get_legend_handles_labels()
    picture.legend(*names, loc="outside right center", fontsize=8)
    save(picture, "width_curves")


if __name__ == "__main__":
    figure()

"""Scores and seconds of widths learnt, beside those of the best of a 7 × 7 grid.

The picture of docs/kernels.md: one dot per set, the mean over its splits.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .reading import TITLES, Row, geometric_mean, number, rows, save

#: Colour, marker and offset of each way.
WAYS = {
    "scale": ("tab:gray", "s", 0.24),
    "median": ("tab:blue", "D", 0.12),
    "learn": ("tab:green", "o", 0.0),
    "ard": ("tab:red", "^", -0.12),
    "learn, uniform": ("lightgreen", "o", -0.24),
}


def ratios(found: list[Row], way: str, what: str) -> dict[str, float]:
    """For each set, the mean of a column over that of the grid."""
    by_set: dict[str, dict[str, list[float]]] = {}
    for row in found:
        ways = by_set.setdefault(row["data"], {})
        ways.setdefault(row["way"], []).append(number(row, what))
    return {
        name: float(np.mean(ways[way]) / np.mean(ways["grid"]))
        for name, ways in by_set.items()
    }


def table(found: list[Row]) -> None:
    """Print what the picture shows."""
    sets = sorted({row["data"] for row in found})
    for what in ("score", "took"):
        print(f"\n{what} / that of the grid")
        print(" " * 16 + "".join(f"{name:>15}" for name in sets))
        for way in WAYS:
            all_sets = ratios(found, way, what)
            cells = "".join(f"{all_sets[name]:15.3f}" for name in sets)
            mean = geometric_mean(list(all_sets.values()))
            print(f"{way:16}{cells}   mean {mean:.3f}")


def figure() -> None:
    """Scores on the left, seconds on the right."""
    found = rows("learnt_widths")
    for row in found:
        row["took"] = row["seconds"]
    table(found)
    picture, panels = plt.subplots(
        1, 2, figsize=(10, 4), sharey=True, layout="constrained"
    )
    sets = list(dict.fromkeys(row["data"] for row in found))
    for panel, what in zip(panels, ("score", "took"), strict=True):
        for way, (colour, marker, offset) in WAYS.items():
            values = ratios(found, way, what)
            heights = np.arange(len(sets)) + offset
            x = [values[name] for name in sets]
            looks = {"c": colour, "marker": marker, "label": way}
            panel.scatter(x, heights, 26, **looks, zorder=3)
        panel.axvline(1, color="black", lw=0.8)
        panel.grid(axis="y", color="0.93")
    panels[0].axvline(0.99, color="black", lw=0.8, ls=":")
    panels[1].axvline(1 / 3, color="black", lw=0.8, ls=":")
    names = [TITLES.get(name, name.replace("_", " ")) for name in sets]
    panels[0].set_yticks(np.arange(len(sets)), names)
    panels[0].invert_yaxis()
    panels[0].set_xlabel("score / that of the best of 7 × 7 (dotted: 0.99)")
    panels[1].set(xscale="log", xlabel="seconds / those of the grid (dotted: 1/3)")
    panels[1].set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    panels[1].minorticks_off()
    names_and_marks = panels[0].get_legend_handles_labels()
    picture.legend(*names_and_marks, loc="outside upper center", ncols=5, fontsize=8)
    save(picture, "learnt_widths")


if __name__ == "__main__":
    figure()

"""Calibration curves: how often the class told is right, by the probability told.

The picture of docs/classification.md: a panel per set, a dot per tenth of the answers.
"""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt

from . import reading

LOOKS = {
    "KernelRidgeClassifierCV": ("tab:green", "o"),
    "KernelLogisticRegression": ("tab:red", "^"),
    "GridSearchCV": ("tab:blue", "s"),
}
LABELS = {"GridSearchCV": "scikit-learn's grid search, CalibratedClassifierCV"}
SETS = {"digits": "digits, 10 classes", "cancer": "breast cancer, 2 classes"}
SETS |= {"covertype": "Covertype, 7 classes", "adult": "Adult, 2 classes"}


def panel_of(axes, found: list[reading.Row]) -> None:
    """One set: told against seen, and the error in words."""
    low = min(float(row["told"].split()[0]) for row in found)
    low = min(low, *(float(row["seen"].split()[0]) for row in found)) - 0.03
    axes.plot([low, 1], [low, 1], ":", color="0.5", lw=1)
    for height, row in enumerate(reversed(found)):
        colour, marker = LOOKS[row["method"]]
        told, seen = (np.array(row[k].split(), float) for k in ("told", "seen"))
        label = LABELS.get(row["method"], row["method"])
        axes.plot(told, seen, color=colour, marker=marker, ms=4, lw=1.2, label=label)
        words = f"off by {float(row['calibration_error']):.3f}"
        where = {"transform": axes.transAxes, "ha": "right", "fontsize": 8}
        axes.text(0.97, 0.05 + 0.07 * height, words, color=colour, **where)
    axes.set(xlim=(low, 1.02), ylim=(low, 1.02), xlabel="probability told")
    axes.grid(alpha=0.3)


def figure() -> None:
    """One panel per data set, from results/classification.csv."""
    found = reading.rows("classification")
    drawn, panels = plt.subplots(2, 2, figsize=(9, 7.6), layout="constrained")
    for axes, (name, title) in zip(panels.flat, SETS.items(), strict=True):
        panel_of(axes, [row for row in found if row["data"] == name])
        axes.set_title(title)
        axes.set_ylabel("share that is right")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    drawn.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2)
    reading.save_for_pages(drawn, "calibration")


if __name__ == "__main__":
    figure()

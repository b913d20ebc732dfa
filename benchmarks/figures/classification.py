"""Calibration curves: how often the class told is right, by the probability told."""

from __future__ import annotations

import numpy as np
from matplotlib import pyplot as plt

from . import reading

LOOKS = {
    "KernelRidgeClassifierCV": ("tab:green", "o"),
    "GridSearchCV": ("tab:blue", "s"),
}


def figure() -> None:
    """One panel per data set, from results/classification.csv."""
    found = reading.rows("classification")
    names = list(dict.fromkeys(row["data"] for row in found))
    drawn, panels = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.2))
    for axes, name in zip(np.atleast_1d(panels), names, strict=True):
        axes.plot([0, 1], [0, 1], color="lightgray", lw=1)
        for row in (row for row in found if row["data"] == name):
            colour, marker = LOOKS[row["method"]]
            told, seen = (np.array(row[k].split(), float) for k in ("told", "seen"))
            label = f"{row['method']}, log-loss {float(row['log_loss']):.3f}"
            axes.plot(
                told, seen, color=colour, marker=marker, ms=4, lw=1.2, label=label
            )
        low = min(0.95, *(float(row["told"].split()[0]) for row in found))
        axes.set(xlim=(low - 0.05, 1.01), ylim=(low - 0.05, 1.01), title=name)
        axes.set(xlabel="probability told", ylabel="share that is right")
        axes.legend(fontsize=6, loc="upper left")
    reading.save(drawn, "classification")
    plt.close(drawn)

"""Figure 5: classification error on Covertype, error of the year's regression."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .reading import curves, draw, rows, save


def figure() -> None:
    """Two panels, as in the paper."""
    picture, panels = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    labels = {
        "classification": ("Covertype, class 2 or not, LIBLINEAR", "% wrong"),
        "regression": ("YearPredictionMSD, ridge regression", "RMSE, years"),
    }
    for panel, (experiment, (title, unit)) in zip(panels, labels.items(), strict=True):
        found = rows("paper", experiment=experiment)
        for method, (s, error) in curves(found, "test_error").items():
            draw(panel, method, s, error)
        if found:
            title = f"{title}\n{found[0]['n']} training rows, {found[0]['origin']}"
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="samples s", ylabel=unit, xscale="log")
        sizes = sorted({int(row["s"]) for row in found})
        panel.set_xticks(sizes, [str(size) for size in sizes], fontsize=8)
        panel.minorticks_off()
        panel.legend(fontsize=7)
    save(picture, "figure5")


if __name__ == "__main__":
    figure()

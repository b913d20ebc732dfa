"""The README's pictures: error against time beside peers, and Figure 1.

They are tracked, in docs/images, where the other figures are drawn anew.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .figure1 import DRAWN, clusters, landmarks
from .reading import curves, draw, geometric_mean, log_log, rows, save_for_pages

METHODS = {
    "sklearn": "scikit-learn's Nystroem",
    "plain recursive": "the paper's algorithm, plain NumPy",
    "plain rpcholesky": "RPCholesky, plain NumPy",
    "auto": "nystrom",
}


def error_against_time() -> None:
    """All of Covertype: what a second buys."""
    found = [
        row for row in rows("peers", experiment="covertype") if row["method"] in METHODS
    ]
    errors = curves(found, "spectral_error", geometric_mean)
    seconds = curves(found, "seconds", np.median)
    picture, panel = plt.subplots(figsize=(5, 4.4), layout="constrained")
    for method, name in METHODS.items():
        draw(panel, method, seconds[method][1], errors[method][1])
        panel.lines[-1].set_label(name)
    log_log(panel, "seconds, 581 012 rows", "‖K − K̃‖₂")
    picture.legend(loc="outside upper center", fontsize=12)
    panel.xaxis.label.set_size(12)
    panel.yaxis.label.set_size(12)
    panel.tick_params(labelsize=11)
    save_for_pages(picture, "error_against_time")


def uneven_clusters() -> None:
    """Where 40 landmarks are, of 2000 rows in three clusters."""
    X = clusters()
    picture, panels = plt.subplots(
        1, 3, figsize=(6.4, 2.6), layout="constrained", sharey=True
    )
    names = {"uniform": "uniform", "recursive": "the paper's", "auto": "the default"}
    for panel, sampler in zip(panels, DRAWN, strict=True):
        chosen = landmarks(X, sampler, 0)
        panel.plot(*X.T, ".", color="0.75", markersize=2)
        panel.plot(*X[chosen].T, "o", color="tab:red", markersize=4)
        panel.set(title=names[sampler], xticks=[], yticks=[])
    save_for_pages(picture, "uneven_clusters")


def figure() -> None:
    """Both."""
    error_against_time()
    uneven_clusters()


if __name__ == "__main__":
    figure()

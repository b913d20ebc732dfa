"""Figure 3: ‖K − K̃‖₂ against the seconds that building K̃ takes.

Means of errors, medians of seconds: a busy machine makes a mean of seconds its own.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .reading import TITLES, curves, draw, log_log, rows, save


def figure() -> None:
    """One panel per set; without random features, as in the paper."""
    picture, panels = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for panel, (data, title) in zip(panels, TITLES.items(), strict=True):
        found = rows("paper", experiment=("error", "error, many"), data=data)
        found = [row for row in found if row["method"] != "fourier"]
        errors = curves(found, "spectral_error")
        for method, (_, seconds) in curves(found, "seconds", np.median).items():
            draw(panel, method, seconds, errors[method][1])
        panel.set_title(title, fontsize=9)
        log_log(panel, "seconds", "‖K − K̃‖₂" if panel is panels[0] else "")
    panels[0].legend(fontsize=7)
    save(picture, "figure3")


if __name__ == "__main__":
    figure()

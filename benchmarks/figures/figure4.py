"""Figure 4: time and error of the accelerated variant, and their trade-off."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from .reading import curves, draw, log_log, rows, save

METHODS = ("fourier", "uniform", "recursive", "accelerated", "auto")


def figure() -> None:
    """Three panels, as in the paper."""
    picture, (times, errors, tradeoff) = plt.subplots(
        1, 3, figsize=(12, 3.6), layout="constrained"
    )
    found = rows(
        "paper", experiment=("error", "error, many"), data="covertype", method=METHODS
    )
    for method, (s, seconds) in curves(found, "seconds", np.median).items():
        draw(times, method, s, seconds)
    for method, (s, error) in curves(found, "spectral_error").items():
        draw(errors, method, s, error)
    found = rows(
        "paper", experiment=("error", "error, many"), data="year", method=METHODS
    )
    year = curves(found, "spectral_error")
    for method, (_, seconds) in curves(found, "seconds", np.median).items():
        if method != "fourier":
            draw(tradeoff, method, seconds, year[method][1])
    times.set_title("Covertype, 20 000 rows", fontsize=9)
    sizes = sorted({int(row["s"]) for row in found})
    log_log(times, "samples s", "seconds", sizes)
    errors.set_title("Covertype, 20 000 rows", fontsize=9)
    log_log(errors, "samples s", "‖K − K̃‖₂", sizes)
    tradeoff.set_title("YearPredictionMSD, 7000 rows", fontsize=9)
    log_log(tradeoff, "seconds", "‖K − K̃‖₂")
    times.legend(fontsize=7)
    save(picture, "figure4")


if __name__ == "__main__":
    figure()

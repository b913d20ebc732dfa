"""Figure 2: ‖K − K̃‖₂ against samples, four sets of 20 000 rows, means of 10 trials.

A star marks a part of a set, or a stand-in; results/paper.csv says which.
"""

from __future__ import annotations

import matplotlib.pyplot as plt

from .reading import TITLES, curves, draw, log_log, rows, save

EXPERIMENTS = ("error", "error, many", "greedy")


def figure() -> None:
    """One panel per set."""
    picture, panels = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for panel, (data, title) in zip(panels, TITLES.items(), strict=True):
        found = rows("paper", experiment=EXPERIMENTS, data=data)
        found = [row for row in found if row["method"] != "nothing"]
        for method, (s, error) in curves(found, "spectral_error").items():
            draw(panel, method, s, error)
        if not found:
            continue
        whole = "" if found[0]["origin"] in ("file", "download", "cache") else "*"
        panel.set_title(f"{title}, {found[0]['n']} rows{whole}", fontsize=9)
        sizes = sorted({int(row["s"]) for row in found})
        log_log(panel, "samples s", "‖K − K̃‖₂" if panel is panels[0] else "", sizes)
    names = panels[0].get_legend_handles_labels()
    picture.legend(*names, loc="outside lower center", ncols=7, fontsize=8)
    save(picture, "figure2")


if __name__ == "__main__":
    figure()

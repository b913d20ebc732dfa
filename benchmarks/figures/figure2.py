"""Figure 2: ‖K − K̃‖₂ against samples, four sets of 20 000 rows, means of 10 trials."""

from __future__ import annotations

import matplotlib.pyplot as plt

from .reading import TITLES, curves, draw, rows, save

EXPERIMENTS = ("error", "error-large", "greedy")


def figure() -> None:
    """One panel per set."""
    picture, panels = plt.subplots(1, 4, figsize=(15, 3.6))
    for panel, (data, title) in zip(panels, TITLES.items(), strict=True):
        found = rows("paper", experiment=EXPERIMENTS, data=data)
        found = [row for row in found if row["method"] != "nothing"]
        for method, (s, error) in curves(found, "spectral_error").items():
            draw(panel, method, s, error)
        if not found:
            continue
        n, origin = found[0]["n"], found[0]["origin"]
        part = "" if origin == "file" else f", {origin}"
        panel.set_title(f"{title}\n{n} rows{part}", fontsize=9)
        panel.set(xscale="log", yscale="log", xlabel="samples s")
    panels[0].set_ylabel("‖K − K̃‖₂")
    panels[0].legend(fontsize=7)
    save(picture, "figure2")


if __name__ == "__main__":
    figure()

"""One file per figure or set of tables: each reads a CSV of results/ and draws.

    python3 dev.py bench figures [paper|peers|scaling|landmarks|classification|
        learnt_widths|width_curves|displays|pages]

Pictures go to build/figures/, those of the README and the pages to docs/images/.
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

from . import (
    at_a_glance,
    classification,
    displays,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    landmarks,
    learnt_widths,
    pages,
    peers,
    scaling,
    tables,
    which,
    width_curves,
)

#: What is drawn from which results.
FIGURES = {
    "classification": [classification],
    "displays": [displays],
    "paper": [figure1, figure2, figure3, figure4, figure5, tables, which],
    "landmarks": [landmarks],
    "learnt_widths": [learnt_widths],
    "width_curves": [width_curves],
    "pages": [pages],
    "peers": [peers, at_a_glance],
    "scaling": [scaling],
}

#: What needs none.
WITHOUT_RESULTS = {"displays", "pages"}


def draw(name: str) -> None:
    """All figures and tables of one results file."""
    for module in FIGURES.get(name, []):
        module.figure()

"""All figures whose results are there, or those named."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from figures import FIGURES, WITHOUT_RESULTS, draw
from figures.reading import RESULTS

for name in sys.argv[1:] or FIGURES:
    if name in WITHOUT_RESULTS or (RESULTS / f"{name}.csv").exists():
        draw(name)

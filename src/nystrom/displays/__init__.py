"""Pictures of what was fitted, as scikit-learn's displays: `from_estimator`, `plot`.

A display is made of arrays; `plot(ax=)` draws them with matplotlib (`nystrom[plot]`),
on axes of yours or new ones, and changes nothing else.
"""

from .clusters import ClusterDisplay
from .coverage import CoverageDisplay
from .error_path import ErrorPathDisplay
from .landmark_map import LandmarksDisplay
from .leverage import LeverageDisplay
from .ridge_path import RidgePathDisplay
from .spectrum import SpectrumDisplay

__all__ = [
    "ClusterDisplay",
    "CoverageDisplay",
    "ErrorPathDisplay",
    "LandmarksDisplay",
    "LeverageDisplay",
    "RidgePathDisplay",
    "SpectrumDisplay",
]

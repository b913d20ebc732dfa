"""Plots of fitted models, as scikit-learn's displays: `from_estimator`, `plot`.

A display holds arrays; `plot(ax=)` draws them with matplotlib (`nystrom[plot]`).
"""

from .errors import CoverageDisplay, ErrorPathDisplay, RidgePathDisplay, SpectrumDisplay
from .importances import FeatureImportancesDisplay
from .rows import ClusterDisplay, LandmarksDisplay, LeverageDisplay

__all__ = [
    "ClusterDisplay",
    "CoverageDisplay",
    "ErrorPathDisplay",
    "FeatureImportancesDisplay",
    "LandmarksDisplay",
    "LeverageDisplay",
    "RidgePathDisplay",
    "SpectrumDisplay",
]

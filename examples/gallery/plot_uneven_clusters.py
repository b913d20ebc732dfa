"""
Do uniform landmarks miss small clusters?
=========================================

Three clusters of 1900, 70 and 30 rows, and 40 landmarks. Uniform sampling often misses
the small clusters, ridge leverage scores find them.

When not to use it: if all regions of the data are equally dense, selected and uniform
landmarks are equally good.
"""

import matplotlib.pyplot as plt
import numpy as np

from nystrom import approximate, select_landmarks
from nystrom.displays import LandmarksDisplay

rng = np.random.default_rng(0)
centers = np.repeat([[0, 0], [6, 2], [2, 6]], [1900, 70, 30], axis=0)
X = centers + rng.standard_normal((2000, 2))

figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
for panel, sampler in zip(panels, ["uniform", "recursive", "auto"], strict=True):
    landmarks = select_landmarks(
        X, gamma=1.0, n_landmarks=40, sampler=sampler, random_state=0
    )
    LandmarksDisplay.from_landmarks(landmarks, X, ax=panel)
    error = float(approximate(X, landmarks).relative_trace_error)
    panel.set_title(f"{sampler}: error {error:.3f}")

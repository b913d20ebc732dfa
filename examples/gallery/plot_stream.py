"""
How do I fit a model to a stream of rows?
=========================================

``partial_fit`` keeps landmarks for all rows so far in constant memory. Here the rows
move along a spiral, one batch at a time.

When not to use it: if all rows are available, ``fit`` gives a slightly smaller error.
"""

import matplotlib.pyplot as plt
import numpy as np

from nystrom import Nystroem

rng = np.random.default_rng(0)
angles = np.linspace(0, 3 * np.pi, 24)
model = Nystroem(gamma=0.5, n_components=60, random_state=0)
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
figure.suptitle("rows so far, and 60 landmarks")
seen = np.empty((0, 2))
shown = iter(panels)
for number, angle in enumerate(angles):
    center = angle * np.array([np.cos(angle), np.sin(angle)])
    batch = center + 0.8 * rng.standard_normal((500, 2))
    model.partial_fit(batch)
    seen = np.concatenate([seen, batch])
    if number in (3, 11, 23):
        panel = next(shown)
        panel.plot(*seen[::5].T, ".", color="0.7", markersize=2)
        panel.plot(*model.landmarks_.points.T, ".", color="C1")
        panel.set(title=f"{len(seen)} rows", xlim=(-11, 11), ylim=(-9, 9))

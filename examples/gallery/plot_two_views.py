"""
What do two sets of measurements have in common?
================================================

Two measurements of one hidden angle, each transformed nonlinearly and mixed with noise.
Linear CCA finds little; kernel CCA finds the angle in both.

When not to use it: with few rows it overfits; compare the correlation on new rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import CCA

from nystrom import KernelCCA

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 5000)
X = np.stack([np.cos(angle), np.sin(angle), rng.standard_normal(5000)], axis=1)
Y = np.stack([np.cos(2 * angle), rng.standard_normal(5000)], axis=1)
X, Y = (view + 0.1 * rng.standard_normal(view.shape) for view in (X, Y))

figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
methods = {
    "CCA": CCA(1),
    "KernelCCA": KernelCCA(1, gamma=0.5, n_landmarks=100, alpha=1.0, random_state=0),
}
for panel, (name, method) in zip(panels, methods.items(), strict=True):
    a, b = method.fit(X[:4000], Y[:4000]).transform(X[4000:], Y[4000:])
    panel.scatter(a, b, c=angle[4000:], cmap="twilight", s=8)
    correlation = np.corrcoef(a.ravel(), b.ravel())[0, 1]
    panel.set(title=f"{name}: correlation {correlation:.2f}", xlabel="X", ylabel="Y")

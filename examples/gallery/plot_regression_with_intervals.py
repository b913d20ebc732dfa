"""
Where will new targets lie?
===========================

Kernel ridge regression with prediction intervals. With ``noise=True`` the standard
deviation is that of a new target, without it that of the predicted mean.

When not to use it: if the noise depends on x, these intervals are too wide in some
regions and too narrow in others.
"""

import matplotlib.pyplot as plt
import numpy as np

from nystrom import KernelRidge
from nystrom.displays import CoverageDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-4, 4, (20_000, 1))
y = np.sin(2 * X[:, 0]) / (1 + X[:, 0] ** 2 / 4) + 0.2 * rng.standard_normal(20_000)
train, test = slice(0, 10_000), slice(10_000, None)

model = KernelRidge(0.05, kernel="rbf", gamma=2.0, n_landmarks=100, random_state=0)
model.fit(X[train], y[train])

grid = np.linspace(-5, 5, 400)[:, None]
mean, std = model.predict(grid, return_std=True, noise=True)

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
axes.plot(X[:1500], y[:1500], ".", color="0.7", markersize=2)
axes.plot(grid, mean, label="mean")
low, high = mean - 1.96 * std, mean + 1.96 * std
axes.fill_between(grid[:, 0], low, high, alpha=0.2, label="95 % of new targets")
axes.set(ylim=(-1.6, 1.6), xlabel="x", ylabel="y")
axes.set_title("mean and 95 % interval")
axes.legend()

# %%
# The training rows lie between −4 and 4; beyond them the interval grows. Held-out rows
# show whether 95 % of the targets lie inside. Intervals without noise are for the mean
# and contain few targets.
display = CoverageDisplay.from_estimator(model, X[test], y[test], name="noise=True")
CoverageDisplay.from_estimator(
    model, X[test], y[test], noise=False, ax=display.ax_, name="noise=False"
)
display.ax_.set_title("coverage on held-out rows")

"""
Regression with intervals
=========================

Kernel ridge regression on landmarks, with the deviation of the mean and, by
``noise=True``, of a new target. Only the second is an interval that new targets lie in.
"""

import matplotlib.pyplot as plt
import numpy as np

from nystrom import KernelRidge
from nystrom.displays import CalibrationDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-4, 4, (20_000, 1))
y = np.sin(2 * X[:, 0]) / (1 + X[:, 0] ** 2 / 4) + 0.2 * rng.standard_normal(20_000)
train, test = slice(0, 10_000), slice(10_000, None)

model = KernelRidge(0.05, kernel="rbf", gamma=2.0, n_landmarks=100, random_state=0)
model.fit(X[train], y[train])

grid = np.linspace(-5, 5, 400)[:, None]
mean, std = model.predict(grid, return_std=True)
_, noisy = model.predict(grid, return_std=True, noise=True)

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[2, 1]
)
left.plot(X[:1500], y[:1500], ".", color="0.7", markersize=2)
left.plot(grid, mean, label="mean")
left.fill_between(
    grid[:, 0], mean - 2 * noisy, mean + 2 * noisy, alpha=0.2, label="95 % of targets"
)
left.set(ylim=(-1.6, 1.6), xlabel="x", ylabel="y")
left.legend()

# %%
# Whether they are what they say is seen on rows that the model was not fitted to.
CalibrationDisplay.from_estimator(model, X[test], y[test], ax=right, name="targets")
CalibrationDisplay.from_estimator(
    model, X[test], y[test], noise=False, ax=right, name="mean"
)

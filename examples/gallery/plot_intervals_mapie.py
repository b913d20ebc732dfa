"""
How do I get conformal intervals with MAPIE?
============================================

MAPIE wraps any scikit-learn regressor, ``KernelRidge`` included. Its split conformal
intervals have a coverage guarantee for exchangeable rows.

When not to use it: ``predict(X, interval=0.95)`` needs no extra rows, because it is
calibrated on the training rows, and its width adapts to the density of the data.
"""

import importlib.util

import numpy as np

from nystrom import KernelRidge

rng = np.random.default_rng(0)
X = rng.uniform(-4, 4, (3000, 1))
y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(3000)
X_new = rng.uniform(-4, 4, (1000, 1))
y_new = np.sin(2 * X_new[:, 0]) + 0.2 * rng.standard_normal(1000)

model = KernelRidge(0.05, kernel="rbf", gamma=2.0, n_landmarks=100, random_state=0)
model.fit(X[:2000], y[:2000])

# %%
# The model's own intervals:
lower, upper = model.predict(X_new, interval=0.95)
print("nystrom:", np.mean((lower <= y_new) & (y_new <= upper)), np.mean(upper - lower))

# %%
# MAPIE's, calibrated on 1000 further rows:
if importlib.util.find_spec("mapie"):
    import matplotlib.pyplot as plt
    from mapie.regression import SplitConformalRegressor

    conformal = SplitConformalRegressor(model, confidence_level=0.95, prefit=True)
    conformal.conformalize(X[2000:], y[2000:])
    mean, intervals = conformal.predict_interval(X_new)
    low, high = intervals[:, 0, 0], intervals[:, 1, 0]
    print("MAPIE:", np.mean((low <= y_new) & (y_new <= high)), np.mean(high - low))

    order = X_new[:, 0].argsort()
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(X_new, y_new, ".", color="0.7", markersize=3)
    axes.plot(X_new[order], mean[order])
    axes.fill_between(
        X_new[order, 0], low[order], high[order], alpha=0.2, label="MAPIE"
    )
    axes.plot(X_new[order, 0], lower[order], "k:", label="nystrom")
    axes.plot(X_new[order, 0], upper[order], "k:")
    axes.set(xlabel="x", ylabel="y", title="95 % intervals")
    axes.legend()
else:
    print("MAPIE is not installed (pip install mapie).")

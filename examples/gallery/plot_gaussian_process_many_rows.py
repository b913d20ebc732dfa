"""
How do I fit a Gaussian process to very many rows?
==================================================

Import ``GaussianProcessRegressor`` from ``nystrom`` instead of scikit-learn. Its time
and memory are linear in the number of rows, and it reports bounds on the exact marginal
likelihood. The same lines fit a million rows, from an array or from a file.

When not to use it: for predictions alone, ``KernelRidgeCV`` is faster. If the function
varies on a scale that a few thousand landmarks cannot resolve, use gradient boosting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from nystrom import GaussianProcessRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (20_000, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * rng.standard_normal(len(X))
kernel = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()
model = GaussianProcessRegressor(kernel, n_landmarks=150, random_state=0).fit(X, y)
print(model.kernel_)

# %%
# ``kl_bound_`` is an upper bound on the divergence from the posterior of the exact
# process. ``max_kl=`` selects as many landmarks as are needed for a given bound.
print(model.kl_bound_)

# %%
# A draw is a whole function, here at ten thousand points.
line = np.linspace(-3, 3, 100)
grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
mean, draw = model.predict(grid), model.sample_y(grid, random_state=1)[:, 0]
figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True)
for ax, shown, title in zip(axes, (mean, draw), ("mean", "a draw"), strict=True):
    ax.imshow(shown.reshape(100, 100), extent=(-3, 3, -3, 3), vmin=-1, vmax=1)
    ax.set_title(title)

"""
How do I choose inducing points for GPyTorch?
=============================================

Landmarks are good inducing points for a sparse Gaussian process: they need no
optimiser, and cover small clusters.

When not to use it: with a Gaussian likelihood, ``KernelRidgeCV`` fits the same kind of
model directly, in a fraction of the time.
"""

import importlib.util

import numpy as np

from nystrom import select_landmarks

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-4, 0, (1900, 1)), rng.uniform(3, 4, (100, 1))])
y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(2000)
X_new = np.concatenate([np.linspace(-4, 0, 400), np.linspace(3, 4, 100)])[:, None]
length_scale = 0.5
landmarks = select_landmarks(
    X, gamma=1 / (2 * length_scale**2), n_landmarks=20, random_state=0
)
print(landmarks)

# %%
# A sparse Gaussian process (SGPR) with these points, against uniformly drawn ones:
if importlib.util.find_spec("gpytorch"):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GPyTorch uses deprecated parts of torch
        import gpytorch
        import torch

    class SparseGP(gpytorch.models.ExactGP):
        def __init__(self, rows, targets, points, likelihood):
            super().__init__(rows, targets, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.RBFKernel()
            base.lengthscale = length_scale
            self.covariance = gpytorch.kernels.InducingPointKernel(
                base, inducing_points=points, likelihood=likelihood
            )

        def forward(self, rows):
            normal = gpytorch.distributions.MultivariateNormal
            return normal(self.mean(rows), self.covariance(rows))

    def rmse(points):
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.noise = 0.01
        tensors = (torch.as_tensor(part) for part in (X, y, np.array(points)))
        model = SparseGP(*tensors, likelihood).double().eval()
        with torch.no_grad():
            mean = model(torch.as_tensor(X_new)).mean.numpy()
        return np.sqrt(np.mean((mean - np.sin(3 * X_new[:, 0])) ** 2))

    uniform = X[rng.choice(len(X), 20, replace=False)]
    print("landmarks:", rmse(landmarks.points), "uniform:", rmse(uniform))
else:
    print("GPyTorch is not installed (pip install gpytorch).")

"""
How do I choose inducing points for GPyTorch?
=============================================

Landmarks are good inducing points for a sparse Gaussian process: they need no
optimiser, and cover small clusters. ``GaussianProcessRegressor`` also learns
hyper-parameters to start from.

When not to use it: with a Gaussian likelihood, ``GaussianProcessRegressor`` fits this
model itself, in a fraction of the time.
"""

import importlib.util

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from nystrom import GaussianProcessRegressor


def target(X):
    return np.sin(3 * X[:, 0]) * np.cos(X[:, 1])


rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (3000, 2))
X[:150] += 6  # a small cluster
y = target(X) + 0.1 * rng.standard_normal(len(X))
X_new = X + 0.05 * rng.standard_normal(X.shape)

kernel = ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel()
model = GaussianProcessRegressor(kernel, n_landmarks=50, random_state=0).fit(X, y)
print(model.landmarks_)
print(model.kernel_)

# %%
# GPyTorch's SGPR is trained by Adam. One run starts from these points and
# hyper-parameters, the other from uniform rows and default hyper-parameters. The bound
# is per row. Without any step, the landmarks have a better bound than uniform rows have
# after 40 steps.
if importlib.util.find_spec("gpytorch"):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GPyTorch uses deprecated parts of torch
        import gpytorch
        import torch

    rows, targets = torch.as_tensor(X), torch.as_tensor(y)

    class SparseGP(gpytorch.models.ExactGP):
        def __init__(self, points, likelihood):
            super().__init__(rows, targets, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.scaled = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=2)
            )
            self.covariance = gpytorch.kernels.InducingPointKernel(
                self.scaled, torch.as_tensor(np.array(points)), likelihood
            )

        def forward(self, X):
            normal = gpytorch.distributions.MultivariateNormal
            return normal(self.mean(X), self.covariance(X))

    def train(points, kernel=None, n_steps=40):
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        process = SparseGP(points, likelihood).double()
        if kernel is not None:
            constant, length_x, length_y, noise = np.exp(kernel.theta)
            process.scaled.outputscale, likelihood.noise = constant, noise
            lengths = torch.tensor([length_x, length_y])
            process.scaled.base_kernel.lengthscale = lengths
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
        bounds = []
        for _ in range(n_steps + 1):
            optimizer.zero_grad()
            loss = -objective(process(rows), targets)
            bounds.append(-loss.item())
            loss.backward()
            optimizer.step()
        process.eval()
        with torch.no_grad():
            mean = process(torch.as_tensor(X_new)).mean.numpy()
        error = np.sqrt(np.mean((mean - target(X_new)) ** 2))
        print(f"bound {bounds[0]:.3f} → {bounds[-1]:.3f}, RMSE {error:.3f}")

    uniform = X[rng.choice(len(X), 50, replace=False)]
    print("landmarks, no step:")
    train(model.X_train_, model.kernel_, 0)
    print("landmarks, 40 steps:")
    train(model.X_train_, model.kernel_)
    print("uniform rows, 40 steps:")
    train(uniform)
else:
    print("GPyTorch is not installed (pip install gpytorch).")

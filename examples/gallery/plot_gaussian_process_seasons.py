"""
How do I fit a composite Gaussian-process kernel to a long series?
==================================================================

Sixty years of weekly values with a trend, seasons whose shape drifts, and noise. The
series is generated, in the shape of the record of CO₂ at Mauna Loa
(``fetch_openml(data_id=41187)``), of which scikit-learn's own example uses monthly
means. With landmarks, the fit can use all weeks, and the kernel is the same object.

When not to use it: with at most two thousand values, scikit-learn's class is exact and
fast enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as ExactProcess
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    WhiteKernel,
)

from nystrom import GaussianProcessRegressor

rng = np.random.default_rng(0)
years = np.arange(3120) / 52 + 1958
since = years - 1958
values = 315 + 0.8 * since + 0.013 * since**2
values += (2.5 + 0.02 * since) * np.sin(2 * np.pi * years) + 0.8 * np.sin(
    4 * np.pi * years
)
values += 0.3 * rng.standard_normal(len(years))

trend = ConstantKernel(50.0**2, (1.0, 1e7)) * RBF(50.0)
seasons = 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
kernel = trend + seasons + WhiteKernel(0.1)

known = years < 2008
model = GaussianProcessRegressor(kernel, n_landmarks=150, random_state=0)
mean = values[known].mean()
model.fit(years[known, None], values[known] - mean)
print(model.kernel_)

# %%
# The bounds enclose the log marginal likelihood of the exact process on all weeks.
# scikit-learn's class computes its exact value for the same hyper-parameters, and has
# nearly the same predictions. Each step of its optimiser would take as long as this.
print(model.evidence_bounds_, model.kl_bound_)
exact = ExactProcess(model.kernel_, optimizer=None)
exact.fit(years[known, None], values[known] - mean)
print(exact.log_marginal_likelihood_value_)
gap = model.predict(years[:, None]) - exact.predict(years[:, None])
print(f"largest difference of the means: {np.abs(gap).max():.3f}")

# %%
# The prediction for ten years that were not used for the fit.
predicted, std = model.predict(years[:, None], return_std=True)
late = years > 2000
figure, axes = plt.subplots(figsize=(7, 3))
axes.plot(years[late], values[late], "k.", ms=1, label="weeks")
axes.plot(years[late], predicted[late] + mean, label="mean")
axes.fill_between(
    years[late],
    (predicted + mean - 2 * std)[late],
    (predicted + mean + 2 * std)[late],
    alpha=0.3,
    label="two deviations",
)
axes.axvline(2008, color="grey")
axes.legend()
error = np.sqrt(np.mean((predicted + mean - values)[~known] ** 2))
print(f"root mean squared error ahead: {error:.2f}")

"""
What do I gain by changing the import in my pipeline?
=====================================================

The same class with the same parameters, one import changed: features of the digits from
scikit-learn's uniform landmarks and from selected ones.

When not to use it: if the rows are evenly spread and only predictions matter, uniform
landmarks are as good and cost nothing (``sampler="uniform"``).
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem as Uniform
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import nystrom

X, y = load_digits(return_X_y=True)
sizes = [25, 50, 100, 200, 400, 800]


# %%
# The relative trace error tr(K − K̃)/tr K follows from the features Z, because K̃ = ZZᵀ
# and the rbf kernel has k(x, x) = 1.
def trace_error(Z):
    return 1 - np.mean(np.sum(Z**2, axis=1))


figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for name, Map in (("scikit-learn", Uniform), ("nystrom", nystrom.Nystroem)):
    errors, seconds = [], []
    for size in sizes:
        start = time.perf_counter()
        Z = Map(gamma=0.001, n_components=size, random_state=0).fit_transform(X)
        seconds.append(time.perf_counter() - start)
        errors.append(trace_error(Z))
    panels[0].plot(sizes, errors, "o-", label=name)
    panels[1].plot(seconds, errors, "o-", label=name)
panels[0].set_title("error by number of landmarks")
panels[1].set_title("error by time")
panels[0].set(xlabel="landmarks", ylabel="relative trace error", yscale="log")
panels[1].set(xlabel="seconds", xscale="log")
panels[0].legend()
for panel in panels:
    panel.grid(alpha=0.3)

# %%
# In a pipeline nothing else changes.
features = nystrom.Nystroem(gamma=0.001, n_components=200, random_state=0)
pipeline = make_pipeline(features, RidgeClassifier()).fit(X[:1200], y[:1200])
print("accuracy:", pipeline.score(X[1200:], y[1200:]))
print("relative trace error:", features.approximation_error_)

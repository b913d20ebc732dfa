"""
The import swap
===============

The same class, the same parameters, one import changed: the features of digits by
scikit-learn's uniform landmarks and by chosen ones, and what either leaves of the
kernel matrix.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem as Uniform

import nystrom

X, _ = load_digits(return_X_y=True)
sizes = [25, 50, 100, 200, 400, 800]


# %%
# What is left, tr(K − K̃)/tr K, can be read off the features of either: the rbf kernel
# has k(x, x) = 1, and the squares of a row of Z add up to what K̃ has of it.
def left(Z):
    return 1 - np.mean(np.sum(Z**2, axis=1))


figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for name, Map in (("scikit-learn", Uniform), ("nystrom", nystrom.Nystroem)):
    errors, seconds = [], []
    for size in sizes:
        begun = time.perf_counter()
        Z = Map(gamma=0.001, n_components=size, random_state=0).fit_transform(X)
        seconds.append(time.perf_counter() - begun)
        errors.append(left(Z))
    panels[0].plot(sizes, errors, "o-", label=name)
    panels[1].plot(seconds, errors, "o-", label=name)
panels[0].set_title("what is left of K, by landmarks")
panels[1].set_title("and by seconds")
panels[0].set(xlabel="landmarks", ylabel="relative trace error", yscale="log")
panels[1].set(xlabel="seconds", xscale="log")
panels[0].legend()
for panel in panels:
    panel.grid(alpha=0.3)

"""
How do I train a support vector machine on many rows?
=====================================================

The training time of ``SVC`` grows with the square of the number of rows, or faster. A
``LinearSVC`` on the features of landmarks takes time proportional to the number of
rows.

When not to use it: below about ten thousand rows ``SVC`` is as fast, and exact.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from nystrom import Nystroem

rng = np.random.default_rng(0)
X = rng.standard_normal((17_000, 8))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X)) > 0
models = {
    "SVC": SVC(gamma=0.1),
    "LinearSVC on 300 landmarks": make_pipeline(
        Nystroem(gamma=0.1, n_components=300, random_state=0), LinearSVC(tol=0.01)
    ),
}
sizes = [1000, 4000, 16_000]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, model in models.items():
    seconds, scores = [], []
    for size in sizes:
        start = time.perf_counter()
        model.fit(X[:size], y[:size])
        seconds.append(time.perf_counter() - start)
        scores.append(model.score(X[16_000:], y[16_000:]))
    left.plot(sizes, seconds, "o-", label=name)
    right.plot(sizes, scores, "o-", label=name)
left.set(ylabel="seconds to fit", yscale="log", title="training time")
right.set(ylabel="accuracy on 1000 new rows", title="accuracy")
for panel in (left, right):
    panel.set(xlabel="rows", xscale="log")
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.minorticks_off()
    panel.grid(alpha=0.3)
left.legend()

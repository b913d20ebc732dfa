"""
How many landmarks does a decision boundary need?
=================================================

A ridge classifier on 5, 20 and 100 landmarks separates two moons. Few landmarks give a
coarse boundary.

When not to use it: with fewer than a few thousand rows, an exact ``SVC`` is as fast.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from nystrom import KernelRidgeClassifier

X, y = make_moons(5000, noise=0.2, random_state=0)
figure, panels = plt.subplots(
    1, 3, figsize=(12, 3.8), layout="constrained", sharey=True
)
figure.suptitle("decision boundary and accuracy with 5, 20 and 100 landmarks (stars)")
for panel, size in zip(panels, [5, 20, 100], strict=True):
    model = KernelRidgeClassifier(
        0.1, kernel="rbf", gamma=2.0, n_landmarks=size, random_state=0
    )
    model.fit(X[:4000], y[:4000])
    DecisionBoundaryDisplay.from_estimator(
        model, X, ax=panel, response_method="decision_function", cmap="RdBu", alpha=0.6
    )
    panel.scatter(*X[:600].T, c=y[:600], s=5, cmap="RdBu", vmin=-0.3, vmax=1.3)
    panel.plot(*model.landmarks_.points.T, "k*")
    accuracy = model.score(X[4000:], y[4000:])
    panel.set_title(f"{size} landmarks: {accuracy:.3f}")

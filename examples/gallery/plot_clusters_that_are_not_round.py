"""
How do I cluster 100 000 rows into shapes that are not round?
=============================================================

``KernelKMeans(affinity_normalize=True)`` is spectral clustering without an n × n
matrix.

When not to use it: if clusters are round blobs, scikit-learn's ``KMeans`` is faster.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons

from nystrom import KernelKMeans
from nystrom.displays import ClusterDisplay

X, _ = make_moons(100_000, noise=0.06, random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
labels = KMeans(2, random_state=0).fit_predict(X)
left.scatter(*X[::20].T, c=labels[::20], s=4, cmap="coolwarm")
left.set_title("k-means of the rows")
model = KernelKMeans(
    2, gamma=20, n_landmarks=200, affinity_normalize=True, random_state=0
)
ClusterDisplay.from_estimator(model.fit(X), X, ax=right)
right.set_title("spectral clustering on 200 landmarks")

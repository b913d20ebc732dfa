"""
Clusters that are not round
===========================

Kernel k-means with ``affinity_normalize=True`` cuts the graph whose weights are the
kernel's: spectral clustering, without an n × n matrix.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons

from nystrom import KernelKMeans
from nystrom.displays import ClusterDisplay

X, _ = make_moons(20_000, noise=0.06, random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
labels = KMeans(2, random_state=0).fit_predict(X)
left.scatter(*X[::4].T, c=labels[::4], s=4, cmap="coolwarm")
left.set_title("k-means of the rows")
model = KernelKMeans(
    2, gamma=20, n_landmarks=200, affinity_normalize=True, random_state=0
)
ClusterDisplay.from_estimator(model.fit(X), X, ax=right)
right.set_title("normalised cut on 200 landmarks")

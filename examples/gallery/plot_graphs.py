"""
How do I use a kernel on graphs?
================================

Molecule-like graphs, rings and chains of different lengths, are compared by counts of
the degrees around each vertex (a Weisfeiler–Lehman kernel of two rounds).

When not to use it: if the graphs have good vector embeddings, a kernel on these vectors
is much faster than a function of two graphs.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from nystrom import KernelPCA

rng = np.random.default_rng(0)


def make_graph(is_ring, size):
    """Neighbours of each vertex of a ring or a chain, with a few extra edges."""
    neighbours = [{i - 1, i + 1} for i in range(size)]
    neighbours[0] = {1, size - 1} if is_ring else {1}
    neighbours[-1] = {size - 2, 0} if is_ring else {size - 2}
    for a, b in rng.integers(0, size, (size // 6, 2)):
        if a != b:
            neighbours[a].add(int(b))
            neighbours[b].add(int(a))
    return neighbours


def label_counts(graph):
    labels, counts = [len(around) for around in graph], Counter()
    for _ in range(3):
        counts.update(labels)
        labels = [
            hash((label, *sorted(labels[j] for j in around)))
            for label, around in zip(labels, graph, strict=True)
        ]
    return counts


def weisfeiler_lehman(a, b):
    shared = sum(a[label] * b[label] for label in a.keys() & b.keys())
    norms = (sum(v * v for v in c.values()) for c in (a, b))
    return shared / np.sqrt(np.prod([*norms]))


# %%
# The labels are counted once per graph. A kernel accepts the counters as rows.
is_ring = rng.integers(0, 2, 300).astype(bool)
graphs = [label_counts(make_graph(r, int(rng.integers(12, 25)))) for r in is_ring]
model = KernelPCA(
    2, kernel=weisfeiler_lehman, n_landmarks=50, sampler="rpcholesky", random_state=0
)
places = model.fit_transform(graphs)
print(model.landmarks_)

figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
for name, rows in (("rings", is_ring), ("chains", ~is_ring)):
    axes.plot(*places[rows].T, "o", label=name, alpha=0.6)
axes.set(xlabel="component 0", ylabel="component 1", title="300 graphs")
axes.legend()

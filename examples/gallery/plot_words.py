"""
How do I use a kernel on strings?
=================================

Rows can be any objects that a kernel accepts: here words, compared by the pairs of
letters that they share. Each value is a call of a Python function, so a sampler with
few evaluations is best.

When not to use it: with vectors of numbers, a function of two blocks
(``kernels.blockwise``) is hundreds of times faster.
"""

import keyword
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from nystrom import KernelPCA

words = sorted({*keyword.kwlist, *dir(str), *dir(list), *dir(dict), *dir(np.ndarray)})


def pairs(word):
    padded = f"^{word}$"
    return Counter(pairwise(padded))


def common_pairs(a, b):
    a, b = pairs(a), pairs(b)
    shared = sum((a & b).values())
    return shared / np.sqrt(sum(a.values()) * sum(b.values()))


model = KernelPCA(
    2, kernel=common_pairs, n_landmarks=40, sampler="rpcholesky", random_state=0
)
places = model.fit_transform(words)
print(len(words), "words,", model.landmarks_.n_kernel_evaluations, "evaluations")

# %%
# Words with many pairs in common lie close together. Words that would overlap are not
# drawn.
figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
axes.plot(*places.T, ".", color="0.8")
written = np.empty((0, 2))
for word, place in zip(words, places, strict=True):
    across, up = np.abs(written - place).T
    if np.all((across > 0.1) | (up > 0.02)):
        axes.text(*place, word, fontsize=8)
        written = np.vstack([written, place])
axes.set(xlabel="component 0", ylabel="component 1", title="words by their letters")

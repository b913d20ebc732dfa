"""
A kernel of words
=================

Rows may be anything that a kernel takes: here words, compared by the pairs of letters
that they share. Each evaluation is a call of a Python function, so it pays to make few:
pivoted Cholesky makes the fewest.
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


model = KernelPCA(2, kernel=common_pairs, n_landmarks=40, sampler="rpcholesky")
places = model.fit_transform(words)
print(len(words), "words,", model.landmarks_.n_kernel_evaluations, "evaluations")

figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
axes.plot(*places.T, ".", color="0.8")
for word, (x, y) in list(zip(words, places, strict=True))[:: len(words) // 50]:
    axes.text(x, y, word, fontsize=8)

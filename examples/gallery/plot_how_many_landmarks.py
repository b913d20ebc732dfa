"""
How many landmarks do I need?
=============================

One ``fit_transform`` gives the error of every smaller number of landmarks: landmarks
are ordered by the error that they remove, and the features are nested.

When not to use it: to predict, choose the number by cross-validation instead
(``KernelRidgeCV(n_landmarks=[100, 300])``), because a smaller error of the kernel
matrix does not always improve predictions.
"""

import numpy as np
from sklearn.datasets import load_digits

from nystrom import Nystroem
from nystrom.displays import ErrorPathDisplay

X, _ = load_digits(return_X_y=True)
features = Nystroem(gamma=0.0003, n_components=500, random_state=0)
Z = features.fit_transform(X)

display = ErrorPathDisplay.from_estimator(features, goal=0.05)
display.ax_.set_title("relative trace error on the digits")

# %%
# The smallest number of landmarks with an error of at most five per cent. ``truncate``
# returns the features of the first landmarks without another pass over the rows.
print(display.n_landmarks)
fewer = features.truncate(display.n_landmarks)
print(np.abs(fewer.transform(X) - Z[:, : display.n_landmarks]).max())

# %%
# You can also give the error instead of the number.
wanted = Nystroem(gamma=0.0003, n_components=None, max_trace_error=0.05, random_state=0)
print(wanted.fit_transform(X).shape[1], wanted.approximation_error_)

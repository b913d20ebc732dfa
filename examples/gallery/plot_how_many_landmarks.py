"""
How many landmarks?
===================

One ``fit_transform`` tells the error of every number of landmarks, not only of the one
that was asked for: landmarks are in the order of what they gain, and the features nest.
"""

import numpy as np
from sklearn.datasets import load_digits

from nystrom import Nystroem
from nystrom.displays import ErrorPathDisplay

X, _ = load_digits(return_X_y=True)
features = Nystroem(gamma=0.0003, n_components=500, random_state=0)
Z = features.fit_transform(X)

display = ErrorPathDisplay.from_estimator(features, goal=0.05)
display.ax_.set_title("what is left of K with so many landmarks of digits")

# %%
# For five per cent it takes this many, and the fitted map of the first ones needs no
# other pass over the rows.
print(display.n_landmarks)
fewer = features.truncate(display.n_landmarks)
print(np.abs(fewer.transform(X) - Z[:, : display.n_landmarks]).max())

# %%
# The goal can also be given instead of the number. Landmarks are then chosen in ever
# larger groups until it is reached, which may take a few more.
wanted = Nystroem(gamma=0.0003, n_components=None, max_trace_error=0.05, random_state=0)
print(wanted.fit_transform(X).shape[1], wanted.approximation_error_)

"""
How do I choose alpha, gamma and the number of landmarks?
=========================================================

``KernelRidgeCV`` scores many values of alpha and several numbers of landmarks from one
pass over the rows, with one more pass for each gamma.

When not to use it: with thousands of rows, ``gamma="learn"`` finds gamma without a
grid.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from nystrom import KernelRidgeCV
from nystrom.displays import RidgePathDisplay

X, y = load_diabetes(return_X_y=True)
model = KernelRidgeCV(
    np.logspace(-3, 3, 25),
    kernel="rbf",
    gammas=[0.003, 0.03, 0.3],
    n_landmarks=[10, 40, 160],
    fit_intercept=True,
    cv=5,
    random_state=0,
)
model.fit(scale(X), y)
display = RidgePathDisplay.from_estimator(model)
display.figure_.suptitle("scores over alpha, for three widths and numbers of landmarks")

# %%
# The selected parameters and their score, the negative mean squared error.
print(model.gamma_, model.alpha_, model.n_landmarks_, model.best_score_)

"""
Are the predicted probabilities right?
======================================

Of all predictions with probability 0.8, eight of ten should be right. scikit-learn's
``CalibrationDisplay`` shows it, here for the question whether a noisy digit is odd.

When not to use it: with many rows and overlapping classes,
``KernelLogisticRegression`` has better probabilities than ridge classifiers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from nystrom import KernelLogisticRegression, KernelRidgeClassifier

X, digit = load_digits(return_X_y=True)
X += 6 * np.random.default_rng(0).standard_normal(X.shape)
X, X_new, y, y_new = train_test_split(X, digit % 2, test_size=0.5, random_state=0)

options = {"gamma": 5e-4, "n_landmarks": 100, "random_state": 0}
ridge = KernelRidgeClassifier(0.1, kernel="rbf", **options).fit(X, y)
logistic = KernelLogisticRegression(100.0, **options).fit(X, y)
predicted = {
    "ridge regression, (1 + f)/2": (1 + ridge.decision_function(X_new)) / 2,
    "KernelRidgeClassifier": ridge.predict_proba(X_new)[:, 1],
    "KernelLogisticRegression": logistic.predict_proba(X_new)[:, 1],
}

figure, axes = plt.subplots(figsize=(6.4, 6), layout="constrained")
for name, values in predicted.items():
    odd = np.clip(values, 1e-6, 1 - 1e-6)
    name = f"{name}, log-loss {log_loss(y_new, odd):.2f}"
    CalibrationDisplay.from_predictions(
        y_new, odd, n_bins=8, strategy="quantile", name=name, ax=axes
    )
axes.set(xlabel="predicted probability that it is odd", ylabel="share that is odd")
axes.set_title("calibration on 899 held-out digits")

# %%
# The values of ridge regression are shrunk towards the middle: predictions of 0.7 are
# right more often than that. ``predict_proba`` corrects it with a link that is fitted
# to leave-one-out predictions.

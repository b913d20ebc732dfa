"""
Which rows are unlike all others?
=================================

Ridge leverage scores measure how much a row differs from all others. Their sum, the
effective dimension, is the number of eigenvalues that are large compared with the
ridge λ.

When not to use it: scores depend on gamma, and outliers in unscaled columns hide all
other rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from nystrom import select_landmarks
from nystrom.displays import LeverageDisplay, SpectrumDisplay

X, _ = load_digits(return_X_y=True)
landmarks = select_landmarks(X, gamma=0.0005, n_landmarks=400, random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
SpectrumDisplay.from_landmarks(landmarks, X, ridge=1.0, ax=left)
display = LeverageDisplay.from_landmarks(landmarks, X, ridge=1.0, ax=right)

figure.suptitle("eigenvalues and leverage scores of digits")

# %%
# The two effective dimensions differ, and that of K lies between them. The left one is
# that of K̃. The right one also counts what the landmarks do not explain of each row.
#
# Digits with the smallest and with the largest scores:
figure, panels = plt.subplots(2, 8, figsize=(9, 2.6), layout="constrained")
order = display.scores.argsort()
for row, numbers in zip(panels, (order[:8], order[-8:]), strict=True):
    for panel, number in zip(row, numbers, strict=True):
        panel.imshow(X[number].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"{display.scores[number]:.2f}", fontsize=8)
        panel.set_axis_off()
figure.suptitle("small scores above, large ones below")

"""
Leverage scores and the spectrum
================================

How many directions there are at a given λ, and which rows are like no other.
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
# The two effective dimensions differ, and that of K lies between them: on the left is
# K̃'s; on the right what 400 landmarks leave of a row adds to its score.
#
# The digits that are most like others, and those that are least:
figure, panels = plt.subplots(2, 8, figsize=(9, 2.6), layout="constrained")
order = display.scores.argsort()
for row, numbers in zip(panels, (order[:8], order[-8:]), strict=True):
    for panel, number in zip(row, numbers, strict=True):
        panel.imshow(X[number].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"{display.scores[number]:.2f}", fontsize=8)
        panel.set_axis_off()
figure.suptitle("small scores above, large ones below")

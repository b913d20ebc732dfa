"""
Can kernel PCA remove noise from images?
========================================

Components of clean digits are learnt on landmarks. Projecting noisy digits onto these
components and back removes most of the noise.

When not to use it: for natural images, where neural networks are far better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from nystrom import KernelPCA

X = load_digits().data / 16
rng = np.random.default_rng(0)
noisy = X[1000:] + 0.25 * rng.standard_normal(X[1000:].shape)

model = KernelPCA(
    40,
    kernel="rbf",
    gamma=0.05,
    n_landmarks=300,
    fit_inverse_transform=True,
    alpha=0.01,
    random_state=0,
)
model.fit(X[:1000])
cleaned = model.inverse_transform(model.transform(noisy))

figure, panels = plt.subplots(3, 8, figsize=(9, 3.9), layout="constrained")
figure.suptitle("digits: clean, with noise, and cleaned by 40 components")
for row, pictures in zip(panels, (X[1000:], noisy, cleaned), strict=True):
    for panel, picture in zip(row, pictures, strict=False):
        panel.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        panel.set_axis_off()

# %%
# The distance to the clean pictures, before and after.
for pictures in (noisy, cleaned):
    print(np.sqrt(np.mean((pictures - X[1000:]) ** 2)))

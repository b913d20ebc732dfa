"""The picture of docs/displays.md: every display once, on digits and diabetes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.preprocessing import scale

from nystrom import (
    KernelKMeans,
    KernelLogisticRegression,
    KernelRidge,
    KernelRidgeCV,
    Nystroem,
    displays,
)

from .reading import save_for_pages


def of_digits(panels) -> None:
    """Landmarks, their errors, scores and eigenvalues."""
    X = load_digits().data
    features = Nystroem(gamma=5e-4, n_components=300, random_state=0)
    features.fit_transform(X)
    displays.ErrorPathDisplay.from_estimator(features, goal=0.1, ax=panels[0])
    displays.LandmarksDisplay.from_estimator(
        features, X, features="components", ax=panels[1]
    )
    displays.LeverageDisplay.from_estimator(features, X, ridge=1.0, ax=panels[2])
    displays.SpectrumDisplay.from_estimator(features, X, ridge=1.0, ax=panels[3])


def of_models(panels) -> None:
    """What models are judged by."""
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    search = KernelRidgeCV(
        np.logspace(-3, 3, 25),
        kernel="rbf",
        gamma=0.03,
        n_landmarks=[10, 40, 160],
        fit_intercept=True,
        cv=5,
        random_state=0,
    )
    displays.RidgePathDisplay.from_estimator(search.fit(X, y), axes=panels[0])
    moons, sides = make_moons(4000, noise=0.25, random_state=0)
    clusters = KernelKMeans(3, gamma=5.0, n_landmarks=60, random_state=0).fit(moons)
    displays.ClusterDisplay.from_estimator(clusters, moons, ax=panels[1])
    rng = np.random.default_rng(0)
    wave = np.sin(3 * moons[:, 0]) + 0.3 * rng.standard_normal(4000)
    ridge = KernelRidge(0.1, kernel="rbf", n_landmarks=60, random_state=0)
    ridge.fit(moons[:2000], wave[:2000])
    displays.CoverageDisplay.from_estimator(
        ridge, moons[2000:], wave[2000:], ax=panels[2]
    )
    classes = KernelLogisticRegression(10.0, gamma=1.0, n_landmarks=60, random_state=0)
    classes.fit(moons[:2000], sides[:2000])
    CalibrationDisplay.from_estimator(
        classes, moons[2000:], sides[2000:], n_bins=10, ax=panels[3]
    )


def figure() -> None:
    """One beside the other, each under its name."""
    picture, panels = plt.subplots(4, 2, figsize=(9.6, 15), layout="constrained")
    of_digits(panels.ravel()[:4])
    of_models(panels.ravel()[4:])
    names = ["ErrorPath", "Landmarks", "Leverage", "Spectrum", "RidgePath", "Cluster"]
    names = [f"{name}Display" for name in [*names, "Coverage"]]
    names += ["CalibrationDisplay, of scikit-learn"]
    for panel, name in zip(panels.flat, names, strict=True):
        panel.set_title(name, fontweight="bold", fontsize=11)
        panel.legend(fontsize=8)
    save_for_pages(picture, "displays")


if __name__ == "__main__":
    figure()

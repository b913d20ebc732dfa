"""Every estimator on landmarks beside its exact peer in scikit-learn, on few rows.

With few rows the exact solution, which needs an n × n matrix, is available for
comparison: 200 landmarks come close to it. See many_rows.py for the speed.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.kernel_ridge import KernelRidge as ExactKernelRidge
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from nystrom import (
    KernelCCA,
    KernelKMeans,
    KernelPCA,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Nystroem,
)

LANDMARKS = {"n_landmarks": 200, "random_state": 0}


def timed(f):
    """What f returns, and the seconds it took."""
    start = time.perf_counter()
    return f(), time.perf_counter() - start


def line(what: str, ours, exact) -> None:
    """One line: what is measured, on landmarks and exactly, each (number, seconds)."""
    text = [f"{n:8.4f} {s:7.3f} s" for n, s in (ours, exact)]
    print(f"{what:<46} {text[0]}   {text[1]}")


def main() -> None:
    """A table."""
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    rbf = {"kernel": "rbf", "gamma": 1e-3}
    print(
        "\nFew rows: every estimator with 200 landmarks, beside the exact method\n"
        "Read how close the first number is to the third; all are the better the "
        "higher. On so few\nrows the exact method may well be as fast.\n"
        f"{'':<46} {'200 landmarks':>18}   {'exact':>18}"
    )

    is_round = np.isin(y, (0, 6, 8, 9)).astype(float)
    model = KernelRidgeCV(np.logspace(-4, 2, 13), **rbf, **LANDMARKS)
    fitted, seconds = timed(lambda: model.fit(X[train], is_round[train]))
    theirs = ExactKernelRidge(fitted.alpha_, **rbf)
    exact, exact_seconds = timed(lambda: theirs.fit(X[train], is_round[train]))
    line(
        "KernelRidgeCV, 13 alphas; R² of a held-out part",
        (fitted.score(X[test], is_round[test]), seconds),
        (exact.score(X[test], is_round[test]), exact_seconds),
    )

    classifier = KernelRidgeClassifier(0.1, **rbf, **LANDMARKS)
    svm = make_pipeline(Nystroem(gamma=1e-3, n_components=200, random_state=0))
    svm.steps.append(("svm", LinearSVC()))
    exact, exact_seconds = timed(lambda: SVC(gamma=1e-3).fit(X[train], y[train]))
    for name, model in (("KernelRidgeClassifier", classifier), ("LinearSVC", svm)):
        fitted, seconds = timed(lambda m=model: m.fit(X[train], y[train]))
        line(
            f"{name}; share of right classes",
            (fitted.score(X[test], y[test]), seconds),
            (exact.score(X[test], y[test]), exact_seconds),
        )

    ours, seconds = timed(lambda: KernelPCA(10, **rbf, **LANDMARKS).fit(X))
    exact, exact_seconds = timed(lambda: ExactKernelPCA(10, **rbf).fit(X))
    line(
        "KernelPCA; sum of ten eigenvalues",
        (ours.eigenvalues_.sum(), seconds),
        (exact.eigenvalues_.sum(), exact_seconds),
    )

    moons, which = make_moons(3000, noise=0.06, random_state=0)
    cut = KernelKMeans(2, gamma=50.0, affinity_normalize=True, **LANDMARKS)
    labels, seconds = timed(lambda: cut.fit_predict(moons))
    spectral = SpectralClustering(2, gamma=50.0, random_state=0)
    exact_labels, exact_seconds = timed(lambda: spectral.fit_predict(moons))
    line(
        "KernelKMeans, normalised cut; agreement",
        (adjusted_rand_score(which, labels), seconds),
        (adjusted_rand_score(which, exact_labels), exact_seconds),
    )

    upper, lower = X[:, :32], X[:, 32:]
    pair = KernelCCA(2, gamma=1e-3, **LANDMARKS)
    _, seconds = timed(lambda: pair.fit(upper[train], lower[train]))
    whole = KernelCCA(2, gamma=1e-3, n_landmarks=1200, random_state=0)
    _, exact_seconds = timed(lambda: whole.fit(upper[train], lower[train]))
    line(
        "KernelCCA of both halves; held-out correlation",
        (pair.score(upper[test], lower[test]), seconds),
        (whole.score(upper[test], lower[test]), exact_seconds),
    )
    print(
        "\nWhat to try next, in .venv/bin/python:\n"
        "    from sklearn.datasets import load_digits\n"
        "    from nystrom import Nystroem          # scikit-learn's, with one import\n"
        "    X, y = load_digits(return_X_y=True)\n"
        "    est = Nystroem(gamma=1e-3, n_components=None, max_trace_error=0.3, "
        "verbose=1)\n"
        "    Z = est.fit_transform(X); print(est.landmarks_)"
    )


if __name__ == "__main__":
    main()

"""A case: rows, a kernel, a sampler, a goal and more, made from its number alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lists import (
    DISTANCE_NAMES,
    ENGINES,
    ESTIMATORS,
    GROWING,
    HISTOGRAM_NAMES,
    KERNELS,
    OFF_THE_ROWS,
    RIDGED,
    SAMPLERS,
)
from sklearn.base import clone

from nystrom import kernels
from nystrom.kernels.names import NAMES as KERNEL_NAMES

from .dense import values
from .rows import Rows, random_rows

#: Estimators with kernels by name. GaussianProcessRegressor has scikit-learn's.
FITTED = [each for each in ESTIMATORS if "gamma" in each.get_params()]
#: Words for gamma; two of them need targets.
WIDTHS = ["scale", "median", "learn", "ard"]
SOLVERS = ["auto", "direct", "cg", "full"]


@dataclass(frozen=True, eq=False)
class Case:
    """What a number stands for."""

    number: int
    rows: Rows
    kernel: dict[str, Any]  # kernel=…, gamma=…
    formula: Any  # of two rows, where the kernel has one with these parameters
    options: dict[str, Any]  # sampler, goal, random_state, n_jobs
    weights: np.ndarray | None
    y: np.ndarray
    estimator: Any  # None: landmarks and K̃ by functions
    engine: Any  # makes one, or None
    working_memory: float | None
    seed: int
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def original(self):
        """X as the library gets it."""
        return self.notes.get("matrix", self.rows.original)

    def __str__(self):
        what = "functions"
        if self.estimator is not None:
            changed = {
                name: value
                for name, value in self.estimator.get_params(deep=False).items()
                if value is not None and name not in ("kernel", "verbose")
            }
            what = f"{type(self.estimator).__name__}({changed})"
        parts = [
            f"rows: {self.rows.what}",
            f"kernel: {self.kernel}",
            f"options: {self.options}",
            f"weights: {self.notes['weighing']}",
            f"engine: {self.engine}, working memory: {self.working_memory}",
            f"on: {what}",
        ]
        return "\n  ".join(parts)


def case_of(number: int) -> Case:
    """The case of a number."""
    rng = np.random.default_rng([1, number])
    kernel, formula, histograms = random_kernel(rng)
    sampler = str(rng.choice(SAMPLERS))
    dense = sampler in OFF_THE_ROWS
    slow = kernel.pop("pairs", False)
    rows = random_rows(rng, histograms=histograms, dense=dense, few=slow)
    n, d = rows.exact.shape
    if kernel["kernel"] == "features":
        kernel = {"kernel": kernel["of"], "gamma": tuple(10.0 ** rng.uniform(-3, 1, d))}
    notes: dict[str, Any] = {}
    if kernel["kernel"] == "precomputed":
        K = values(kernel.pop("of"), rows.exact, rows.exact)
        K = (K + K.T) / 2
        with np.errstate(over="ignore"):
            notes["matrix"] = K.astype(np.float32) if rows.narrow else K
    weights, notes["weighing"] = random_weights(rng, n)
    engine = ENGINES[rng.integers(len(ENGINES))] if rng.random() < 0.15 else None
    return Case(
        number=number,
        rows=rows,
        kernel=kernel,
        formula=formula,
        options={
            "sampler": sampler,
            "random_state": int(rng.integers(1000)),
            "n_jobs": int(rng.integers(1, 3)),
            **random_goal(rng, n, sampler),
        },
        weights=weights,
        y=random_targets(rng, rows.exact),
        estimator=random_estimator(rng, n) if rng.random() < 0.7 else None,
        engine=engine,
        working_memory=float(rng.choice([0.01, 1])) if rng.random() < 0.1 else None,
        seed=int(rng.integers(2**31)),
        notes=notes,
    )


def random_kernel(rng) -> tuple[dict[str, Any], Any, bool]:
    """Parameters, the formula where there is one, and whether rows are histograms."""
    kind = str(
        rng.choice(
            [
                "listed",
                "named",
                "features",
                "precomputed",
                "algebra",
                "blocks",
                "pairs",
            ],
            p=[0.5, 0.28, 0.05, 0.06, 0.05, 0.04, 0.02],
        )
    )
    if kind == "named":
        name = str(rng.choice(list(KERNEL_NAMES)))
        params: dict[str, Any] = {"kernel": name}
        takes = KERNEL_NAMES[name].takes
        if "gamma" in takes and rng.random() < 0.8:
            params["gamma"] = float(10.0 ** rng.uniform(-6, 3))
            if rng.random() < 0.2:
                params["gamma"] = str(rng.choice(WIDTHS))
        if "degree" in takes and rng.random() < 0.8:
            params["degree"] = int(rng.integers(1, 5))
            params["coef0"] = float(rng.choice([0.0, 1e-3, 1.0, 10.0]))
        return params, None, name in HISTOGRAM_NAMES
    if kind == "features":  # a width for each, once it is known how many there are
        return {"kernel": kind, "of": str(rng.choice(DISTANCE_NAMES))}, None, False
    listed = KERNELS[rng.integers(len(KERNELS))]
    if kind == "listed":
        return {"kernel": listed.kernel}, listed.formula, listed.histograms
    if kind == "precomputed":
        return {"kernel": kind, "of": listed.kernel}, None, listed.histograms
    if kind == "algebra":
        other = KERNELS[rng.integers(len(KERNELS))]
        scale = float(10.0 ** rng.uniform(-6, 6))
        combine = rng.choice(["sum", "product"])
        if combine == "sum":
            kernel = scale * listed.kernel + other.kernel
        else:
            kernel = scale * listed.kernel * other.kernel
        return {"kernel": kernel}, None, listed.histograms or other.histograms
    if kind == "blocks":
        return {"kernel": kernels.blockwise(listed.kernel)}, None, True
    return {"kernel": listed.formula, "pairs": True}, None, True


def random_goal(rng, n, sampler) -> dict[str, Any]:
    """What says how many landmarks there are to be."""
    size = int(rng.integers(1, min(n, 60) + 2))
    chance = rng.random()
    if sampler in GROWING and chance < 0.35:
        goal = {"max_trace_error": float(10.0 ** rng.uniform(-14, -0.1))}
        cap = {"n_landmarks": size if rng.random() < 0.3 else None}
        return {**goal, **cap}
    if sampler in RIDGED and chance < 0.35:
        goal = {"max_spectral_error": float(10.0 ** rng.uniform(-8, 4))}
        if rng.random() < 0.3:
            goal["delta"] = float(rng.choice([0.01, 0.03]))
        return {**goal, "n_landmarks": size if rng.random() < 0.3 else None}
    if chance < 0.42:
        return {"n_landmarks": size, "epsilon": float(rng.choice([0.1, 0.5, 0.9]))}
    return {"n_landmarks": size}


def random_weights(rng, n) -> tuple[np.ndarray | None, str]:
    """Weights, and what they are."""
    kind = str(
        rng.choice(
            ["none", "ones", "whole", "spread", "wild", "zeros"],
            p=[0.7, 0.04, 0.06, 0.1, 0.04, 0.06],
        )
    )
    if kind == "none":
        return None, kind
    w = {
        "ones": np.ones(n),
        "whole": rng.integers(1, 5, n).astype(float),
        "spread": 10.0 ** rng.uniform(-3, 3, n),
        "wild": 10.0 ** rng.uniform(-30, 30, n),
        "zeros": rng.random(n) * (rng.random(n) < 0.6),
    }[kind]
    if not w.any():
        w[rng.integers(n)] = 1.0
    return w, kind


def random_targets(rng, X) -> np.ndarray:
    """One or several targets, of any size and place, with something to learn."""
    size = np.abs(X).max() or 1.0
    y = np.sin(3 * X[:, 0] / size) + 0.1 * rng.standard_normal(len(X))
    if rng.random() < 0.25:
        y = np.column_stack([y, rng.standard_normal(len(X))])
    scale = 10.0 ** rng.uniform(-8, 8) if rng.random() < 0.2 else 1.0
    away = rng.choice([0.0, 1.0, 1e6], p=[0.7, 0.2, 0.1])
    return scale * (y + away) if rng.random() < 0.95 else np.zeros(len(X))


def random_scoring(rng, classes):
    """What a search may go by: sums over rows, or a scorer of scikit-learn's."""
    if classes:
        return str(
            rng.choice(["accuracy", "balanced_accuracy", "log_loss", "f1_macro"])
        )
    return None if rng.random() < 0.5 else "neg_mean_absolute_error"


def random_estimator(rng, n):
    """One of the package with some of its options changed, by what it has."""
    estimator = clone(FITTED[rng.integers(len(FITTED))])
    has = estimator.get_params(deep=False)
    alpha = float(rng.choice([0.0, 1e-12, 1e-6, 1e-2, 1.0, 1e3]))
    choices = {
        "alpha": max(alpha, 1e-12) if "form" in has else alpha,
        "alphas": tuple(10.0 ** rng.uniform(-10, 3, 3)),
        "solver": str(rng.choice(SOLVERS[:3] if "class_weight" in has else SOLVERS)),
        "C": float(10.0 ** rng.uniform(-8, 8)),
        "class_weight": str(rng.choice(["balanced", ""])) or None,
        "scoring": random_scoring(rng, "class_weight" in has),
        "fit_intercept": bool(rng.integers(2)),
        "center": bool(rng.integers(2)),
        "form": str(rng.choice(["regularized", "paper"])),
        "n_clusters": int(rng.integers(1, min(n, 6) + 1)),
        "cv": None if rng.random() < 0.6 else 2,
        "eigen_solver": str(rng.choice(["auto", "dense", "arpack", "randomized"])),
        "affinity_normalize": bool(rng.random() < 0.3),
        "fit_inverse_transform": bool(rng.random() < 0.2),
    }
    chosen = {name: value for name, value in choices.items() if name in has}
    if "n_components" in has and "n_landmarks" in has:
        chosen["n_components"] = int(rng.integers(1, 5))
    return estimator.set_params(
        **{name: value for name, value in chosen.items() if rng.random() < 0.7}
    )

"""What a ridge will take is told before it is begun, and is about right."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from nystrom import (
    KernelRidge,
    Nystroem,
    engines,
    estimate_n_landmarks,
    kernels,
    select_landmarks,
)
from nystrom.engines import Threads
from nystrom.estimators import _progress
from nystrom.kernels import Linear
from nystrom.samplers import SpectralTolerance
from nystrom.samplers.cost import forecast
from nystrom.sources import as_source

DIGITS = load_digits().data


def clusters(rng):
    sizes = (3000, 400, 100, 40, 20)
    centers = 5 * rng.standard_normal((len(sizes), 4))
    parts = [
        0.1 * rng.standard_normal((size, 4)) + center
        for size, center in zip(sizes, centers, strict=True)
    ]
    return np.concatenate(parts)


#: Rows, gamma and ridge.
CASES = {
    "digits": (lambda rng: DIGITS, 1e-3, 30.0),
    "digits, wide": (lambda rng: DIGITS, 2e-4, 3.0),
    "digits, all": (lambda rng: DIGITS, 1e-3, 0.5),
    "normal": (lambda rng: rng.standard_normal((3000, 3)), 0.3, 3.0),
    "many features": (lambda rng: rng.standard_normal((2000, 9)), 0.1, 20.0),
    "square": (lambda rng: rng.uniform(0, 1, (8000, 2)), 20.0, 5.0),
    "clusters": (clusters, 0.5, 0.3),
    "few": (lambda rng: DIGITS[:300], 1e-3, 3.0),
}


@pytest.mark.parametrize("name", CASES)
def test_landmarks_are_as_many_as_foretold(name, rng, seed):
    make, gamma, ridge = CASES[name]
    X = make(rng)
    found = estimate_n_landmarks(X, gamma=gamma, max_spectral_error=ridge)
    landmarks = select_landmarks(
        X, gamma=gamma, max_spectral_error=ridge, random_state=seed
    )
    assert 0.5 < found.n_landmarks / len(landmarks) < 2
    assert found.seconds > 0
    assert found.n_rows == len(X)
    assert f"about {found.n_landmarks} landmarks of {len(X)} rows" in str(found)


def test_proven_constants_mean_nearly_all_rows(seed):
    """Also where a sixth of them would do in practice."""
    found = estimate_n_landmarks(
        DIGITS, gamma=1e-3, max_spectral_error=30.0, delta=0.01
    )
    assert found.n_landmarks == len(DIGITS)
    assert "(nearly all)" in str(found)
    options = {
        "gamma": 1e-3,
        "max_spectral_error": 30.0,
        "delta": 0.01,
        "random_state": seed,
    }
    assert len(select_landmarks(DIGITS, **options)) == len(DIGITS)


@pytest.mark.parametrize("weight", [None, 3.0])
def test_few_rows_tell_the_dimension_of_all(weight):
    """Ten orthogonal rows, 500 times each: what a sample leaves of them is known."""
    X = np.eye(10)[np.arange(5000) % 10]
    w = None if weight is None else np.full(5000, weight)
    value = 500 * (weight or 1.0)
    for ridge in (100.0, 500.0, 3000.0):
        goal, source = SpectralTolerance(ridge), as_source(X, w)
        found = forecast(Linear(), source, goal, None, Threads(1))
        expected = 10 * value / (value + ridge)
        assert found.effective_dimension == pytest.approx(expected, rel=0.03)


KNOWN = {"gamma": 1e-3, "max_spectral_error": 5.0, "random_state": 0}
RIDGE = {"gamma": 1e-3, "epsilon": 0.5, "random_state": 0, "n_landmarks": None}
FITS = {
    "select_landmarks": lambda X: select_landmarks(X, **KNOWN),
    "Nystroem": lambda X: Nystroem(n_components=None, **KNOWN).fit(X),
    "epsilon": lambda X: KernelRidge(10.0, kernel="rbf", **RIDGE).fit(X, X[:, 20]),
}


@pytest.mark.parametrize("fit", FITS)
def test_it_is_told_before_any_pass(fit):
    engine, told = Threads(1), []
    engine.progress = lambda stage, *_: told.append((stage, list(engine.passes)))
    with engines.using(engine):
        FITS[fit](DIGITS[:400])
    stage, passes = told[0]
    assert stage.startswith("max_spectral_error=5: about ")
    assert " s" in stage
    assert passes == []
    assert engine.passes


def test_who_does_not_listen_does_not_pay(monkeypatch):
    monkeypatch.setattr(_progress, "forecast", None)
    select_landmarks(DIGITS[:300], gamma=1e-3, max_spectral_error=30.0, random_state=0)
    with pytest.raises(TypeError, match="not callable"):
        select_landmarks(
            DIGITS[:300], max_spectral_error=30.0, random_state=0, verbose=1
        )


def test_values_that_are_no_numbers_are_refused():
    """The landmarks' own values are float64, those of other rows float32."""
    X = np.full((20, 2), 1e15, dtype=np.float32)
    kernel = kernels.Polynomial(gamma=1.0, degree=3, coef0=1)
    with pytest.raises(ValueError, match="kernel returned nan or inf"):
        estimate_n_landmarks(X, kernel=kernel, max_spectral_error=1.0)


def test_a_limit_is_part_of_the_forecast():
    source = as_source(DIGITS)
    found = forecast(
        Linear(), source, SpectralTolerance(1.0, at_most=50), None, Threads(1)
    )
    assert found.n_landmarks == 50

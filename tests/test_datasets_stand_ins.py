"""Generated stand-ins: the shape and rough character of a set, the same every time."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from archive_server import MODULES
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from nystrom.datasets import make_stand_in

NAMES = sorted(MODULES)
N_FEATURES = {"adult": 108, "cod_rna": 8, "covertype": 54, "year_prediction_msd": 90}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_samples", [1, 2, 20000])
def test_shape_and_type(name, n_samples):
    got = make_stand_in(name, n_samples=n_samples)
    assert got.data.shape == (n_samples, N_FEATURES[name])
    assert got.target.shape == (n_samples,)
    assert len(got.feature_names) == N_FEATURES[name]
    assert got.data.dtype == np.float32
    assert np.isfinite(got.data).all()
    assert got.origin == "generated stand-in"
    assert got.DESCR.startswith("This is a generated stand-in for")
    assert got.n_rows_whole == MODULES[name].ARCHIVE.n_rows


@pytest.mark.parametrize("name", ["adult", "cod_rna"])
def test_whole_by_default(name):
    assert len(make_stand_in(name).data) == MODULES[name].ARCHIVE.n_rows


@pytest.mark.parametrize("name", NAMES)
def test_deterministic(name):
    first = make_stand_in(name, n_samples=500)
    again = make_stand_in(name, n_samples=500, random_state=0)
    other = make_stand_in(name, n_samples=500, random_state=1)
    np.testing.assert_array_equal(first.data, again.data)
    np.testing.assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.data, other.data)
    for kind in (np.random.RandomState, np.random.default_rng):
        one, two = (
            make_stand_in(name, n_samples=9, random_state=kind(3)) for _ in "ab"
        )
        np.testing.assert_array_equal(one.data, two.data)


@pytest.mark.parametrize("name", NAMES)
def test_standardised_or_raw(name):
    raw = make_stand_in(name, n_samples=3000, preprocess=False, dtype=np.float64).data
    X, y = make_stand_in(name, n_samples=3000, dtype=np.float64, return_X_y=True)
    varies = raw.std(axis=0) > 0
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(X.std(axis=0), varies.astype(float), rtol=1e-9)
    assert len(y) == 3000
    # Columns differ in scale, and hang together.
    scales = raw[:, varies].std(axis=0)
    assert scales.max() > 100 * scales.min()
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(X[:, varies].T))
    assert eigenvalues[-1] > 1.5


def test_covertype_has_its_indicators():
    got = make_stand_in("covertype", n_samples=30000, preprocess=False)
    areas, soils = got.data[:, 10:14], got.data[:, 14:]
    for block in (areas, soils):
        assert set(np.unique(block)) == {0, 1}
        assert (block.sum(axis=1) == 1).all()
    assert set(np.unique(got.target)) == set(range(1, 8))


def test_cod_rna_repeats_its_rows():
    got = make_stand_in("cod_rna", n_samples=10000, preprocess=False)
    assert 0.7 < len(np.unique(got.data, axis=0)) / 10000 < 0.8
    assert set(np.unique(got.target)) == {-1, 1}


def test_years():
    years = make_stand_in("year_prediction_msd", n_samples=20000).target
    assert years.min() >= 1922
    assert years.max() <= 2011
    assert (years == np.rint(years)).all()
    assert np.median(years) > 1990


@pytest.mark.parametrize("name", NAMES)
def test_there_is_something_to_learn(name):
    X, y = make_stand_in(name, n_samples=6000, return_X_y=True)
    years = name == "year_prediction_msd"
    kind = HistGradientBoostingRegressor if years else HistGradientBoostingClassifier
    model = kind(max_iter=30, random_state=0).fit(X[:4000], y[:4000])
    by_chance = 0 if years else np.unique(y, return_counts=True)[1].max() / len(y)
    score = model.score(X[4000:], y[4000:])
    assert by_chance + 0.02 < score < 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mnist"}, "name='mnist' is unknown. Allowed: 'adult', 'cod_rna'"),
        ({"name": "adult", "n_samples": 0}, "n_samples=0"),
        ({"name": "adult", "n_samples": 2.5}, "n_samples=2.5"),
        ({"name": "adult", "dtype": int}, "Allowed: float32, float64"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_stand_in(**arguments)


def test_importing_stays_light():
    code = "import sys, nystrom; print('sklearn.datasets' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"

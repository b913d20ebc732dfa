"""The harness works: every task, method and figure, on few rows. No timings."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import figures  # noqa: E402
import road  # noqa: E402
from figures import reading, scaling  # noqa: E402
from harness import config, data, plain, results  # noqa: E402
from harness.errors import DenseKernel  # noqa: E402
from harness.methods import feature_map  # noqa: E402
from harness.problems import gamma_for, load  # noqa: E402

SMOKE = BENCHMARKS / "configs" / "smoke.toml"


def run(out: Path, *options: str) -> subprocess.CompletedProcess:
    """`dev.py bench smoke`, but for the installation."""
    environment = {**os.environ, "NYSTROM_SCRATCH": str(out.parent / "scratch")}
    command = [sys.executable, str(BENCHMARKS / "run.py"), "smoke", "--out", str(out)]
    return subprocess.run(
        [*command, *options], env=environment, text=True, capture_output=True
    )


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The results of a whole run."""
    out = tmp_path_factory.mktemp("bench") / "smoke.csv"
    done = run(out)
    assert done.returncode == 0, done.stderr
    return out, done.stderr


def test_every_case_has_a_row_or_a_word(smoke):
    out, said = smoke
    wanted = [case for part in config.read(SMOKE) for case in part.cases()]
    found = [results.key(row) for row in results.read(out)]
    assert len(found) == len(set(found))
    missing = {case.method for case in set(wanted) - set(found)}
    for method in missing:
        assert importlib.util.find_spec(method) is None
        assert f"{method} was skipped: {method} is not installed" in said
    assert set(found) <= set(wanted)
    assert f"{len(wanted)}/{len(wanted)}" in said  # the progress bar's end


def test_rows_tell_cost_error_and_versions(smoke):
    rows = results.read(smoke[0])
    for row in rows:
        assert row["nystrom"]
        assert row["numpy"]
        assert row["threads"] in ("1", "2")
        if sys.platform == "linux":
            assert float(row["peak_mb"]) >= 0
        assert reading.number(row, "seconds") > 0
        if row["experiment"] == "approximate" and row["method"] != "fourier":
            assert 0 <= float(row["spectral_error"]) <= 1.001 * float(row["norm"])
        if row["experiment"] in ("learn", "classify"):
            assert 0 <= float(row["test_error"]) <= 100
    ours = [r for r in rows if r["method"] in ("auto", "recursive", "rpcholesky")]
    assert ours
    assert all(int(row["evaluations"]) > 0 for row in ours)


def test_a_killed_run_goes_on(smoke, tmp_path):
    """Rows that were there stay as they are; half a line is cut off."""
    lines = smoke[0].read_text().splitlines(keepends=True)
    out = tmp_path / "smoke.csv"
    kept = lines[:31]
    out.write_text("".join(kept) + lines[31][:40])
    done = run(out, "--only", "approximate")
    assert done.returncode == 0, done.stderr
    again = out.read_text().splitlines(keepends=True)
    assert again[: len(kept)] == kept
    keys = [results.key(row) for row in results.read(out)]
    assert len(keys) == len(set(keys))
    part = next(e for e in config.read(SMOKE) if e.name == "approximate")
    assert set(keys) == set(part.cases())


def test_all_configurations_can_be_read():
    for path in sorted(config.FOLDER.glob("*.toml")):
        cases = [case for part in config.read(path) for case in part.cases()]
        assert len(cases) == len(set(cases)) > 0


def test_tracked_results_have_the_harness_columns():
    for path in config.FOLDER.glob("*.toml"):
        kept = BENCHMARKS / "results" / f"{path.stem}.csv"
        if kept.exists():
            with kept.open(newline="") as file:
                assert next(csv.reader(file)) == results.FIELDS


def test_errors_are_those_of_the_dense_matrix(rng):
    X = rng.normal(size=(150, 3))
    K = DenseKernel(X, 0.5)
    exact = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    np.testing.assert_allclose(K.K, exact, atol=1e-13)
    Zs = [rng.normal(size=(150, 4)), np.linalg.cholesky(exact)[:, :40]]
    wanted = [np.abs(np.linalg.eigvalsh(exact - Z @ Z.T)).max() for Z in Zs]
    np.testing.assert_allclose(K.spectral_errors(Zs), wanted, rtol=1e-6)
    for Z in Zs:
        assert K.trace_error(Z) == pytest.approx(np.trace(exact - Z @ Z.T))


@pytest.mark.parametrize("name", ["plain recursive", "plain rpcholesky", "sklearn"])
def test_peers_are_in_good_health(name):
    """A peer that is broken would make us look good."""
    problem = config.Problem("clusters", 400, "float64", "1/median")
    X = load(problem, None).X
    K = DenseKernel(X, gamma_for(problem, X))
    made = feature_map(name, gamma_for(problem, X), 150, 0).fit(X)
    error = K.spectral_errors([made.transform(X)])[0]
    assert error < 0.02 * K.norm
    assert made.evaluations(len(X)) >= 150 * (150 + len(X))


@pytest.mark.parametrize(("name", "size"), [("recursive", 60), ("rpcholesky", 20)])
def test_plain_peers_find_the_rows_that_count(name, size, rng, seed):
    """Twenty rows far from all others, of 1000: uniform draws hit one or two."""
    X = 0.01 * rng.normal(size=(1000, 2))
    X[-20:] += 100 * np.arange(1, 21)[:, None]
    choose = getattr(plain, f"{name}_landmarks")
    found = choose(X, plain.RBF(0.5), size, seed)
    assert np.count_nonzero(found >= 980) >= 15


def test_exponents_and_their_intervals(rng):
    n = np.array([1e3, 1e4, 1e5, 1e6])
    assert scaling.exponent(n, 3 * n**1.5)[0] == pytest.approx(1.5)
    inside = 0
    for _ in range(200):
        p, half = scaling.exponent(n, n * np.exp(0.1 * rng.normal(size=4)))
        inside += abs(p - 1) <= half
    # 190 of 200 expected; fewer than 172 is a false alarm once in 10⁶.
    assert 172 <= inside <= 200


def test_roads_count_files_functions_and_depth(tmp_path, monkeypatch):
    (tmp_path / "road_a.py").write_text(
        "from road_b import inner\n\ndef outer(n):\n    return [inner(n), inner(n)]\n"
    )
    text = (
        '"""Two lines\nthat do not count."""\n# Nor does this one.\n\ndef inner(n):\n'
    )
    (tmp_path / "road_b.py").write_text(text + "    return inner(n - 1) if n else n\n")
    monkeypatch.syspath_prepend(tmp_path)
    import road_a

    assert road.measure(lambda: road_a.outer(2), tmp_path) == (2, 2, 4, 7)
    assert road.sizes(tmp_path) == {"(package)": (2, 5, 1), "all": (2, 5, 1)}


#: Columns of each set, and values that its target may have.
SETS = {
    "adult": (108, {0, 1}),
    "covertype": (54, set(range(1, 8))),
    "cod_rna": (8, {-1, 1}),
    "year": (90, set(range(1922, 2012))),
}


@pytest.mark.parametrize("name", SETS)
def test_stand_ins_have_the_shape_of_a_set_and_are_always_the_same(name):
    n_columns, values = SETS[name]
    X, y, origin = data.stand_in(name, 3000, np.float64)
    assert X.shape == (3000, n_columns)
    assert set(y) <= values
    assert len(set(y)) >= 2
    assert origin == "generated stand-in"
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-10)
    varies = X.any(axis=0)
    np.testing.assert_allclose(X[:, varies].std(axis=0), 1, rtol=1e-9)
    assert np.linalg.eigvalsh(np.corrcoef(X[:, varies].T))[-1] > 1.5
    np.testing.assert_array_equal(data.stand_in(name, 3000, np.float64).X, X)


@pytest.mark.parametrize("name", ["covertype", "cod_rna", "year"])
def test_sets_are_read_from_files_and_standardised(name, tmp_path, rng):
    n_columns, values = SETS[name]
    X = rng.integers(-5, 5, (300, n_columns))
    X[:, 0] = 7
    y = rng.choice(sorted(values), 300)
    np.savez(tmp_path / data.FILES[name], X=X, y=y)
    table = data.load(name, tmp_path)
    deviations = X - X.mean(axis=0)
    deviations[:, 1:] /= X[:, 1:].std(axis=0)
    np.testing.assert_allclose(table.X, deviations, atol=1e-12)
    np.testing.assert_array_equal(table.y, y)
    assert table.origin == ("7000 of 515345 rows" if name == "year" else "file")


ADULT = """\
age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,\
race,sex,capital-gain,capital-loss,hours-per-week,native-country,income
39,State-gov,77516,Bachelors,13,Single,Clerk,Wife,White,Male,2174,0,40,Cuba,<=50K
50,?,83311,Bachelors,13,Single,Sales,Wife,White,Male,0,0,13,Cuba,>50K
"""


def test_categories_of_adult_become_indicators(tmp_path):
    with gzip.open(tmp_path / "adult.csv.gz", "wt") as file:
        file.write(ADULT)
    X, y, _ = data.load("adult", tmp_path)
    assert y.tolist() == [0, 1]
    # Six numbers, of which two are constant; then workclass, education, occupation…
    assert X[0, :6].tolist() == [-1, -1, 0, 1, 0, 1]
    assert X[0, 6:].tolist() == [-1, 1, 0, 0, 1, -1, 0, 0, 0, 0]
    np.testing.assert_array_equal(X[1], -X[0])


def test_a_set_that_cannot_be_read_or_fetched_is_generated(tmp_path, monkeypatch):
    def no_network(*args, **options):
        raise OSError("no network")

    monkeypatch.setattr(data, "fetch_openml", no_network)
    monkeypatch.setitem(data.N_ROWS, "adult", 20)
    with pytest.warns(UserWarning, match="replaced by generated rows.*no network"):
        table = data.load("adult", tmp_path)
    assert table.origin == "generated stand-in"
    assert table.X.shape == (20, 108)


@pytest.mark.parametrize("name", sorted(figures.FIGURES))
def test_figures_are_drawn_from_tracked_results(name, tmp_path, monkeypatch, capsys):
    kept = BENCHMARKS / "results" / f"{name}.csv"
    if name not in figures.WITHOUT_RESULTS and not kept.exists():
        pytest.skip(f"no {kept.name} yet")
    monkeypatch.setattr(reading, "PICTURES", tmp_path)
    monkeypatch.setattr(reading, "IMAGES", tmp_path / "images")
    monkeypatch.setattr(reading, "BENCHMARKS", tmp_path / "benchmarks")
    monkeypatch.setattr(figures.figure1, "SEEDS", 1)
    monkeypatch.setattr(figures.figure1, "RESULTS", tmp_path)
    figures.draw(name)
    said = capsys.readouterr().out
    assert "nan" not in said.replace("± nan", "")
    for picture in tmp_path.rglob("*.png"):
        assert picture.stat().st_size > 10_000

"""A real notebook: one output for one fit.

Needs nbclient and ipykernel, which are heavy and in no extra: where they are not
installed it is skipped, and `test_bar.py` has the rest.
"""

from __future__ import annotations

import pytest
from terminal import screen

nbformat = pytest.importorskip("nbformat", reason="pip install nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
pytest.importorskip("ipykernel", reason="pip install nbclient ipykernel")

BEGIN = """
import numpy as np
from nystrom import KernelRidge, KernelRidgeCV, select_landmarks
X = np.random.default_rng(0).standard_normal((20_000, 4))
options = {"kernel": "rbf", "random_state": 0, "verbose": 1}
"""
SEARCH = """
KernelRidgeCV(n_landmarks=60, gammas="auto", cv=3, **options).fit(X, X[:, 0])
"""
RIDGE = "select_landmarks(X, max_spectral_error=500.0, random_state=0, verbose=1)"
FAILING = """
try:
    KernelRidge(n_landmarks=60, sampler="wrong", **options).fit(X, X[:, 0])
except ValueError:
    pass
"""


@pytest.fixture(scope="module")
def outputs():
    cells = [nbformat.v4.new_code_cell(c) for c in (BEGIN, SEARCH, RIDGE, FAILING)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells[1:]]


def shown(outputs):
    written = "".join(o.text for o in outputs if o.output_type == "stream")
    return screen(written, columns=200)[:-1]


def test_a_search_is_one_line_of_output(outputs):
    (line,) = shown(outputs[0])
    assert line.startswith("KernelRidgeCV █")
    assert line.endswith(" s")
    assert "100 %" in line


def test_what_a_ridge_takes_has_a_line_of_its_own(outputs):
    note, bar = shown(outputs[1])
    assert note.startswith("max_spectral_error=500: about ")
    assert "100 %" in bar


def test_a_fit_that_fails_says_so(outputs):
    (line,) = shown(outputs[2])
    assert line.endswith(", stopped")

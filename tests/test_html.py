"""What notebooks show says what the text says, and is HTML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from nystrom import Nystroem, approximate, kernels, select_landmarks
from nystrom._html import PLOT_HEIGHT_PX, PLOT_WIDTH_PX, log_line_svg
from nystrom.linalg.errors import TraceError


@pytest.fixture
def X(rng):
    return rng.standard_normal((200, 2))


def text_of(markup):
    """All text of it; fails where tags do not match."""
    return " ".join(ElementTree.fromstring(f"<div>{markup}</div>").itertext())


def test_the_table_says_what_the_text_says(X):
    features = Nystroem(gamma=1.0, n_components=30, random_state=0)
    features.fit_transform(X)
    landmarks = features.landmarks_
    shown = text_of(landmarks._repr_html_())
    for part in str(landmarks).split(", "):
        for word in part.split():
            assert word == "s" or word in shown
    assert "<polyline" in landmarks._repr_html_()
    whole = text_of(approximate(X, landmarks)._repr_html_())
    assert "Approximation of 200 rows" in whole
    assert str(landmarks.error) in text_of(landmarks.error._repr_html_())


def test_no_picture_without_a_path(X):
    landmarks = select_landmarks(X, gamma=1.0, n_landmarks=20, random_state=0)
    assert "<svg" not in landmarks._repr_html_()
    assert "<svg" not in TraceError(0.1, 0.01, 50, exact=False)._repr_html_()


def test_names_of_users_are_text(X):
    kernel = kernels.blockwise(less_than)
    landmarks = select_landmarks(X, kernel=kernel, n_landmarks=5, random_state=0)
    markup = landmarks.replace(notes=("<script>alert(1)</script>",))._repr_html_()
    assert "<script>" not in markup
    assert "<script>alert(1)</script>" in text_of(markup)


def less_than(A, B):
    return A @ B.T + 1.0


def test_the_line_falls_inside_its_frame():
    values = 10.0 ** -np.arange(7)
    markup = log_line_svg(values, "a < b")
    points = re.search(r'points="([^"]*)"', markup).group(1)
    x, y = np.array([p.split(",") for p in points.split()], dtype=float).T
    assert x[0] == y[0] == 2
    assert (x[-1], y[-1]) == (PLOT_WIDTH_PX - 2, PLOT_HEIGHT_PX - 2)
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) >= 0)
    assert "a < b" in text_of(markup)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [1.0, 0.0]], ids=str)
def test_nothing_is_drawn_of_less_than_two(values):
    assert log_line_svg(np.array(values), "") == ""


def test_diagrams_link_to_the_documentation():
    assert Nystroem()._get_doc_link().endswith("/api/nystrom.Nystroem.html")
    assert "nystrom.Nystroem.html" in Nystroem()._repr_html_()

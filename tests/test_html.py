"""What notebooks show says what the text says, and is HTML."""

from xml.etree import ElementTree

import pytest
from sklearn.preprocessing import StandardScaler

from nystrom import (
    BlockwiseTransformer,
    Nystroem,
    approximate,
    kernels,
    select_landmarks,
)


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
    whole = text_of(approximate(X, landmarks)._repr_html_())
    assert "Approximation of 200 rows" in whole


def test_names_of_users_are_text(X):
    kernel = kernels.blockwise(less_than)
    landmarks = select_landmarks(X, kernel=kernel, n_landmarks=5, random_state=0)
    markup = landmarks.replace(notes=("<script>alert(1)</script>",))._repr_html_()
    assert "<script>" not in markup
    assert "<script>alert(1)</script>" in text_of(markup)


def less_than(A, B):
    return A @ B.T + 1.0


@pytest.mark.parametrize(
    "estimator", [Nystroem(), BlockwiseTransformer(StandardScaler())]
)
def test_diagrams_link_to_the_documentation(estimator):
    page = f"nystrom.{type(estimator).__name__}.html"
    assert estimator._get_doc_link().endswith(f"/api/{page}")
    assert page in estimator._repr_html_()

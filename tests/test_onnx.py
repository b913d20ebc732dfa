"""ONNX graphs give what the estimators give, in a runtime that does not know them."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nystrom import (
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    Nystroem,
    export_onnx,
    kernels,
    register_onnx,
)
from nystrom.onnx import KERNEL_FORMULAS

pytest.importorskip("onnx", reason="graphs need nystrom[onnx]")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

KERNELS = [
    kernels.RBF(0.3),
    kernels.RBF((0.3, 0.1, 0.0, 0.5)),
    kernels.Laplacian(0.2),
    kernels.Matern(1.5, nu=0.5),
    kernels.Matern(1.5, nu=1.5),
    kernels.Matern((1.0, 2.0, 3.0, 4.0), nu=2.5),
    kernels.RationalQuadratic(1.3, alpha=0.7),
    kernels.Polynomial(0.5, degree=3, coef0=1.0),
    kernels.Linear(),
    kernels.Cosine(),
    kernels.Mahalanobis(kernels.Matern(1.5), np.tri(4, 3)),
    kernels.RBF(0.3) * 2.0 + kernels.Linear() * kernels.Cosine(),
]


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 4)) + 3.0


@pytest.fixture
def y(X):
    return np.sin(X[:, 0]) + X[:, 1]


def run(model, X, dtype=np.float32):
    """All outputs, by name."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {session.get_inputs()[0].name: X.astype(dtype)})
    return dict(zip(names, found, strict=True))


def close(found, expected, tolerance=1e-5):
    assert found.shape == expected.shape
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=tolerance * float(np.abs(expected).max())
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_kernel(kernel, X, y):
    """A row of zeros too, which no angle is known of."""
    model = KernelRidge(0.1, kernel=kernel, n_landmarks=40, random_state=0).fit(X, y)
    new = np.vstack([X[:50], np.zeros((1, 4))]).astype(np.float32)
    close(run(export_onnx(model), new)["prediction"], model.predict(new))
    found = run(export_onnx(model, dtype="float64"), new, np.float64)["prediction"]
    # Rows that are landmarks but for float32: their distance is the root of rounding.
    rough = isinstance(kernel, kernels.Matern) and kernel.nu == 0.5
    close(found, model.predict(new.astype(np.float64)), 1e-7 if rough else 1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_a_landmark_is_not_below_distance_zero_from_itself(nu, X, y):
    kernel = kernels.Matern(1.5, nu=nu)
    model = KernelRidge(0.1, kernel=kernel, n_landmarks=100, random_state=0).fit(X, y)
    rows = model.landmarks_.points
    found = run(export_onnx(model, dtype="float64"), rows, np.float64)["prediction"]
    close(found, model.predict(rows), 1e-7)


def test_every_writer_is_tried():
    tried = {type(kernel) for kernel in KERNELS} | {kernels.Sigmoid}
    assert {*KERNEL_FORMULAS} <= tried


def test_sigmoid(X, y):
    kernel = kernels.Sigmoid(0.01, coef0=0.1)
    model = KernelRidge(0.1, kernel=kernel, n_landmarks=40, random_state=0)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model.fit(X, y)
    close(run(export_onnx(model), X)["prediction"], model.predict(X))


@pytest.mark.parametrize("n_landmarks", [40, 500], ids=["landmarks", "exact"])
@pytest.mark.parametrize("targets", [1, 2])
def test_ridge(n_landmarks, targets, X, y):
    Y = y if targets == 1 else np.stack([y, y**2], axis=1)
    model = KernelRidge(
        0.1, kernel="rbf", gamma=0.2, n_landmarks=n_landmarks, random_state=0
    ).fit(X, Y)
    X = X.astype(np.float32)
    close(run(export_onnx(model), X)["prediction"], model.predict(X))


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_on_all_rows(intercept, X, y, rng):
    """Its landmarks only precondition: coefficients are those of rows that count."""
    w = rng.integers(0, 3, len(X)) * 1.0
    options = {"kernel": "rbf", "gamma": 0.2, "n_landmarks": 40, "random_state": 0}
    model = KernelRidge(0.1, solver="full", fit_intercept=intercept, **options)
    model.fit(X, y, sample_weight=w)
    found = run(export_onnx(model, dtype="float64"), X, np.float64)["prediction"]
    close(found, model.predict(X), 1e-9)


@pytest.mark.parametrize("n_far", [1, 20, 300])
@pytest.mark.parametrize(
    "kernel", [kernels.RBF(0.2), kernels.Matern(2.0, nu=0.5), kernels.Laplacian(0.1)]
)
def test_far_landmarks_take_no_digits(n_far, kernel, X, y):
    """One moved the centre, and all rows looked alike from there; a far one is near
    itself.
    """
    X[:n_far:2] += 1e8
    X[1:n_far:2] -= 1e8
    options = {"kernel": kernel, "n_landmarks": 60, "random_state": 0}
    model = KernelRidge(0.1, **options).fit(X, y)
    assert np.abs(model.landmarks_.points).max() > 1e7
    found = run(export_onnx(model, dtype="float64"), X, np.float64)["prediction"]
    close(found, model.predict(X), 1e-6)


def test_coefficients_that_cancel_lose_nothing(X, y):
    """alpha far below float32's rounding."""
    model = KernelRidge(
        1e-9, kernel="rbf", gamma=0.01, n_landmarks=60, random_state=0
    ).fit(X, y)
    new = X.astype(np.float32)
    assert np.abs(model.dual_coef_).max() > 1e4
    close(run(export_onnx(model), new)["prediction"], model.predict(new))


def test_features(X):
    model = Nystroem(gamma=0.2, n_components=50, random_state=0).fit(X)
    close(run(export_onnx(model), X)["features"], model.transform(X))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("n_landmarks", [40, 500], ids=["landmarks", "exact"])
def test_components(n_landmarks, center, X):
    model = KernelPCA(
        3,
        kernel="rbf",
        gamma=0.2,
        n_landmarks=n_landmarks,
        center=center,
        random_state=0,
    ).fit(X)
    close(run(export_onnx(model), X)["coordinates"], model.transform(X))


@pytest.mark.parametrize(
    "labels", [[0, 1], [-3, 7, 20], ["no", "yes"], ["a", "b", "c"]]
)
@pytest.mark.parametrize(
    "model",
    [
        KernelRidgeClassifier(0.1, kernel="rbf", gamma=0.2, n_landmarks=40),
        KernelRidgeClassifierCV(gamma=0.2, n_landmarks=40),
        KernelLogisticRegression(gamma=0.2, n_landmarks=40),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classes(model, labels, X, y):
    bounds = np.quantile(y, [0.3, 0.6])[: len(labels) - 1]
    classes = np.array(labels)[np.digitize(y, bounds)]
    model = clone(model).set_params(random_state=0).fit(X, classes)
    new = X.astype(np.float32)
    found = run(export_onnx(model), new)
    np.testing.assert_array_equal(found["label"], model.predict(new))
    close(found["decision"], model.decision_function(new))
    close(found["probability"], model.predict_proba(new))


def test_writes_a_file_or_none(X, y, tmp_path):
    model = KernelRidge(kernel="rbf", n_landmarks=20, random_state=0).fit(X, y)
    made = export_onnx(model, tmp_path / "ridge.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "ridge.onnx")
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_array_equal(found, run(made, X)["prediction"])
    with pytest.raises(TypeError, match="cannot be exported to ONNX"):
        export_onnx(KernelKMeans(2, random_state=0).fit(X), tmp_path / "other.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["ridge.onnx"]


def test_what_has_no_form_is_refused(X, y):
    model = KernelRidge(kernel="chi2", n_landmarks=20, random_state=0).fit(abs(X), y)
    with pytest.raises(ValueError, match=r"Chi2.* cannot be exported to ONNX; use"):
        export_onnx(model)
    with pytest.raises(ValueError, match="dtype='int8' is unknown"):
        export_onnx(model, dtype="int8")
    words = [["a"], ["b"]] * 20
    model = KernelRidge(kernel=len_of_both, n_landmarks=5).fit(words, np.arange(40))
    with pytest.raises(ValueError, match="Models of objects cannot be exp"):
        export_onnx(model)


def len_of_both(a, b):
    return float(a == b)


def test_pipelines_by_skl2onnx():
    skl2onnx = pytest.importorskip("skl2onnx", reason="pipelines need skl2onnx")
    register_onnx()
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    features = Nystroem(gamma=0.01, n_components=60, random_state=0)
    model = make_pipeline(StandardScaler(), features, LogisticRegression(max_iter=500))
    model.fit(X, y)
    made = skl2onnx.to_onnx(model, X[:1], target_opset=18, options={"zipmap": False})
    found = run(made, X)
    assert np.mean(found["label"] == model.predict(X)) > 0.999
    close(found["probabilities"], model.predict_proba(X), 1e-3)


@pytest.mark.parametrize(
    "last",
    [
        KernelRidge(0.1, kernel="rbf", gamma=0.02, n_landmarks=60, random_state=0),
        KernelRidgeClassifier(
            0.1, kernel="rbf", gamma=0.02, n_landmarks=60, random_state=0
        ),
        KernelPCA(3, kernel="rbf", gamma=0.02, n_landmarks=60, random_state=0),
        KernelRidgeClassifierCV(gamma=0.02, n_landmarks=60, random_state=0),
        KernelLogisticRegression(gamma=0.02, n_landmarks=60, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_last_steps_of_pipelines_by_skl2onnx(last):
    skl2onnx = pytest.importorskip("skl2onnx", reason="pipelines need skl2onnx")
    register_onnx()
    X, y = load_digits(return_X_y=True)
    X = X[:600].astype(np.float32)
    scaled = make_column_transformer((StandardScaler(), slice(0, 64)))
    model = make_pipeline(scaled, last).fit(X, y[:600])
    made = skl2onnx.to_onnx(model, X[:1], target_opset=18)
    first = next(iter(run(made, X).values()))
    if is_classifier(last):
        options = {"zipmap": False}
        made = skl2onnx.to_onnx(model, X[:1], target_opset=18, options=options)
        close(run(made, X)["probabilities"], model.predict_proba(X), 1e-3)
    use = model.transform if isinstance(last, KernelPCA) else model.predict
    expected = use(X)
    close(first.reshape(expected.shape).astype(float), expected.astype(float), 1e-4)

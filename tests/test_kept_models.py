"""The model files that users have: those in tests/models load, and answer as before."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nystrom import (
    BlockwiseTransformer,
    GaussianProcessRegressor,
    KernelCCA,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Nystroem,
    kernels,
    load,
    samplers,
    save,
)
from nystrom._model_schema import SAVED_CLASSES, iter_nodes
from nystrom.persistence import FORMAT, ModelFileError

MODELS = Path(__file__).parent / "models"
#: What each kept model is asked for.
METHODS = {
    "nystroem": "transform",
    "proven": "transform",
    "pipeline": "predict",
    "ridge": "predict",
    "exact": "predict",
    "full": "predict",
    "ridge_cv": "predict",
    "classifier": "decision_function",
    "logistic": "predict_proba",
    "classifier_cv": "predict_proba",
    "pca": "transform",
    "kmeans": "transform",
    "cut": "transform",
    "cca": "transform",
    "stream": "predict",
    "blockwise": "transform",
    "process": "predict",
    "process_mapped": "predict",
    "process_exact": "predict",
    "metric": "predict",
    "values": None,
}
#: A distance is the root of a difference: half of the digits are left near 0.
TOLERANCES = {"nystroem": 1e-12, "pipeline": 1e-12}


def write():
    """Write the files that are not there yet; one that is, is never written again.

    In tests: python -c "import test_kept_models; test_kept_models.write()"
    """
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((50, 3)), rng.standard_normal((6, 3))
    for name, model in models(X, np.sin(X[:, 0])).items():
        file = MODELS / f"{name}-format{FORMAT}.nystrom"
        if not file.exists():
            save(model, file)
            answer = answer_of(name, model, new)
            np.savez(file.with_suffix(".npz"), new=new, answer=answer)


def models(X, y):
    """Together they hold one of every class that has a saved name."""
    options = {"gamma": 0.3, "n_landmarks": 5, "random_state": 0}
    rbf = {"kernel": "rbf", **options}
    kernel = kernels.RBF((0.1, 0.2, 0.3)) + 0.5 * kernels.Linear()
    mapped = kernels.Mahalanobis(kernels.Matern(2.0), np.tri(3, 2))
    features = Nystroem(gamma=0.3, n_components=5, random_state=0)
    proven = {"sampler": samplers.Recursive(delta=0.01), "max_spectral_error": 30.0}
    pipeline = make_pipeline(
        StandardScaler(),
        Nystroem(kernel, n_components=5, random_state=0),
        Ridge(alpha=0.1),
    )
    return {
        "nystroem": features.fit(X),
        "proven": Nystroem(n_components=None, random_state=0, **proven).fit(X),
        "pipeline": pipeline.fit(X, y),
        "ridge": KernelRidge(0.1, **rbf).fit(X, y),
        "exact": KernelRidge(0.1, kernel="rbf", gamma=0.3).fit(X, y),
        "full": KernelRidge(0.1, solver="full", **rbf).fit(X, y),
        "ridge_cv": KernelRidgeCV(**rbf).fit(X, y),
        "classifier": KernelRidgeClassifier(**rbf).fit(X, y > 0),
        "logistic": KernelLogisticRegression([0.1, 1.0], **options).fit(X, y > 0),
        "classifier_cv": KernelRidgeClassifierCV(**rbf).fit(X, y > 0),
        "pca": KernelPCA(2, fit_inverse_transform=True, **rbf).fit(X),
        "kmeans": KernelKMeans(2, **options).fit(X),
        "cut": KernelKMeans(2, affinity_normalize=True, **options).fit(X),
        "cca": KernelCCA(2, **options).fit(X, y),
        "stream": KernelRidge(0.1, **rbf).partial_fit(X, y),
        "blockwise": BlockwiseTransformer(StandardScaler()).fit(X),
        "metric": KernelRidge(0.1, kernel=mapped, n_landmarks=5, random_state=0).fit(
            X, y
        ),
        "process": GaussianProcessRegressor(
            gp.RBF() * gp.ConstantKernel() + gp.WhiteKernel(),
            n_landmarks=20,
            random_state=0,
        ).fit(X, y),
        "process_mapped": GaussianProcessRegressor(
            gp.Matern() + gp.WhiteKernel(0.1),
            n_landmarks=20,
            metric="matrix",
            optimizer=None,
            random_state=0,
        ).fit(X, y),
        "process_exact": GaussianProcessRegressor(
            kernels.Laplacian(0.1), alpha=0.1
        ).fit(X, y),
        "values": values(),
    }


def values():
    """All kernels and samplers, in an estimator that cannot be fitted."""
    of_rows = [
        kernels.AdditiveChi2(),
        kernels.Chi2(0.3),
        kernels.Cosine(),
        kernels.Laplacian((0.1, 0.2, 0.3)),
        kernels.Linear(),
        kernels.Matern(2.0, nu=2.5),
        kernels.Polynomial(0.3, degree=2, coef0=2.0),
        kernels.RBF(0.3),
        kernels.RationalQuadratic(2.0, alpha=0.5),
        kernels.Sigmoid(0.3, coef0=0.5),
        kernels.Blockwise(np.inner),
        kernels.Pairwise(np.vdot),
        kernels.RBF(0.3) + 2.0 * kernels.Linear() * kernels.Cosine(),
    ]
    of_numbers = [
        kernels.Precomputed(np.eye(2)),
        kernels.PrecomputedCross(np.ones((2, 2))),
    ]
    rows = [samplers.GivenRows(np.arange(3)), samplers.GivenPoints(np.eye(3))]
    by_name = [make() for make in samplers.NAMES.values()]
    return Nystroem(of_rows, sampler=[*by_name, *rows], kernel_params={"K": of_numbers})


def answer_of(name, model, new):
    """What a model says about new rows: of the values, what every kernel does."""
    if name != "values":
        return getattr(model, METHODS[name])(new)
    return np.array([kernel(abs(new), abs(new)) for kernel in model.kernel])


ignoring_versions = pytest.mark.filterwarnings(
    f"ignore::{InconsistentVersionWarning.__module__}.InconsistentVersionWarning"
)


@ignoring_versions
@pytest.mark.parametrize("name", METHODS)
def test_kept_models_load_and_answer_as_before(name):
    file = MODELS / f"{name}-format2.nystrom"
    model = load(file, trusted=["numpy.inner", "numpy.vdot"])
    with np.load(file.with_suffix(".npz")) as expected:
        answer = answer_of(name, model, expected["new"])
        tolerance = TOLERANCES.get(name, 1e-9)
        np.testing.assert_allclose(
            answer, expected["answer"], rtol=tolerance, atol=tolerance
        )
    if name == "pca":
        assert model.inverse_transform(answer).shape == (6, 3)
    if name in ("ridge", "exact", "full", "ridge_cv", "process", "process_exact"):
        assert np.all(model.predict(np.eye(3), return_std=True)[1] > 0)


def test_every_saved_name_is_in_a_kept_file():
    # So a name that is changed, and not only its class, is found out. For a new row
    # add a model above that holds its class, and call `write`.
    said = set()
    for file in MODELS.glob(f"*-format{FORMAT}.nystrom"):
        with zipfile.ZipFile(file) as archive:
            schema = json.loads(archive.read("schema.json"))
        said |= {
            part["__class__"]
            for _, part in iter_nodes(schema)
            if part["__module__"] == "nystrom"
        }
    assert said == set(SAVED_CLASSES)


def test_the_unreleased_format_is_refused():
    with pytest.raises(
        ModelFileError,
        match=r"has format 1, .* reads format 2\. .* fit the model again and save it\.",
    ):
        load(MODELS / "nystroem-format1.nystrom")

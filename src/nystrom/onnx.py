"""Fitted estimators as ONNX graphs: `export_onnx` writes a file that runs without
Python, `register_onnx` lets skl2onnx convert pipelines.

A graph computes k(x, landmarks)·dual + intercept, and class labels and probabilities
from it. All arithmetic is float64, whatever the type of the inputs and outputs, so that
coefficients that cancel lose no more than in Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from . import _arrays as arrays
from ._precision import EPS64, MAX_DISTANCE_ERROR
from ._validation import import_optional, unknown_name_error
from .estimators._ridge import BaseKernelRidge
from .estimators.kernel_logistic_regression import KernelLogisticRegression
from .estimators.kernel_pca import KernelPCA
from .estimators.kernel_ridge import KernelRidge, KernelRidgeCV
from .estimators.kernel_ridge_classifier import (
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
)
from .estimators.nystroem import Nystroem
from .kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Mahalanobis,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from .kernels.base import Product, Scaled, Sum
from .models.calibration import MAX_DECISION_VALUE, ProbabilityLink
from .sources.output import atomic_write

#: The operators' version: the first in which reductions take their axes as an input.
OPSET = 18
#: The format of the file: the first that has opset 18's operators, read by all runtimes
#: since 2023.
IR_VERSION = 8
#: ONNX's number of each type of element.
TYPE_CODES = {"float32": 1, "float64": 11, "int64": 7, "object": 8}


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
) -> Any:
    """Write a fitted estimator as an ONNX graph, which runs without Python.

    The input is X, of shape (n, n_features); sums are computed in float64. Supported
    kernels are RBF, Laplacian, Matérn, rational quadratic, polynomial, linear, cosine
    and sigmoid, their sums, products and multiples.

    Parameters
    ----------
    estimator : estimator
        A fitted `Nystroem`, `KernelRidge`, `KernelRidgeCV`, classifier or `KernelPCA`.
        For a pipeline see `register_onnx`.
    path : str or path-like, default=None
        File to write; None only returns the model.
    dtype : {"float32", "float64"}, default="float32"
        Type of X and of the outputs.

    Returns
    -------
    model : onnx.ModelProto
        The graph. Its output is "features", "coordinates" or "prediction"; classifiers
        have "label", "probability" and "decision".

    See Also
    --------
    register_onnx : Converters for pipelines.
    save : Model files for Python.

    Examples
    --------
    >>> import numpy as np
    >>> from nystrom import KernelRidge, export_onnx
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (500, 1))
    >>> model = KernelRidge(0.1, kernel="rbf", n_landmarks=30, random_state=0)
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> graph = export_onnx(model)  # doctest: +SKIP
    >>> import onnxruntime  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(  # doctest: +SKIP
    ...     graph.SerializeToString()
    ... )
    >>> session.run(None, {"X": np.float32([[0.5]])})  # doctest: +SKIP
    [array([0.479...], dtype=float32)]
    """
    if dtype not in ("float32", "float64"):
        raise unknown_name_error("dtype", dtype, ["float32", "float64"])
    model = _onnx_model(estimator, dtype)
    if path is not None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(model.SerializeToString())
    return model


def _onnx_model(estimator: Any, dtype: str, *, squeeze: bool = True) -> Any:
    """The graph, checked; `squeeze`: values of one column have one dimension."""
    onnx = import_optional("onnx", "onnx", "export_onnx")
    helper, type_code = onnx.helper, TYPE_CODES[dtype]
    graph = OnnxGraph(helper, onnx.numpy_helper)
    values = affine_values(Value(graph, "X"), estimator)
    classes = onnx_classes(estimator)
    outputs = []

    def add_output(value: Value, name: str, type_code: int, shape: list[Any]) -> None:
        graph.node("Identity", [value.name], name)
        outputs.append(helper.make_tensor_value_info(name, type_code, shape))

    if classes is not None:
        add_output(
            labels(values, classes), "label", TYPE_CODES[classes.dtype.name], ["n"]
        )
        shares = probabilities(values, estimator)
        if shares is not None:
            shape = ["n", len(classes)]
            shares = shares.apply("Cast", to=type_code)
            add_output(shares, "probability", type_code, shape)
        name, single = "decision", len(classes) == 2
    elif is_regressor(estimator):
        name, single = "prediction", bool(estimator._model.ravel)
    else:
        is_features = isinstance(estimator, Nystroem)
        name, single = "features" if is_features else "coordinates", False
    single = single and squeeze
    if single:
        values = values.apply("Squeeze", FEATURES)
    values = values.apply("Cast", to=type_code)
    add_output(values, name, type_code, ["n"] if single else ["n", None])
    shape = ["n", estimator.n_features_in_]
    rows = helper.make_tensor_value_info("X", type_code, shape)
    name = type(estimator).__name__
    model = helper.make_model(
        helper.make_graph(graph.nodes, name, [rows], outputs, graph.constants),
        producer_name="nystrom",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model)
    return model


# -------------------------------------------------------------- graphs and arithmetic


class OnnxGraph:
    """A graph that grows node by node; a value goes by its name."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: np.ndarray) -> str:
        """Add an array to the graph."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(value, name))
        return name

    def node(
        self, operator: str, inputs: list[str], output: str = "", **attributes: Any
    ) -> str:
        """Add an operator; returns the name of its output, a new one by default."""
        output = output or f"v{len(self.nodes)}"
        # skl2onnx takes no nodes without a name.
        node = self.helper.make_node(operator, inputs, [output], output, **attributes)
        self.nodes.append(node)
        return output


class Value:
    """A value in a graph. Arithmetic on it adds nodes; numbers become constants."""

    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph, self.name = graph, name

    def constant(self, value: Any) -> Value:
        """A constant in the same graph: indices and labels as given, else float64."""
        array = np.asarray(value)
        if not isinstance(value, np.ndarray) or array.dtype.kind not in "iO":
            array = array.astype(np.float64)
        return Value(self.graph, self.graph.constant(array))

    def apply(self, operator: str, *others: Any, **attributes: Any) -> Value:
        """An operator of this value and others."""
        inputs = [
            other if isinstance(other, Value) else self.constant(other)
            for other in others
        ]
        names = [self.name, *(value.name for value in inputs)]
        return Value(self.graph, self.graph.node(operator, names, **attributes))

    def __add__(self, other: Any) -> Value:
        return self.apply("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self.apply("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self.apply("Mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self.apply("Div", other)

    def __pow__(self, other: Any) -> Value:
        return self.apply("Pow", other)

    def __matmul__(self, other: Any) -> Value:
        return self.apply("MatMul", other)

    def clip(self, low: float, high: float) -> Value:
        """Between two bounds."""
        return self.apply("Max", low).apply("Min", high)


#: The axis of features, as an input of reductions.
FEATURES = np.array([1], np.int64)


# ------------------------------------------------------------------------- estimators


def affine_map(estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """(dual, intercept): an estimator's output is k(x, points)·dual + intercept."""
    check_is_fitted(estimator)
    if isinstance(estimator, Nystroem):
        dual = arrays.to_host(estimator.normalization_).T
        return dual, np.zeros(dual.shape[1])
    if isinstance(estimator, KernelPCA):
        if estimator._exact is not None:
            return _exact_coordinates(estimator)
        return estimator._map.dual, estimator._map.intercept
    if isinstance(estimator, BaseKernelRidge):
        linear_map = estimator._model.map
        return linear_map.dual, linear_map.intercept
    raise TypeError(
        f"A {type(estimator).__name__} cannot be exported to ONNX; use Nystroem, "
        "KernelRidge, KernelRidgeCV, a classifier or KernelPCA, and "
        "nystrom.register_onnx() for pipelines."
    )


def _exact_coordinates(estimator: KernelPCA) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's own coordinates, of few rows: centred values times directions.

    (k − mean(k) − r + m)·A with the column means r of K and their mean m. The columns
    of A add up to 0, as directions of a centred K do, so that mean(k) drops out.
    """
    sklearn_pca = estimator._exact
    values, vectors = sklearn_pca.eigenvalues_, sklearn_pca.eigenvectors_
    A = np.zeros_like(vectors)
    A[:, values > 0] = vectors[:, values > 0] / np.sqrt(values[values > 0])
    if not estimator.center:
        return A, np.zeros(A.shape[1])
    centerer = sklearn_pca._centerer
    return A, (centerer.K_fit_all_ - centerer.K_fit_rows_) @ A


def affine_values(x: Value, estimator: Any) -> Value:
    """Features, coordinates, predictions or decisions, (n, t) in float64."""
    dual, intercept = affine_map(estimator)
    landmarks = estimator.landmarks_
    # All rows where landmarks only precondition, else the landmarks.
    points = getattr(estimator, "X_fit_", landmarks.points)
    if sp.issparse(points):
        points = points.toarray()
    elif not arrays.is_array(points):
        raise ValueError(
            "Models of objects cannot be exported to ONNX; fit one to rows of numbers."
        )
    points = arrays.to_host(points).astype(np.float64)
    K = kernel_values(x.apply("Cast", to=11), landmarks.kernel, points)
    return K @ dual + intercept


def onnx_classes(estimator: Any) -> np.ndarray | None:
    """The labels of a classifier, as ONNX can store them; None for other estimators."""
    if not is_classifier(estimator):
        return None
    classes = np.asarray(estimator.classes_)
    binarizer = getattr(estimator, "_binarizer", None)
    if str(getattr(binarizer, "y_type_", "")).startswith("multilabel"):
        raise ValueError(
            "Multilabel classifiers cannot be exported to ONNX; export one "
            "classifier per label."
        )
    if classes.dtype.kind in "OUS":
        return np.array([str(label) for label in classes], dtype=object)
    if np.all(classes == np.round(classes)):
        return classes.astype(np.int64)
    raise ValueError(
        "Labels must be whole numbers or text for ONNX; convert them and fit again."
    )


def labels(decisions: Value, classes: np.ndarray) -> Value:
    """The class of each row: the sign of one decision, or the largest of several."""
    if len(classes) == 2:
        above = decisions.apply("Greater", 0.0).apply("Cast", to=TYPE_CODES["int64"])
        class_index = above.apply("Squeeze", FEATURES)
    else:
        class_index = decisions.apply("ArgMax", axis=1, keepdims=0)
    return decisions.constant(classes).apply("Gather", class_index)


def probabilities(decisions: Value, estimator: Any) -> Value | None:
    """(n, classes) in float64, as `predict_proba`; None where there are none."""
    n_classes = len(estimator.classes_)
    if hasattr(estimator, "_links"):
        if estimator._links is None:  # conjugate gradients
            return None
        (link,) = estimator._links
        logits = _link_below_max(decisions, link, n_classes) * link.slopes
    else:  # logistic: the values are log-odds
        logits = decisions
        if n_classes == 2:
            logits = (decisions * 0.0).apply("Concat", decisions, axis=1)
    return logits.apply("Softmax", axis=1)


def _link_below_max(F: Value, link: ProbabilityLink, n_classes: int) -> Value:
    """As `ProbabilityLink`: log softplus of each decision less the row's largest."""
    F = F.clip(-MAX_DECISION_VALUE, MAX_DECISION_VALUE)
    if np.isfinite(link.tail):
        # ±(1 + tail·log(1 + t/tail)) for values ±(1 + t).
        inner = F.clip(-1.0, 1.0)
        excess = F - inner  # with the sign of F
        growth = (excess.apply("Abs") * (1 / link.tail) + 1.0).apply("Log") * link.tail
        F = inner + growth * excess.apply("Sign")
    if n_classes == 2:
        F = F.apply("Neg").apply("Concat", F, axis=1)
    u = (F + 1.0) * np.full(n_classes, link.sharpness)
    g = u.apply("Less", -30.0).apply("Where", u, _softplus(u).apply("Log"))
    return g - g.apply("ReduceMax", FEATURES, keepdims=1)


def _softplus(u: Value) -> Value:
    """log(1 + exp(u)), from −30 on; exp(u) there is still 10⁻¹³ of 1."""
    u = u.apply("Max", -30.0)
    exponential = u.apply("Min", 30.0).apply("Exp")
    logarithm = (exponential + 1.0).apply("Log")
    # Where 1 + exp(u) would lose digits of exp(u), it is exp(u) itself; where exp(u)
    # is far above 1, u.
    below = u.apply("Less", -15.0).apply("Where", exponential, logarithm)
    return u.apply("Greater", 30.0).apply("Where", u, below)


# ---------------------------------------------------------------------------- kernels


def kernel_values(x: Value, kernel: Kernel, points: np.ndarray) -> Value:
    """k(x, points)."""
    if isinstance(kernel, (Sum, Product)):
        left = kernel_values(x, kernel.left, points)
        right = kernel_values(x, kernel.right, points)
        return left + right if isinstance(kernel, Sum) else left * right
    if isinstance(kernel, Scaled):
        return kernel_values(x, kernel.kernel, points) * kernel.factor
    formula = KERNEL_FORMULAS.get(type(kernel))
    if formula is None:
        names = ", ".join(cls.__name__ for cls in KERNEL_FORMULAS)
        raise ValueError(
            f"{kernel} cannot be exported to ONNX; use {names}, or their sums, "
            "products and multiples."
        )
    return formula(x, kernel, points)


def _squared_norms(x: Value) -> Value:
    return x.apply("ReduceSumSquare", FEATURES, keepdims=1)


def _squared_distances(x: Value, points: np.ndarray, scale: Any) -> Value:
    """‖(x − y)·scale‖², of rows moved to the landmarks' centre, where less cancels.

    Where landmarks are far from it, distances are found by differences, which takes
    more memory. So the centre is their median, which few far ones hardly move.
    """
    center = np.median(points, axis=0)
    # One number for each feature: runtimes fold a single one into the product, as a
    # float32.
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), center.shape)
    Y = (points - center) * scales
    X = (x - center) * scales
    far = EPS64 * np.einsum("ij,ij->i", Y, Y) > MAX_DISTANCE_ERROR[np.dtype(np.float64)]
    if far.any():
        return _distances_by_differences(X, Y)
    return _distances_by_products(X, Y)


def _distances_by_products(X: Value, Y: np.ndarray) -> Value:
    squares = _squared_norms(X) + X @ (-2 * Y.T) + np.einsum("ij,ij->i", Y, Y)
    return squares.apply("Max", 0.0)


def _distances_by_differences(X: Value, Y: np.ndarray) -> Value:
    """A number for each row, landmark and feature: for few landmarks."""
    differences = X.apply("Unsqueeze", FEATURES) - Y
    return differences.apply("ReduceSumSquare", FEATURES + 1, keepdims=0)


def _rbf(x: Value, kernel: Any, points: np.ndarray) -> Value:
    return (_squared_distances(x, points, np.sqrt(kernel.gamma)) * -1.0).apply("Exp")


def _matern(x: Value, kernel: Any, points: np.ndarray) -> Value:
    scale = np.sqrt(2 * kernel.nu) / np.asarray(kernel.length_scale)
    squares = _squared_distances(x, points, scale)
    r = squares.apply("Sqrt")
    decay = (r * -1.0).apply("Exp")
    if kernel.nu == 0.5:
        return decay
    if kernel.nu == 2.5:
        return (r + 1.0 + squares / 3.0) * decay
    return (r + 1.0) * decay


def _rational_quadratic(x: Value, kernel: Any, points: np.ndarray) -> Value:
    D = _squared_distances(x, points, 1 / np.asarray(kernel.length_scale))
    return (D / (2 * kernel.alpha) + 1.0) ** -kernel.alpha


def _laplacian(x: Value, kernel: Any, points: np.ndarray) -> Value:
    """Through rows × landmarks × features numbers: for few rows at a time."""
    gamma = np.asarray(kernel.gamma)
    differences = (x * gamma).apply("Unsqueeze", FEATURES) - (points * gamma)[None]
    distances = differences.apply("Abs").apply("ReduceSum", FEATURES + 1, keepdims=0)
    return (distances * -1.0).apply("Exp")


def _linear(x: Value, kernel: Any, points: np.ndarray) -> Value:
    return x @ points.T


def _polynomial(x: Value, kernel: Any, points: np.ndarray) -> Value:
    return (x @ (kernel.gamma * points.T) + kernel.coef0) ** kernel.degree


def _sigmoid(x: Value, kernel: Any, points: np.ndarray) -> Value:
    # Tanh has no float64 form in every runtime: 1 − 2/(1 + exp(2p)).
    P = x @ (kernel.gamma * points.T) + kernel.coef0
    denominator = (P * 2.0).apply("Exp") + 1.0
    return x.constant(1.0) - x.constant(2.0) / denominator


def _cosine(x: Value, kernel: Any, points: np.ndarray) -> Value:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    products = x @ (points / np.where(norms, norms, 1)).T
    # A row of zeros has products of 0 with all: whatever they are divided by.
    return products / _squared_norms(x).apply("Sqrt").apply(
        "Max", np.finfo(np.float64).tiny
    )


def _mahalanobis(x: Value, kernel: Any, points: np.ndarray) -> Value:
    center = np.median(points, axis=0)
    mapped_points = (points - center) @ kernel.transform
    return kernel_values((x - center) @ kernel.transform, kernel.kernel, mapped_points)


KERNEL_FORMULAS: dict[type[Kernel], Callable[[Value, Any, np.ndarray], Value]] = {
    Cosine: _cosine,
    Laplacian: _laplacian,
    Linear: _linear,
    Mahalanobis: _mahalanobis,
    Matern: _matern,
    Polynomial: _polynomial,
    RBF: _rbf,
    RationalQuadratic: _rational_quadratic,
    Sigmoid: _sigmoid,
}


# --------------------------------------------------------------------------- skl2onnx


def register_onnx() -> None:
    """Register converters of this package's estimators with skl2onnx.

    Call it once. `skl2onnx.to_onnx(pipeline, X[:1])` then accepts pipelines with these
    estimators.

    See Also
    --------
    export_onnx : Write a single estimator.

    Examples
    --------
    >>> import nystrom
    >>> nystrom.register_onnx()  # doctest: +SKIP
    >>> graph = skl2onnx.to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    skl2onnx = import_optional("skl2onnx", "onnx", "register_onnx")
    classifiers = (
        KernelRidgeClassifier,
        KernelRidgeClassifierCV,
        KernelLogisticRegression,
    )
    for cls in (Nystroem, KernelPCA, KernelRidge, KernelRidgeCV, *classifiers):
        # What skl2onnx asks of every classifier.
        options = {"zipmap": [True, False, "columns"], "nocl": [True, False]}
        skl2onnx.update_registered_converter(
            cls,
            f"Nystrom{cls.__name__}",
            _set_output_types,
            _convert,
            options=options if cls in classifiers else None,
        )


def _set_output_types(operator: Any) -> None:
    """The types and shapes of the outputs."""
    types = import_optional("skl2onnx.common.data_types", "onnx", "register_onnx")
    model = operator.raw_operator
    n = operator.inputs[0].get_first_dimension()
    classes = onnx_classes(model)
    width = affine_map(model)[0].shape[1]
    is_double = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    tensor_type = types.DoubleTensorType if is_double else types.FloatTensorType
    if classes is not None:
        width = len(classes)
        is_text = classes.dtype == np.dtype(object)
        label = types.StringTensorType if is_text else types.Int64TensorType
        operator.outputs[0].type = label([n])
    operator.outputs[-1].type = tensor_type([n, width])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    types = import_optional("skl2onnx.common.data_types", "onnx", "register_onnx")
    name = "skl2onnx.helpers.integration"
    integration = import_optional(name, "onnx", "register_onnx")
    estimator = operator.raw_operator
    # skl2onnx gives every classifier probabilities.
    if getattr(estimator, "_links", ()) is None:
        raise ValueError(
            f"This {type(estimator).__name__} has no probabilities, because conjugate "
            "gradients compute none; fit with solver='direct'."
        )
    is_double = isinstance(operator.outputs[-1].type, types.DoubleTensorType)
    dtype = "float64" if is_double else "float32"
    model = _onnx_model(estimator, dtype, squeeze=False)
    integration.add_onnx_graph(scope, operator, container, model)

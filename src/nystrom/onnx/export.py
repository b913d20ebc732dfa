"""`export_onnx`: a fitted estimator as a file that runs without Python;
`register_onnx`: converters for skl2onnx.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from .._validation import import_optional, unknown_name_error
from ..estimators.kernel_logistic_regression import KernelLogisticRegression
from ..estimators.kernel_pca import KernelPCA
from ..estimators.kernel_ridge import KernelRidge
from ..estimators.kernel_ridge_classifier import KernelRidgeClassifier
from ..estimators.kernel_ridge_classifier_cv import KernelRidgeClassifierCV
from ..estimators.kernel_ridge_cv import KernelRidgeCV
from ..estimators.nystroem import Nystroem
from ..sources.output_files import atomic_write
from .estimators import (
    affine_map,
    label_nodes,
    onnx_classes,
    output_nodes,
    probability_nodes,
)
from .kernels import OPSET, NodeBuilder, OnnxNodeBuilder

#: ONNX's numbers of types.
TYPE_CODES = {"float32": 1, "float64": 11}
#: The format of the file: the first that has opset 18's operators, read by all runtimes
#: since 2023.
IR_VERSION = 8


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
) -> Any:
    """Write a fitted estimator as an ONNX graph, which runs without Python.

    Rows come in as X, of shape (n, n_features); sums are made in float64. Kernels are
    RBF, Laplacian, Matérn, rational quadratic, polynomial, linear, cosine and sigmoid,
    their sums, products and multiples.

    Parameters
    ----------
    estimator : estimator
        A fitted `Nystroem`, `KernelRidge`, `KernelRidgeCV`, classifier or `KernelPCA`.
        For a pipeline see `register_onnx`.
    path : str or path, default=None
        The file to write; None: only return the model.
    dtype : {"float32", "float64"}, default="float32"
        The type of X and of what comes out.

    Returns
    -------
    model : onnx.ModelProto
        With one output, "features", "coordinates" or "prediction"; of classifiers
        "label", "probability" and "decision".

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
    if dtype not in TYPE_CODES:
        raise unknown_name_error("dtype", dtype, list(TYPE_CODES))
    onnx = import_optional("onnx", "onnx", "export_onnx")
    helper, type_code = onnx.helper, TYPE_CODES[dtype]
    nodes = OnnxNodeBuilder(helper, onnx.numpy_helper)
    outputs_name = output_nodes(nodes, "X", estimator)
    classes = onnx_classes(estimator)
    outputs = []
    if classes is not None:
        nodes.name_output(label_nodes(nodes, outputs_name, classes), "label")
        text = classes.dtype == np.dtype(object)
        outputs.append(helper.make_tensor_value_info("label", 8 if text else 7, ["n"]))
        probability_name = probability_nodes(nodes, outputs_name, estimator)
        if probability_name is not None:
            nodes.name_output(
                nodes.node("Cast", probability_name, to=type_code), "probability"
            )
            shape = ["n", len(classes)]
            value_info = helper.make_tensor_value_info("probability", type_code, shape)
            outputs.append(value_info)
    name, single = _output_name(estimator, classes)
    if single:
        outputs_name = nodes.node(
            "Squeeze", outputs_name, nodes.constant([1], np.int64)
        )
    nodes.name_output(nodes.node("Cast", outputs_name, to=type_code), name)
    shape = ["n"] if single else ["n", None]
    outputs.append(helper.make_tensor_value_info(name, type_code, shape))
    rows = helper.make_tensor_value_info(
        "X", type_code, ["n", estimator.n_features_in_]
    )
    graph = helper.make_graph(
        nodes.nodes, type(estimator).__name__, [rows], outputs, nodes.constants
    )
    model = helper.make_model(
        graph,
        producer_name="nystrom",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model)
    if path is not None:
        with atomic_write(path) as beside:
            beside.write_bytes(model.SerializeToString())
    return model


def _output_name(estimator: Any, classes: np.ndarray | None) -> tuple[str, bool]:
    """What comes out is called, and whether it is one number per row."""
    if classes is not None:
        return "decision", len(classes) == 2
    if is_regressor(estimator):
        return "prediction", bool(estimator._model.ravel)
    name = type(estimator).__name__
    return ("features" if name == "Nystroem" else "coordinates"), False


CLASSIFIERS = (KernelRidgeClassifier, KernelRidgeClassifierCV, KernelLogisticRegression)
CONVERTED_ESTIMATORS = (Nystroem, KernelPCA, KernelRidge, KernelRidgeCV, *CLASSIFIERS)
#: ONNX's number of each type of element.
ELEMENT_TYPE_CODES = {"float64": 11, "int64": 7, "object": 8}
#: What skl2onnx asks of every classifier.
CLASSIFIER_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}


class Skl2OnnxNodeBuilder(NodeBuilder):
    """Into a graph that skl2onnx makes."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        array = np.array(value, dtype=dtype)
        name = self.scope.get_unique_variable_name("nystrom_c")
        text = array.dtype == np.dtype(object)
        values = [v.encode() for v in array.ravel()] if text else array.ravel().tolist()
        element = ELEMENT_TYPE_CODES[array.dtype.name]
        self.container.add_initializer(name, element, list(array.shape), values)
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self.scope.get_unique_variable_name("nystrom_v")
        self._add(operator, list(inputs), name, **attributes)
        return name

    def name_output(self, value: str, name: str) -> None:
        """Let a value go out by this name."""
        self._add("Identity", [value], name)

    def _add(self, operator: str, inputs: list[str], output: str, **more: Any) -> None:
        self.container.add_node(
            operator,
            inputs,
            [output],
            op_version=OPSET,
            name=self.scope.get_unique_operator_name("nystrom"),
            **more,
        )


def register_onnx() -> None:
    """Tell skl2onnx how this package's estimators are converted.

    Call it once; then `skl2onnx.to_onnx(pipeline, X[:1])` takes pipelines that have
    them as steps, or at the end.

    Examples
    --------
    >>> import nystrom
    >>> nystrom.register_onnx()  # doctest: +SKIP
    >>> graph = skl2onnx.to_onnx(pipeline, X[:1])  # doctest: +SKIP
    """
    skl2onnx = import_optional("skl2onnx", "onnx", "register_onnx")
    for cls in CONVERTED_ESTIMATORS:
        options = (
            {"zipmap": [True, False, "columns"], "nocl": [True, False]}
            if cls is KernelRidgeClassifier
            else None
        )
        skl2onnx.update_registered_converter(
            cls, f"Nystrom{cls.__name__}", _set_output_types, _convert, options=options
        )


def _set_output_types(operator: Any) -> None:
    """What goes out: its type and shape."""
    types = import_optional("skl2onnx.common.data_types", "onnx", "register_onnx")
    model = operator.raw_operator
    n = operator.inputs[0].get_first_dimension()
    classes = onnx_classes(model)
    width = affine_map(model).dual.shape[1]
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
    model = operator.raw_operator
    nodes = Skl2OnnxNodeBuilder(scope, container)
    values = output_nodes(nodes, operator.inputs[0].full_name, model)
    classes = onnx_classes(model)
    if classes is not None:
        label = label_nodes(nodes, values, classes)
        nodes.name_output(label, operator.outputs[0].full_name)
        values = _probabilities_or_raise(nodes, values, model)
    is_double = isinstance(operator.outputs[-1].type, types.DoubleTensorType)
    output = nodes.node("Cast", values, to=11 if is_double else 1)
    nodes.name_output(output, operator.outputs[-1].full_name)


def _probabilities_or_raise(nodes: NodeBuilder, decisions: str, model: Any) -> str:
    """skl2onnx gives every classifier probabilities."""
    shares = probability_nodes(nodes, decisions, model)
    if shares is None:
        raise ValueError(
            f"This {type(model).__name__} has no probabilities, which conjugate "
            "gradients do not give; fit with solver='direct'."
        )
    return shares

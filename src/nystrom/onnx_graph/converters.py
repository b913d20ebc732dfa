"""`register_onnx`: pipelines with estimators of this package, by skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.kernel_logistic_regression import KernelLogisticRegression
from ..estimators.kernel_pca import KernelPCA
from ..estimators.kernel_ridge import KernelRidge
from ..estimators.kernel_ridge_classifier import KernelRidgeClassifier
from ..estimators.kernel_ridge_classifier_cv import KernelRidgeClassifierCV
from ..estimators.kernel_ridge_cv import KernelRidgeCV
from ..estimators.nystroem import Nystroem
from ..optional import library
from .estimator_nodes import affine_of, checked_classes, class_labels, results
from .nodes import OPSET, Nodes
from .probability_nodes import probabilities

CLASSIFIERS = (KernelRidgeClassifier, KernelRidgeClassifierCV, KernelLogisticRegression)
CONVERTED = (Nystroem, KernelPCA, KernelRidge, KernelRidgeCV, *CLASSIFIERS)
#: ONNX's number of each type of element.
ELEMENTS = {"float64": 11, "int64": 7, "object": 8}
#: What skl2onnx asks of every classifier.
OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False]}


class TheirNodes(Nodes):
    """Into a graph that skl2onnx makes."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        array = np.array(value, dtype=dtype)
        name = self.scope.get_unique_variable_name("nystrom_c")
        text = array.dtype == np.dtype(object)
        values = [v.encode() for v in array.ravel()] if text else array.ravel().tolist()
        element = ELEMENTS[array.dtype.name]
        self.container.add_initializer(name, element, list(array.shape), values)
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self.scope.get_unique_variable_name("nystrom_v")
        self._add(operator, list(inputs), name, **attributes)
        return name

    def called(self, value: str, name: str) -> None:
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
    skl2onnx = library("skl2onnx", "onnx", "register_onnx")
    for cls in CONVERTED:
        options = (
            {"zipmap": [True, False, "columns"], "nocl": [True, False]}
            if cls is KernelRidgeClassifier
            else None
        )
        skl2onnx.update_registered_converter(
            cls, f"Nystrom{cls.__name__}", _shapes, _convert, options=options
        )


def _shapes(operator: Any) -> None:
    """What goes out: its type and shape."""
    types = library("skl2onnx.common.data_types", "onnx", "register_onnx")
    model = operator.raw_operator
    n = operator.inputs[0].get_first_dimension()
    classes = checked_classes(model)
    width = affine_of(model).dual.shape[1]
    wide = isinstance(operator.inputs[0].type, types.DoubleTensorType)
    numbers = types.DoubleTensorType if wide else types.FloatTensorType
    if classes is not None:
        width = len(classes)
        text = classes.dtype == np.dtype(object)
        label = types.StringTensorType if text else types.Int64TensorType
        operator.outputs[0].type = label([n])
    operator.outputs[-1].type = numbers([n, width])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    types = library("skl2onnx.common.data_types", "onnx", "register_onnx")
    model = operator.raw_operator
    nodes = TheirNodes(scope, container)
    found = results(nodes, operator.inputs[0].full_name, model)
    classes = checked_classes(model)
    if classes is not None:
        label = class_labels(nodes, found, classes)
        nodes.called(label, operator.outputs[0].full_name)
        found = _shares(nodes, found, model)
    wide = isinstance(operator.outputs[-1].type, types.DoubleTensorType)
    narrowed = nodes.node("Cast", found, to=11 if wide else 1)
    nodes.called(narrowed, operator.outputs[-1].full_name)


def _shares(nodes: Nodes, decisions: str, model: Any) -> str:
    """skl2onnx gives every classifier probabilities."""
    found = probabilities(nodes, decisions, model)
    if found is None:
        raise ValueError(
            f"This {type(model).__name__} has no probabilities, which conjugate "
            "gradients do not give; fit with solver='direct'."
        )
    return found

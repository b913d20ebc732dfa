"""`export_onnx`: a fitted estimator as a file that runs without Python."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from ..optional import library
from ..refusals import unknown
from ..sinks import replacing
from .estimator_nodes import checked_classes, class_labels, results
from .nodes import OPSET, OwnNodes
from .probability_nodes import probabilities

#: ONNX's numbers of types.
TYPES = {"float32": 1, "float64": 11}
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
    if dtype not in TYPES:
        raise unknown("dtype", dtype, list(TYPES))
    onnx = library("onnx", "onnx", "export_onnx")
    helper, kind = onnx.helper, TYPES[dtype]
    nodes = OwnNodes(helper, onnx.numpy_helper)
    found = results(nodes, "X", estimator)
    classes = checked_classes(estimator)
    outputs = []
    if classes is not None:
        nodes.called(class_labels(nodes, found, classes), "label")
        text = classes.dtype == np.dtype(object)
        outputs.append(helper.make_tensor_value_info("label", 8 if text else 7, ["n"]))
        shares = probabilities(nodes, found, estimator)
        if shares is not None:
            nodes.called(nodes.node("Cast", shares, to=kind), "probability")
            shape = ["n", len(classes)]
            made = helper.make_tensor_value_info("probability", kind, shape)
            outputs.append(made)
    name, single = _output_of(estimator, classes)
    if single:
        found = nodes.node("Squeeze", found, nodes.constant([1], np.int64))
    nodes.called(nodes.node("Cast", found, to=kind), name)
    shape = ["n"] if single else ["n", None]
    outputs.append(helper.make_tensor_value_info(name, kind, shape))
    rows = helper.make_tensor_value_info("X", kind, ["n", estimator.n_features_in_])
    graph = helper.make_graph(
        nodes.made, type(estimator).__name__, [rows], outputs, nodes.constants
    )
    model = helper.make_model(
        graph,
        producer_name="nystrom",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model)
    if path is not None:
        with replacing(path) as beside:
            beside.write_bytes(model.SerializeToString())
    return model


def _output_of(estimator: Any, classes: np.ndarray | None) -> tuple[str, bool]:
    """What comes out is called, and whether it is one number per row."""
    if classes is not None:
        return "decision", len(classes) == 2
    if is_regressor(estimator):
        return "prediction", bool(estimator._model.ravel)
    name = type(estimator).__name__
    return ("features" if name == "Nystroem" else "coordinates"), False

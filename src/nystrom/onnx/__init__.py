"""Fitted estimators as ONNX graphs: `export_onnx`, and `register_onnx` for pipelines
through skl2onnx.
"""

from .export import export_onnx, register_onnx

__all__ = ["export_onnx", "register_onnx"]

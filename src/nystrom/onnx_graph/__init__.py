"""Fitted estimators as ONNX graphs, by `export_onnx`, or in pipelines by skl2onnx."""

from .converters import register_onnx
from .exporting import export_onnx

__all__ = ["export_onnx", "register_onnx"]

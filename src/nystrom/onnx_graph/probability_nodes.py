"""Probabilities of classes as nodes, from the values of a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..methods.link import LARGEST, Link
from .nodes import Nodes


def probabilities(nodes: Nodes, decisions: str, estimator: Any) -> str | None:
    """(n, classes) in float64, as `predict_proba`; None where there are none."""
    logits = _logits(nodes, decisions, estimator)
    return None if logits is None else nodes.node("Softmax", logits, axis=1)


def _logits(nodes: Nodes, decisions: str, estimator: Any) -> str | None:
    if not hasattr(estimator, "_links"):  # logistic: the values are log-odds
        return _beside_zero(nodes, decisions, len(estimator.classes_))
    if estimator._links is None:  # conjugate gradients
        return None
    (link,) = estimator._links
    below = _below_the_top(nodes, decisions, link, len(estimator.classes_))
    return nodes.node("Mul", below, nodes.constant(link.slopes))


def _beside_zero(nodes: Nodes, decisions: str, n_classes: int) -> str:
    if n_classes > 2:
        return decisions
    nothing = nodes.node("Mul", decisions, nodes.constant(0.0))
    return nodes.node("Concat", nothing, decisions, axis=1)


def _below_the_top(nodes: Nodes, F: str, link: Link, n_classes: int) -> str:
    """As `methods.link.below_the_top`."""
    F = nodes.node("Max", F, nodes.constant(-LARGEST))
    F = nodes.node("Min", F, nodes.constant(LARGEST))
    if np.isfinite(link.tail):
        F = _with_tail(nodes, F, link.tail)
    if n_classes == 2:
        other = nodes.node("Neg", F)
        F = nodes.node("Concat", other, F, axis=1)
    one_more = nodes.node("Add", F, nodes.constant(1.0))
    u = nodes.node("Mul", one_more, nodes.constant(np.full(n_classes, link.sharpness)))
    g = nodes.node("Log", _softplus(nodes, u))
    far = nodes.node("Less", u, nodes.constant(-30.0))
    g = nodes.node("Where", far, u, g)
    top = nodes.node("ReduceMax", g, nodes.constant([1], np.int64), keepdims=1)
    return nodes.node("Sub", g, top)


def _with_tail(nodes: Nodes, F: str, tail: float) -> str:
    """±(1 + tail·log(1 + t/tail)) for values ±(1 + t)."""
    inner = nodes.node("Max", F, nodes.constant(-1.0))
    inner = nodes.node("Min", inner, nodes.constant(1.0))
    excess = nodes.node("Sub", F, inner)  # with the sign of F
    grown = nodes.node("Mul", nodes.node("Abs", excess), nodes.constant(1 / tail))
    logs = nodes.node("Log", nodes.node("Add", grown, nodes.constant(1.0)))
    rest = nodes.node("Mul", logs, nodes.constant(tail))
    rest = nodes.node("Mul", rest, nodes.node("Sign", excess))
    return nodes.node("Add", inner, rest)


def _softplus(nodes: Nodes, u: str) -> str:
    """log(1 + exp(u)), from −30 on; exp(u) there is still 10⁻¹³ of 1."""
    u = nodes.node("Max", u, nodes.constant(-30.0))
    grown = nodes.node("Exp", nodes.node("Min", u, nodes.constant(30.0)))
    small = nodes.node("Log", nodes.node("Add", grown, nodes.constant(1.0)))
    # Where 1 + exp(u) would lose digits of exp(u), it is exp(u) itself; where exp(u)
    # is far above 1, u.
    tiny = nodes.node("Less", u, nodes.constant(-15.0))
    large = nodes.node("Greater", u, nodes.constant(30.0))
    return nodes.node("Where", large, u, nodes.node("Where", tiny, grown, small))

"""What the transformers on landmarks share: their bases and their tags."""

from __future__ import annotations

from typing import Any

from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)

from .callbacks import CallbackSupportMixin
from .on_landmarks import OnLandmarks


class TransformsRows(
    CallbackSupportMixin,
    OnLandmarks,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """An estimator with `transform`: any library in, the precision of the rows out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

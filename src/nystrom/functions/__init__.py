"""The paper as functions: landmarks, leverage scores, effective dimension, K̃."""

from .embedding import spectral_embedding
from .leverage import effective_dimension, leverage_scores
from .operator import approximate
from .selecting import landmarks_needed, select_landmarks

__all__ = [
    "approximate",
    "effective_dimension",
    "landmarks_needed",
    "leverage_scores",
    "select_landmarks",
    "spectral_embedding",
]

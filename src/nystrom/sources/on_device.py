"""Rows that are moved to a device, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _arrays as arrays
from .source import Source


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    arrays.check_torch_device(device)


class OnDevice(Source):
    """The rows of another source as torch tensors on a device.

    A block is moved when it is asked for; the device never holds all rows.
    """

    on_device = True

    def __init__(self, source: Source, device: str) -> None:
        self.source, self.device = source, device
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.at_hand, self.files = source.at_hand, source.files
        self.weights = source.weights if source.is_weighted else None
        self.targets = source.targets

    @property
    def given(self) -> Source:
        return self.source

    def rows(self, start: int, stop: int) -> Any:
        return arrays.torch_tensor(self.source.rows(start, stop), self.device)

    def take(self, indices: np.ndarray) -> Any:
        return arrays.torch_tensor(self.source.take(indices), self.device)

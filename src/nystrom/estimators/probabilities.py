"""What the values of ridge classifiers mean: probabilities, by links fitted too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..engines import Engine
from ..engines.progress import expect
from ..landmarks import Landmarks
from ..methods.link import Link, fit_link
from ..methods.ridge.class_errors import LINKED_ROWS
from ..methods.ridge.fit import RidgeFit
from ..methods.ridge.left_out import left_out_values
from ..randomness import some_rows
from ..sources import Source
from .classes import Classes, OnClasses


def passes_to_link(n_rows: int) -> float:
    """How long that takes, in passes over all rows."""
    return min(1.0, LINKED_ROWS / n_rows)


class Calibrated(OnClasses):
    """The base of the ridge classifiers.

    Their probabilities come from `decision_function` by a link that is fitted with the
    model, to what it says of its training rows when each is left out, with its landmark
    if it is one, on at most 16 384 of them. The most probable class is that of
    `predict`.
    """

    _links: list[Link] | None

    def _calibrate(
        self,
        landmarks: Landmarks,
        source: Source,
        fit: RidgeFit,
        engine: Engine,
        given: Classes,
        seed: int,
    ) -> None:
        """Fit the link to leave-one-out values of some rows: a pass over these."""
        self._links = None
        if fit.posterior is None:
            return
        expect(engine.progress, 1)
        rows = some_rows(source.n_rows, LINKED_ROWS, seed)
        left_out = left_out_values(
            landmarks,
            source,
            rows,
            fit.map,
            fit.posterior,
            engine,
            given.class_weights,
        )
        F, Y, w = left_out.values, left_out.targets, left_out.weights
        columns = [[j] for j in range(Y.shape[1])] if given.several else [slice(None)]
        self._links = [fit_link(F[:, own], Y[:, own], w) for own in columns]

    def _shares(self, method: str, log: bool) -> Callable[[np.ndarray], np.ndarray]:
        """By the links that were fitted with the model."""
        links = self.__dict__.get("_links")  # a file of an older version has none
        if links is None:
            raise ValueError(
                f"{method} needs the Gram matrix, which conjugate gradients do not "
                "make; fit with solver='direct'."
                if self.solver_ == "cg"
                else f"{method} needs a model that was fitted by this version or a "
                "later one; fit it again."
            )
        made = Link.log_probabilities if log else Link.probabilities

        def of_values(values: np.ndarray) -> np.ndarray:
            if len(links) == 1:
                return made(links[0], values)
            # Of each label the probability that a row has it.
            parts = [made(link, values[:, [j]]) for j, link in enumerate(links)]
            return np.column_stack([part[:, 1] for part in parts])

        return of_values

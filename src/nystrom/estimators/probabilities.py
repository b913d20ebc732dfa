"""Probabilities of classes, of rows from anywhere, to anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..engines import Engine
from ..landmarks import Landmarks
from ..methods.link import Link, fit_link
from ..methods.ridge.class_errors import LINKED_ROWS
from ..methods.ridge.fit import RidgeFit
from ..methods.ridge.left_out import left_out_values
from ..randomness import some_rows
from ..sources import Source
from .classes import OnClasses
from .lazily import chunk_by_chunk


class Calibrated(OnClasses):
    """The base of the ridge classifiers: what their values mean is fitted too."""

    _links: list[Link] | None

    def _calibrate(
        self,
        landmarks: Landmarks,
        source: Source,
        fit: RidgeFit,
        engine: Engine,
        *,
        several: bool,
        seed: int,
    ) -> None:
        """Fit the link to leave-one-out values of some rows: a pass over these."""
        self._links = None
        if fit.posterior is None:
            return
        rows = some_rows(source.n_rows, LINKED_ROWS, seed)
        F, Y = left_out_values(landmarks, source, rows, fit.map, fit.posterior, engine)
        w = source.weights_of(rows)
        columns = [[j] for j in range(Y.shape[1])] if several else [slice(None)]
        self._links = [fit_link(F[:, own], Y[:, own], w) for own in columns]

    @chunk_by_chunk
    def predict_proba(self, X: Any, out: Any = None) -> Any:
        """The probability of each class, row by row.

        From `decision_function` by a link that was fitted with the model, to what the
        model says of its training rows when each is left out, on at most 16 384 of
        them. The most probable class is that of `predict`.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        out : str, Path or array, default=None
            Where they go, as for `KernelRidge.predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; `out` where it is given. Where a row may have
            several labels, the probability of each label.
        """
        return self._by_links(X, Link.probabilities, "predict_proba", out)

    @chunk_by_chunk
    def predict_log_proba(self, X: Any, out: Any = None) -> Any:
        """The logarithms of `predict_proba`, also where these vanish.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows.
        out : str, Path or array, default=None
            Where they go, as for `KernelRidge.predict`.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; `out` where it is given.
        """
        return self._by_links(X, Link.log_probabilities, "predict_log_proba", out)

    def _by_links(
        self,
        X: Any,
        made: Callable[[Link, np.ndarray], np.ndarray],
        method: str,
        out: Any,
    ) -> Any:
        """Something of the decisions, a column per class, block by block."""
        check_is_fitted(self, "dual_coef_")
        links = self.__dict__.get("_links")  # a file of an older version has none
        if links is None:
            raise ValueError(
                f"{method} needs the Gram matrix, which conjugate gradients do not "
                "make; fit with solver='direct'."
                if self.solver_ == "cg"
                else f"{method} needs a model that was fitted by this version or a "
                "later one; fit it again."
            )

        def of_values(values: np.ndarray) -> np.ndarray:
            if len(links) == 1:
                return made(links[0], values)
            # Of each label the probability that a row has it.
            parts = [made(link, values[:, [j]]) for j, link in enumerate(links)]
            return np.column_stack([part[:, 1] for part in parts])

        return self._of_decisions(X, of_values, method, out)

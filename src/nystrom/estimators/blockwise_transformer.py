"""`BlockwiseTransformer`: transformers of scikit-learn on rows outside of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from .._random import as_seed, sorted_row_sample
from .._validation import check_int
from ..sources import DaskRows, Source, TransformedRows, infer_source, is_dask
from ._base import BaseLandmarkEstimator
from ._inputs import check_feature_names_match
from ._progress import lazy_result

#: Rows that `partial_fit` is given at a time, whatever the rows are stored in.
BLOCK_ROWS = 2**14


def _has(name: str) -> Any:
    return lambda self: hasattr(getattr(self, "transformer_", self.transformer), name)


# No `set_output` of its own: what it returns may be a source, which no container wraps.
class BlockwiseTransformer(  # type: ignore[call-arg]
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Fit a transformer to rows block by block, and transform rows as they are read.

    `StandardScaler().fit(X)` needs all rows in memory. This class fits it to files,
    sources and Dask arrays in one pass, by `partial_fit`. Transformers without
    `partial_fit` are fitted to a uniform sample of rows. The result of `transform` is
    as lazy as its input: a source for files and sources, a Dask array for Dask arrays.
    For rows in memory it does what the transformer does.

    Parameters
    ----------
    transformer : transformer
        A transformer such as `StandardScaler()`, which is cloned. It must transform
        rows one by one, and return an array or sparse matrix with as many rows.
    subsample : int, default=100000
        Maximum number of rows to which a transformer without `partial_fit` is fitted,
        drawn uniformly.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsample.

    Attributes
    ----------
    transformer_ : transformer
        The fitted transformer.
    n_samples_fit_ : int
        The number of rows that it was fitted to.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen during `fit`, where they are known.

    See Also
    --------
    sklearn.compose.ColumnTransformer : Transforms some columns; it can be wrapped.
    nystrom.sources.TransformedRows : The lazily transformed rows.

    Notes
    -----
    Rows are given to `partial_fit` in blocks of 16,384 in their order, so the result
    does not depend on how they are stored. Weights of a source go along where
    `partial_fit` or `fit` takes `sample_weight`. Files and sources refuse missing
    values, so impute these before.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from nystrom import BlockwiseTransformer, KernelRidge, sources
    >>> path = Path(tempfile.mkdtemp()) / "rows.npy"
    >>> X = np.random.default_rng(0).standard_normal((2000, 3)) * [1, 10, 100]
    >>> np.save(path, np.column_stack([X, np.sin(X[:, 0])]))
    >>> source = sources.open(path, target=-1)
    >>> model = make_pipeline(
    ...     BlockwiseTransformer(StandardScaler()),
    ...     KernelRidge(kernel="rbf", alpha=1e-3, n_landmarks=100, random_state=0),
    ... ).fit(source)
    >>> model.score(source) > 0.99
    True
    """

    _doc_link_module = BaseLandmarkEstimator._doc_link_module
    _doc_link_template = BaseLandmarkEstimator._doc_link_template

    def __init__(
        self, transformer: Any, *, subsample: int = 100_000, random_state: Any = None
    ) -> None:
        self.transformer = transformer
        self.subsample = subsample
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> BlockwiseTransformer:
        """Fit the transformer.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), default=None
            Targets, for transformers of rows in memory that use them.
        **params : dict
            Passed to `fit` of the transformer, for rows in memory.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        subsample = check_int(self.subsample, "subsample")
        source, fitted = _lazy_source(X), clone(self.transformer)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if source is None:
            n_rows = _num_samples(X)
            fitted.fit(X, y, **params)
        else:
            accepts = source.is_weighted and has_fit_parameter(fitted, "sample_weight")
            n_rows = source.n_rows
            if hasattr(fitted, "partial_fit"):
                for start in range(0, n_rows, BLOCK_ROWS):
                    block = source.block(start, min(start + BLOCK_ROWS, n_rows))
                    weights = {"sample_weight": block.weights} if accepts else {}
                    fitted.partial_fit(block.X, **weights)
            else:
                seed = as_seed(self.random_state)
                rows = sorted_row_sample(n_rows, subsample, seed)
                weights = {"sample_weight": source.weights_of(rows)} if accepts else {}
                fitted.fit(source.take(rows), **weights)
                n_rows = len(rows)
            if source.feature_names is not None:
                self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        self.transformer_, self.n_samples_fit_ = fitted, n_rows
        return self

    def transform(self, X: Any) -> Any:
        """Transform rows; files and sources are transformed as they are read.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        X_new : ndarray, CSR matrix, TransformedRows or Dask array
            What the transformer returns for rows in memory; a Dask array for a Dask
            array; else a source, which estimators of this package take.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazy_result("transform", self, X, (), {})
        source = _lazy_source(X, self._fitted_names)
        if source is None:
            return self.transformer_.transform(X)
        check_feature_names_match(source.feature_names, self._fitted_names)
        return TransformedRows(source, self.transformer_)

    @available_if(_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Undo the transformation of rows in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Transformed rows.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The rows.
        """
        check_is_fitted(self)
        return self.transformer_.inverse_transform(X)

    @available_if(_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Get the names of the transformed features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None uses those seen during `fit`.

        Returns
        -------
        names : ndarray of str
            Names that the transformer returns.
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = self._fitted_names
        return self.transformer_.get_feature_names_out(input_features)

    @property
    def _fitted_names(self) -> list[str] | None:
        names = vars(self).get("feature_names_in_")
        return None if names is None else list(names)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.transformer)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.transformer_tags = inner.transformer_tags
        return tags


def _lazy_source(X: Any, names: list[str] | None = None) -> Source | None:
    """The source of rows that are not in memory; None for others."""
    X = DaskRows(X) if is_dask(X) else infer_source(X, names)
    return X if isinstance(X, Source) else None

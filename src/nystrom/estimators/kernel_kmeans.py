"""`KernelKMeans`: k-means in the kernel's feature space, in linear time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import _arrays as arrays
from ..approximation import estimated_error
from ..edge.showing import shown
from ..engines import Engine
from ..engines.progress import parts
from ..landmarks import Landmarks
from ..methods.kmeans.clustering import Centers
from ..methods.spectral_embedding import Embedding
from ..randomness import seed_of
from ..refusals import count, number
from ..sinks import Output
from ..sources import Source, is_dask
from ..trace_error import TraceError
from .callbacks import with_callbacks
from .fitting import fitting
from .lazily import chunk_by_chunk
from .nearest_centers import OnEmbedding, OnFeatures, fit_embedding, fit_features
from .score_method import here
from .transforms import TransformsRows

#: What follows the choice of landmarks, in passes with all of them that make Z.
PASSES_AFTER = 8.0


class KernelKMeans(TransformsRows, ClusterMixin, BaseEstimator):
    """K-means clustering in the kernel's feature space, on landmarks.

    Lloyd's algorithm on the features, made block by block and forgotten: no n × s array
    is held. Restarts begin on a sample of rows and share the passes over all of them.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    kernel : str, callable or Kernel, default="rbf"
        As for `Nystroem`.
    gamma, degree, coef0, kernel_params
        Parameters of a kernel given by name.
    n_init : int or "auto", default="auto"
        Restarts; "auto" is 1, as in scikit-learn for k-means++.
    max_iter : int, default=300
        The most passes over the rows.
    tol : float, default=1e-4
        Stop when the centres move by less than this share of a feature's variance.
    affinity_normalize : bool, default=False
        Whether to cluster as spectral clustering does: k-means on the leading
        eigenvectors of the affinity, normalised by its row sums. For kernels that are
        not negative.
    n_landmarks : int or None, default=1000
        How many landmarks. With `ridge` or `max_trace_error`, the most there may be;
        None for no limit.
    sampler, ridge, max_trace_error
        How landmarks are chosen, as for `Nystroem`.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same clusters for every storage and number of threads.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    inertia_ : float
        Σ w‖φ(x) − c‖² about the fitted centres, in the kernel's own feature space: what
        K̃ leaves of each row is included. The centres lie in the landmarks' span, so
        this is an upper bound of the inertia about the clusters' true means. With
        `affinity_normalize`, that of the embedding.
    dual_coef_ : ndarray of shape (n_landmarks, n_clusters)
        Centre j is Σᵢ dual_coef_[i, j]·φ(landmark i). Not with `affinity_normalize`.
    n_iter_ : int
        Passes over the rows.
    landmarks_ : Landmarks
        All that is known about the landmarks; prints as one line.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K: exact with `max_trace_error`, else estimated on about 1024 rows.
    n_features_in_ : int
        Number of features seen during fit.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from nystrom import KernelKMeans
    >>> X, y = make_circles(2000, factor=0.3, noise=0.05, random_state=0)
    >>> model = KernelKMeans(
    ...     2, gamma=20.0, n_landmarks=100, affinity_normalize=True, random_state=0
    ... ).fit(X)
    >>> bool(adjusted_rand_score(y, model.labels_) > 0.95)
    True
    """

    labels_: np.ndarray
    inertia_: float
    dual_coef_: Any
    n_iter_: int
    landmarks_: Landmarks
    approximation_error_: TraceError | None
    _centers: Centers
    _wide: bool
    _embedding: Embedding | None
    _centers_of_embedding: Any

    _switches = ("affinity_normalize",)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        affinity_normalize: bool = False,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        ridge: float | None = None,
        max_trace_error: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.affinity_normalize = affinity_normalize
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of the rows of X.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : ignored
            For pipelines.
        sample_weight : float, array-like or path, default=None
            A row of weight w counts as w rows; weight 0 excludes it.

        Returns
        -------
        self : KernelKMeans
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            n_clusters = count(self.n_clusters, "n_clusters")
            n_init = 1 if self.n_init == "auto" else count(self.n_init, "n_init")
            count(self.max_iter, "max_iter")
            number(self.tol, "tol", least=0.0)
            X = self._validated(X, reset=True)
            kernel, source, engine = self._resolved(X, task, sample_weight)
            if source.n_rows < n_clusters:
                raise ValueError(
                    f"n_samples={source.n_rows} should be >= n_clusters={n_clusters}."
                )
            landmarks = self._chosen(kernel, source, engine, passes_after=PASSES_AFTER)
            seed = seed_of(self.random_state)
            for name in ("dual_coef_", "_centers"):  # not of every way
                self.__dict__.pop(name, None)
            fit = fit_embedding if self.affinity_normalize else fit_features
            clustering, _ = parts(engine.progress, PASSES_AFTER, 0.5)
            with clustering:
                found = fit(
                    landmarks,
                    source,
                    n_clusters,
                    engine,
                    n_init=n_init,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    seed=seed,
                )
            self.__dict__.update(found)
            error = estimated_error(landmarks, source, engine)
            self._keep_landmarks(landmarks, error)
            self._n_features_out = n_clusters
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of each row.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            `labels_`.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    @shown
    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, out: Any = None
    ) -> Any:
        """Fit, and return the distance of each row to every centre.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        out : str, Path or array, default=None
            Where the distances go, as for `Nystroem.transform`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            As by `transform`; `out` where it is given.
        """
        Output(out)  # refused before the work begins
        return self.fit(X, sample_weight=sample_weight).transform(X, out=out)

    @chunk_by_chunk
    @shown
    def predict(self, X: Any, out: Any = None) -> Any:
        """The cluster of each row, with s kernel evaluations.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows. For kernel="precomputed", their kernel values with all training rows,
            (n_samples, n_training), or `kernels.AtLandmarks` of those with the
            landmarks alone.
        out : str, Path or array, default=None
            Where the numbers go, as for `Nystroem.transform`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster numbers; `out` where it is given.
        """
        output = Output(out, "label", single=True)
        landmarks, source, engine = self._new(X, "predict")
        return self._way.labels(landmarks, source, engine, output)

    @chunk_by_chunk
    @shown
    def transform(self, X: Any, out: Any = None) -> Any:
        """The distance of each row to every centre.

        Parameters
        ----------
        X : as for `predict`
            Rows.
        out : str, Path or array, default=None
            Where the distances go, as for `Nystroem.transform`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the kernel's feature space; with `affinity_normalize`, in the embedding.
            `out` where it is given.
        """
        landmarks, source, engine = self._new(X, "transform")
        output = Output(out, names=self.get_feature_names_out())
        return self._way.distances(landmarks, source, engine, output)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances of rows to their nearest centre.

        Parameters
        ----------
        X : as for `predict`
            Rows.
        y : ignored
            For pipelines.
        sample_weight : array-like or path, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            The higher the better.
        """
        distances = self.transform(X)
        if is_dask(distances):  # of each row one, not one for each centre, comes here
            distances = here(distances.min(axis=1))[:, None]
        nearest = arrays.host_values(distances).min(axis=1) ** 2
        weights = here(sample_weight, "sample_weight")
        weights = _check_sample_weight(weights, nearest[:, None])
        return float(-weights @ nearest)

    @property
    def _way(self) -> OnFeatures | OnEmbedding:
        """Where the centres are."""
        if self._embedding is not None:
            return OnEmbedding(self._embedding, self._centers_of_embedding)
        return OnFeatures(self._centers, self._wide)

    def _new(self, X: Any, method: str) -> tuple[Landmarks, Source, Engine]:
        check_is_fitted(self, "landmarks_")
        fitted = None if self.landmarks_.kernel.traits.by_number else self.landmarks_
        like = None if fitted is None else fitted.points
        landmarks, source, engine = self._for_new_rows(X, like, method)
        return landmarks, source, engine

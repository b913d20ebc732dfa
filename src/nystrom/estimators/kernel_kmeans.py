"""KernelKMeans: k-means in the kernel's feature space, or spectral clustering with
affinity_normalize.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import check_float, check_int
from ..engines import Engine
from ..landmarks import Landmarks
from ..linalg.errors import estimate_trace_error
from ..models.kmeans import ClusterCenters, assign_block, distances_block, fit_kmeans
from ..models.pca import SpectralEmbeddingMap, embed_rows, fit_spectral_embedding
from ..sources import Source, is_dask
from ..sources.output import Output
from ._base import BaseLandmarkTransformer, asarray_like
from ._inputs import load_values
from ._progress import (
    fit_context,
    method_of_rows,
    method_progress_bar,
    warn,
    with_callbacks,
)


@dataclass(frozen=True, eq=False)
class FeatureSpaceClusters:
    """Centres in the landmarks' span."""

    centers: ClusterCenters
    wide: bool  # whether distances need float64 kernel values

    def labels(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """The nearest centre of each row, where it is to go."""
        like, dtype = _prototype_row(landmarks, source), np.dtype(np.int32)
        sink = output.sink(source, 1, dtype, like)
        engine.map(assign_block, source, sink, self._shared(landmarks), "labels")
        return output.result(sink)

    def distances(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """To every centre, where they are to go."""
        like = _prototype_row(landmarks, source)
        width, dtype = len(self.centers.points), arrays.numpy_float_dtype(like)
        sink = output.sink(source, width, dtype, like)
        engine.map(distances_block, source, sink, self._shared(landmarks), "distances")
        return output.result(sink)

    def _shared(self, landmarks: Landmarks) -> tuple[Any, ...]:
        return landmarks.columns(wide=self.wide), self.centers.to_device()


@dataclass(frozen=True, eq=False)
class EmbeddingClusters:
    """Centres among the coordinates of rows."""

    embedding: SpectralEmbeddingMap
    centers: KMeans

    def labels(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """The nearest centre of each row, where it is to go."""
        rows = embed_rows(self.embedding, landmarks, source, engine)
        # As scikit-learn's `predict`, by NumPy. Its compiled loop takes centres of any
        # shape and type as they come, out of a damaged model file too, and ends the
        # process.
        centers = self.centers.cluster_centers_
        relative_distances = np.vecdot(centers, centers) - 2 * (rows @ centers.T)
        nearest = relative_distances.argmin(axis=1).astype(np.int32)
        return output.store(nearest, _prototype_row(landmarks, source))

    def distances(
        self, landmarks: Landmarks, source: Source, engine: Engine, output: Output
    ) -> Any:
        """To every centre, where they are to go."""
        like = _prototype_row(landmarks, source)
        rows = embed_rows(self.embedding, landmarks, source, engine)
        values = self.centers.transform(rows)
        return output.store(
            values.astype(arrays.numpy_float_dtype(like), copy=False), like
        )


def _prototype_row(landmarks: Landmarks, source: Source) -> Any:
    """A row as it came, in whose library and precision results are."""
    return landmarks.kernel.output_like(source.original.rows(0, 1))


class KernelKMeans(ClusterMixin, BaseLandmarkTransformer):
    """K-means clustering in the kernel's feature space, on landmarks.

    Lloyd's algorithm on the features of the landmarks, evaluated block by block: no n ×
    s array is stored. Restarts begin on a sample of rows and share the passes over all
    rows.

    Read more in the :doc:`user guide </components>`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, callable or Kernel, default="rbf"
        Name of a kernel as in scikit-learn, or "matern", "matern12", "matern32",
        "matern52" or "rational_quadratic"; a function of two rows; a kernel from
        `nystrom.kernels`; or "precomputed".
    gamma : float, sequence of float, str or None, default=None
        Inverse width of the kernel, one number or one per feature. "scale", "auto" and
        "median" compute it from the rows. None is scikit-learn's default, 1/n_features
        for most kernels.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    n_init : int or "auto", default="auto"
        Number of restarts. "auto" is 1, as in scikit-learn for k-means++.
    max_iter : int, default=300
        Maximum number of passes over the rows.
    tol : float, default=0.0001
        Stop when the centres move by less than this share of a feature's variance.
    affinity_normalize : bool, default=False
        Whether to do spectral clustering: k-means on the leading eigenvectors of the
        normalised affinity. The kernel must not be negative.
    n_landmarks : int or None, default=1000
        Number of landmarks. With `max_spectral_error` or `max_trace_error` it is an
        upper limit, or None for no limit.
    sampler : str, callable or array-like, default="auto"
        How landmarks are selected: "auto", "recursive", "accelerated", "leverage",
        "rpcholesky", "greedy", "kmeans" or "uniform"; a sampler from
        `nystrom.samplers`; row numbers; or an array of points.
    max_spectral_error : float, default=None
        Select as many landmarks as needed for ‖K − K̃‖₂ ≤ `max_spectral_error`.
    max_trace_error : float, default=None
        Select as many landmarks as needed for tr(K − K̃) ≤ `max_trace_error` · tr K.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        Weighted sum of squared distances to the centres in the kernel's feature space,
        including the residual of K̃. With `affinity_normalize`, in the embedding.
    dual_coef_ : ndarray of shape (n_landmarks, n_clusters)
        Centre j is Σᵢ dual_coef_[i, j]·φ(landmark i). Absent with `affinity_normalize`.
    n_iter_ : int
        Number of passes over the rows.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; prints as one line.
    approximation_error_ : TraceError or None
        Relative trace error tr(K − K̃)/tr K: exact with `max_trace_error`, otherwise
        estimated on about 1024 rows.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    spectral_embedding : The embedding of spectral clustering.
    sklearn.cluster.KMeans : K-means without a kernel.
    sklearn.cluster.SpectralClustering : Spectral clustering with an n × n affinity.

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

    _clusters: FeatureSpaceClusters | EmbeddingClusters

    _bool_params = ("affinity_normalize",)
    _model_passes = 10.0

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
        max_spectral_error: float | None = None,
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
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the clusters to the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with fit_context(self, X, y):
            n_clusters = check_int(self.n_clusters, "n_clusters")
            check_int(self.max_iter, "max_iter")
            check_float(self.tol, "tol", minimum=0.0)
            if self.n_init != "auto":
                check_int(self.n_init, "n_init")
            problem = self._validate(X, sample_weight=sample_weight)
            source, engine = problem.source, problem.engine
            if source.n_rows < n_clusters:
                raise ValueError(
                    f"n_samples={source.n_rows} should be >= n_clusters={n_clusters}."
                )
            landmarks = self._select_landmarks(problem)
            self.__dict__.pop("dual_coef_", None)  # an embedding has none
            if self.affinity_normalize:
                self._fit_embedding(landmarks, source, engine)
            else:
                self._fit_features(landmarks, source, engine)
            error = estimate_trace_error(landmarks, source, engine)
            self._set_landmarks(landmarks, error)
            self._n_features_out = n_clusters
        return self

    def _fit_features(
        self, landmarks: Landmarks, source: Source, engine: Engine
    ) -> None:
        """Centres in the landmarks' span."""
        fit = fit_kmeans(
            landmarks,
            source,
            self.n_clusters,
            engine,
            n_init=1 if self.n_init == "auto" else self.n_init,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            seed=as_seed(self.random_state),
        )
        if fit.n_distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({fit.n_distinct}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points in "
                "X.",
                ConvergenceWarning,
            )
        elif not fit.converged and self.max_iter > 1:
            warn(
                f"The centres still moved after {self.max_iter} passes; raise max_iter "
                "or tol.",
                ConvergenceWarning,
            )
        self._clusters = FeatureSpaceClusters(fit.centers, fit.wide)
        self.dual_coef_ = asarray_like(landmarks, fit.centers.dual)
        self.inertia_ = fit.inertia
        self.n_iter_ = fit.n_iterations
        output = Output(single=True)
        self.labels_ = self._clusters.labels(landmarks, source, engine, output)

    def _fit_embedding(
        self, landmarks: Landmarks, source: Source, engine: Engine
    ) -> None:
        """Centres among the coordinates of rows."""
        seed = as_seed(self.random_state)
        embedding, rows = fit_spectral_embedding(
            landmarks, source, self.n_clusters, engine, seed=seed
        )
        kmeans = KMeans(
            self.n_clusters,
            n_init=1 if self.n_init == "auto" else self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=seed % 2**32,
        ).fit(rows, sample_weight=source.weights)
        self._clusters = EmbeddingClusters(embedding, kmeans)
        self.inertia_ = float(kmeans.inertia_)
        self.n_iter_ = kmeans.n_iter_
        like = _prototype_row(landmarks, source)
        self.labels_ = arrays.from_host(kmeans.labels_, like, kmeans.labels_.dtype)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster numbers, `labels_`.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, out: Any = None
    ) -> Any:
        """Fit, and return the distance of each row to every centre.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Distances as from `transform`, or `out`.
        """
        Output(out)  # refused before the work begins
        with method_progress_bar(self, "fit_transform"):
            return self.fit(X, sample_weight=sample_weight).transform(X, out=out)

    @method_of_rows
    def predict(self, X: Any, out: Any = None) -> Any:
        """Predict the cluster of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster numbers, or `out`.
        """
        check_is_fitted(self, "landmarks_")
        output = Output(out, "label", single=True)
        rows = self._resolve_new_rows(X, self.labels_, "predict")
        return self._clusters.labels(*rows, output)

    @method_of_rows
    def transform(self, X: Any, out: Any = None) -> Any:
        """Compute the distance of each row to every centre.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Distances in the kernel's feature space, or in the embedding with
            `affinity_normalize`; or `out`.
        """
        check_is_fitted(self, "landmarks_")
        rows = self._resolve_new_rows(X, self.labels_, "transform")
        names = None if out is None else self.get_feature_names_out()
        return self._clusters.distances(*rows, Output(out, names=names))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute minus the sum of squared distances to the nearest centre.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", their kernel values with all training rows, of shape
            (n_samples, n_training), or `kernels.PrecomputedAtLandmarks` with the values
            at the landmarks only.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        score : float
            The higher the better.
        """
        distances = self.transform(X)
        if is_dask(distances):  # of each row one, not one for each centre, comes here
            distances = load_values(distances.min(axis=1))[:, None]
        nearest = arrays.to_host_float64(distances).min(axis=1) ** 2
        weights = load_values(sample_weight, "sample_weight")
        weights = _check_sample_weight(weights, nearest[:, None])
        return float(-weights @ nearest)

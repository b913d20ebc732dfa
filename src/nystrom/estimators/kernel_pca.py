"""KernelPCA: scikit-learn's transformer on landmarks; its own class where all rows are
landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from .. import _arrays as arrays
from .._random import as_seed
from .._validation import check_choice, check_finite, check_float, check_int
from ..engines import Engine
from ..engines.blas import blas_limit_for_size
from ..kernels import Kernel, PrecomputedAtLandmarks
from ..landmarks import Landmarks
from ..linalg.features import LinearMap
from ..models.pca import (
    EigenSolver,
    PrincipalComponents,
    fit_preimage,
    principal_components,
)
from ..sources import Block, Source, as_source, infer_source, is_dask
from ..sources.output import Output
from ._base import (
    BaseLandmarkTransformer,
    asarray_like,
    exact_landmarks,
    uses_exact_solver,
)
from ._inputs import check_width
from ._problem import KernelProblem
from ._progress import fit_context, method_of_rows, resolve_engine, with_callbacks

#: What scikit-learn's own class takes, and runs exactly.
EXACT_KERNELS = {"linear", "poly", "rbf", "sigmoid", "cosine", "precomputed"}


def is_supported_by_sklearn(estimator: Any, X: Any) -> bool:
    """Whether scikit-learn's own class takes the rows and our parameters."""
    kernel = estimator.kernel
    is_known_kernel = (isinstance(kernel, str) and kernel in EXACT_KERNELS) or (
        callable(kernel) and not isinstance(kernel, (Kernel, GaussianProcessKernel))
    )
    is_matrix = (isinstance(X, np.ndarray) and X.ndim == 2) or sp.issparse(X)
    is_scalar_gamma = estimator.gamma is None or isinstance(estimator.gamma, Real)
    return is_known_kernel and is_matrix and is_scalar_gamma and bool(estimator.center)


def _transform_block(block: Block, exact_pca: ExactKernelPCA) -> np.ndarray:
    return exact_pca.transform(block.X)


EIGEN_SOLVERS = ("auto", "dense", "arpack", "randomized")


def check_pca_params(estimator: Any) -> None:
    """Refuse parameters that are none; scikit-learn checks its own."""
    check_int(estimator.n_components, "n_components", optional=True)
    check_choice(estimator.eigen_solver, "eigen_solver", EIGEN_SOLVERS)
    check_float(estimator.alpha, "alpha", minimum=0.0)
    check_float(estimator.tol, "tol", minimum=0.0)
    check_int(estimator.max_iter, "max_iter", optional=True)
    if estimator.iterated_power != "auto":
        check_int(estimator.iterated_power, "iterated_power", minimum=0)
    is_per_feature = np.ndim(getattr(estimator.kernel, "gamma", estimator.gamma)) > 0
    if estimator.fit_inverse_transform and is_per_feature:
        raise ValueError(
            "fit_inverse_transform=True needs a single gamma, because the inverse "
            "uses a kernel of coordinates; pass one number."
        )


def _select_components(
    fitted: PrincipalComponents, n_components: int | None, remove_zero_eig: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, directions, offsets: as many as asked for, as theirs has it."""
    values, dual, offset = fitted.values, fitted.dual, fitted.offset
    if remove_zero_eig or n_components is None:
        kept = values > 0
        return values[kept], dual[:, kept], offset[kept]
    missing = max(0, min(n_components, len(dual)) - len(values))
    columns = np.zeros((len(dual), missing))
    zeros = np.zeros(missing)
    return (
        np.concatenate([values, zeros]),
        np.concatenate([dual, columns], axis=1) if missing else dual,
        np.concatenate([offset, zeros]),
    )


class PreimageMixin:
    """`inverse_transform` by ridge regression of the rows on their coordinates."""

    fit_inverse_transform: bool = False  # of files that were saved without
    alpha: float = 1.0
    n_jobs: int | None
    verbose: int
    _exact: Any = None

    def _fit_preimage(
        self, landmarks: Landmarks, forward: LinearMap, source: Source, engine: Engine
    ) -> None:
        """Learn the way back, where it is asked for."""
        if not self.fit_inverse_transform:
            return
        if landmarks.kernel.traits.uses_row_numbers:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        if sp.issparse(landmarks.points):
            raise NotImplementedError(
                "Inverse transform not implemented for sparse matrices!"
            )
        if not arrays.is_array(landmarks.points):
            raise ValueError("fit_inverse_transform=True needs rows of numbers.")
        alpha = check_float(self.alpha, "alpha", minimum=0.0)
        self._preimage = fit_preimage(landmarks, forward, source, alpha, engine)
        self.dual_coef_ = asarray_like(landmarks, self._preimage.map.dual)
        self.X_transformed_fit_ = self._preimage.landmarks.points

    @property
    def inverse_transform(self) -> Callable[[Any], Any]:
        """Map coordinates back to rows by ridge regression.

        A method of one array of shape (n_samples, n_components), which returns rows of
        shape (n_samples, n_features). Available if `fit_inverse_transform=True`.
        """
        if not self.fit_inverse_transform:
            # NotFittedError is an AttributeError, so that hasattr is False.
            raise NotFittedError(
                "inverse_transform is not learnt with fit_inverse_transform=False; "
                "set it to True and fit."
            )
        return self._inverse_transform

    def _inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self, "landmarks_")
        if self._exact is not None:
            with blas_limit_for_size(self._exact.X_fit_.shape[0]):
                return self._exact.inverse_transform(X)
        points = self._preimage.landmarks
        X = X if arrays.is_array(X) else np.asarray(X)
        source = as_source(arrays.detach(X))
        width = points.points.shape[1]
        check_width(source.n_features, width, "the coordinates have")
        engine = resolve_engine(points.kernel, self.n_jobs, self.verbose)
        return self._preimage.map(points, source, engine, "rows")


class KernelPCA(PreimageMixin, BaseLandmarkTransformer):
    """Kernel principal component analysis on landmarks.

    A drop-in replacement for `sklearn.decomposition.KernelPCA` that runs in O(n·s²)
    time with s landmarks, in memory that does not grow with the number of rows n. With
    no more rows than `n_landmarks`, scikit-learn's own class does the work and the
    result is exact.

    Read more in the :doc:`user guide </components>`.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components. None keeps all with a positive eigenvalue.
    kernel : str, callable or Kernel, default="linear"
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
    alpha : float, default=1.0
        Ridge of the regression behind `inverse_transform`.
    fit_inverse_transform : bool, default=False
        Whether to learn `inverse_transform`, for dense rows of numbers.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        Eigensolver for the n × n problem in exact mode, and for the s × s problem on
        landmarks.
    tol : float, default=0
        Tolerance of the ARPACK solver, as in scikit-learn.
    max_iter : int, default=None
        Maximum number of ARPACK iterations, as in scikit-learn.
    iterated_power : int or "auto", default="auto"
        Number of power iterations of the randomized solver, as in scikit-learn.
    remove_zero_eig : bool, default=False
        Whether to drop components with eigenvalue 0.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same int gives the same landmarks for every
        storage and number of threads.
    copy_X : bool, default=True
        Whether exact mode keeps a copy of X.
    n_jobs : int or None, default=None
        Number of threads. None means as many as `joblib.parallel_config` or BLAS may
        use; -1 means all cores.
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
    center : bool, default=True
        Whether to center in feature space, as scikit-learn does. False is the form of
        the paper.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the (centred) kernel matrix, descending.
    eigenvectors_ : ndarray of shape (n_points, n_components)
        One row per point of `X_fit_`. The coordinates of a row are its (centred) kernel
        values with these points times `eigenvectors_ / sqrt(eigenvalues_)`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Eigenvalues divided by the trace of the (centred) kernel matrix. The trace is a
        slight overestimate, so no ratio is too large.
    explained_variance_path_ : ndarray of shape (n_numbers, n_components)
        The same for the first landmarks only, with the numbers in `n_landmarks_path_`.
        If the last rows agree, there are enough landmarks. Absent in exact mode.
    n_landmarks_path_ : ndarray of shape (n_numbers,)
        Numbers of landmarks, ascending.
    X_fit_ : array, CSR matrix or list
        The landmarks; all rows in exact mode.
    dual_coef_ : ndarray of shape (n_points, n_features)
        Coefficients of `inverse_transform`, if `fit_inverse_transform=True`.
    X_transformed_fit_ : ndarray of shape (n_landmarks, n_components)
        Coordinates of the points of `X_fit_`, if `fit_inverse_transform=True`.
    gamma_ : float
        The gamma that was used; 1/n_features if `gamma` is None.
    landmarks_ : Landmarks
        The landmarks with indices, errors and cost; all rows in exact mode.
    approximation_error_ : TraceError or None
        Exact relative trace error tr(K − K̃)/tr K. None if the kernel is indefinite.
    n_features_in_ : int
        Number of features seen during fit.

    See Also
    --------
    Nystroem : Features of the landmarks without a rotation.
    KernelCCA : Components that two views share.
    sklearn.decomposition.KernelPCA : Exact kernel PCA.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = KernelPCA(5, kernel="rbf", gamma=1e-3, n_landmarks=200, random_state=0)
    >>> pca.fit_transform(X).shape
    (1797, 5)
    """

    _exact: Any  # scikit-learn's own, where it did the work

    _bool_params = ("fit_inverse_transform", "remove_zero_eig", "copy_X", "center")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: Any = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: Any = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        n_landmarks: Any = 1000,
        sampler: Any = "auto",
        max_spectral_error: float | None = None,
        max_trace_error: float | None = None,
        center: bool = True,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.n_landmarks = n_landmarks
        self.sampler = sampler
        self.max_spectral_error = max_spectral_error
        self.max_trace_error = max_trace_error
        self.center = center
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the components to the rows of X.

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
            self._fit(X, sample_weight)
        return self

    @with_callbacks
    def fit_transform(
        self, X: Any, y: Any = None, out: Any = None, sample_weight: Any = None
    ) -> Any:
        """Fit, and return the coordinates of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; also a list of objects, a path or a `Source`. For
            kernel="precomputed", the square kernel matrix.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        out : str, path-like or array, default=None
            Where the result goes instead of a new array: a file that ends in `.npy` or
            `.parquet`, which is written block by block, or an array to fill.
            An existing file is replaced only with
            `out=nystrom.sources.Overwrite(path)`.
        sample_weight : float, array-like of shape (n_samples,) or path, default=None
            Weights of the rows. A row of weight w counts as w rows; weight 0 excludes
            it.

        Returns
        -------
        coordinates : array of shape (n_samples, n_components)
            Coordinates in the precision of X, or `out`.
        """
        Output(out)  # refused before the work begins
        # Rows of weight 0 are no part of the fit, and results of Dask's are lazy.
        if sample_weight is not None or (is_dask(X) and out is None):
            return self.fit(X, y, sample_weight).transform(X, out)
        with fit_context(self, X, y):
            landmarks, problem = self._fit(X)
            output = Output(out, names=self.get_feature_names_out())
            if self._exact is not None:
                rows = output.store(self.eigenvectors_ * np.sqrt(self.eigenvalues_))
            else:
                rows = self._map(
                    landmarks, problem.source, problem.engine, "coordinates", output
                )
        return rows

    @method_of_rows
    def transform(self, X: Any, out: Any = None) -> Any:
        """Compute the coordinates of rows.

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
        coordinates : array of shape (n_samples, n_components)
            Coordinates in the precision of X, or `out`.
        """
        check_is_fitted(self, "eigenvalues_")
        names = None if out is None else self.get_feature_names_out()
        output = Output(out, names=names)
        X = infer_source(X, self._fitted_names)
        if self._exact is not None:
            return self._exact_coordinates(X, output)
        landmarks, source, engine = self._resolve_new_rows(
            X, self.eigenvectors_, "transform"
        )
        return self._map(landmarks, source, engine, "coordinates", output)

    def _exact_coordinates(self, X: Any, output: Output) -> Any:
        """By scikit-learn's own class; of a source or into a file block by block."""
        if isinstance(X, PrecomputedAtLandmarks):  # all training rows, in their order
            X = X.values
        X = self._validate_rows(X, reset=False)
        n_points, exact_pca = len(self.landmarks_), self._exact
        if output.where is None and not isinstance(X, Source):
            with blas_limit_for_size(n_points):
                return exact_pca.transform(arrays.as_canonical_csr(X))
        source = as_source(X).replace(targets=None)
        engine = resolve_engine(self.landmarks_.kernel, self.n_jobs, self.verbose)
        values = exact_pca.eigenvalues_
        sink = output.sink(source, len(values), values.dtype)
        engine.map(_transform_block, source, sink, (exact_pca,), "coordinates")
        return output.result(sink)

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_.shape[0]

    def _fit(
        self, X: Any, sample_weight: Any = None
    ) -> tuple[Landmarks, KernelProblem]:
        problem = self._validate(X, None, sample_weight)
        source, stopping_rule = problem.source, self._stopping_rule()
        is_small = uses_exact_solver(stopping_rule, self.sampler, source)
        is_plain = is_supported_by_sklearn(self, problem.X) and not source.is_weighted
        if is_small and is_plain:
            landmarks = exact_landmarks(problem.kernel, source)
            self._set_landmarks(landmarks, landmarks.error)
            self._fit_exact(landmarks, problem)
            return landmarks, problem
        check_pca_params(self)
        landmarks = self._select_landmarks(problem, stopping_rule)
        solver = EigenSolver(
            self.eigen_solver,
            self.tol,
            self.max_iter,
            self.iterated_power,
            as_seed(self.random_state),
        )
        components = principal_components(
            landmarks,
            source,
            self.n_components,
            problem.engine,
            solver,
            center=self.center,
        )
        landmarks = self._set_landmarks(landmarks, components.error)
        self._set_components(landmarks, components, source)
        default = 1 / source.n_features if source.n_features else None
        self.gamma_ = default if self.gamma is None else self.gamma
        self._fit_preimage(landmarks, self._map, source, problem.engine)
        return landmarks, problem

    def _fit_exact(self, landmarks: Landmarks, problem: KernelProblem) -> None:
        """scikit-learn's own class, whose attributes become ours."""
        names = ExactKernelPCA().get_params(deep=False)
        exact_pca = ExactKernelPCA(**{name: getattr(self, name) for name in names})
        X, n = arrays.as_canonical_csr(problem.X), problem.source.n_rows
        with blas_limit_for_size(n):
            exact_pca.set_output(transform="default").fit(X)
        values = np.asarray(exact_pca.eigenvalues_)
        check_finite(values)
        self._exact = exact_pca
        self._centerer = exact_pca._centerer
        self.eigenvalues_ = exact_pca.eigenvalues_
        self.eigenvectors_ = exact_pca.eigenvectors_
        self.X_fit_ = exact_pca.X_fit_
        self.gamma_ = exact_pca.gamma_
        if self.fit_inverse_transform:
            self.dual_coef_ = exact_pca.dual_coef_
            self.X_transformed_fit_ = exact_pca.X_transformed_fit_
        diagonal = arrays.to_host_float64(landmarks.kernel.diag(landmarks.points))
        total = sum(diagonal.tolist()) - n * float(exact_pca._centerer.K_fit_all_)
        shares = values / total if total > 0 else np.zeros(len(values))
        self.explained_variance_ratio_ = shares

    def _set_components(
        self, landmarks: Landmarks, components: PrincipalComponents, source: Source
    ) -> None:
        values, dual, offset = _select_components(
            components, self.n_components, self.remove_zero_eig
        )
        eigenvectors, _ = svd_flip(u=dual * np.sqrt(values), v=None)
        # The coordinates get the signs that the eigenvectors have.
        signs = np.where(np.sum(eigenvectors * dual, axis=0) < 0, -1.0, 1.0)
        like = landmarks.kernel.output_like(landmarks.points)
        # Where all rows are landmarks, in the precision that scikit-learn's would have,
        # if it has such numbers.
        row_dtype = arrays.numpy_float_dtype(like)
        is_representable = values.max(initial=0.0) <= np.finfo(row_dtype).max
        all_rows_are_landmarks = len(landmarks) == source.n_rows
        dtype = values.dtype
        if all_rows_are_landmarks and is_representable:
            dtype = row_dtype
        eigenvalues, total = values.astype(dtype), float(components.total)
        ratios = eigenvalues / total if total > 0 else np.zeros(len(eigenvalues))
        self._exact = None
        self._map = LinearMap.with_sufficient_precision(
            landmarks, source, dual * signs, -offset * signs
        )
        self.X_fit_ = landmarks.points
        self.eigenvalues_ = arrays.from_host(values, like, dtype)
        self.eigenvectors_ = arrays.from_host(eigenvectors, like, dtype)
        self.explained_variance_ratio_ = asarray_like(landmarks, ratios)
        self.n_landmarks_path_ = asarray_like(landmarks, components.sizes)
        self.explained_variance_path_ = asarray_like(
            landmarks, components.explained_variance_path
        )

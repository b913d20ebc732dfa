"""`KernelPCA`: kernel principal components in linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from ..edge.engine import engine_for
from ..edge.rows import explaining
from ..edge.showing import shown
from ..engines import Engine
from ..engines.progress import expect, parts
from ..kernels import AtLandmarks
from ..landmarks import Landmarks
from ..methods.linear_map import LinearMap
from ..methods.pca import components
from ..methods.preimage import Preimage
from ..randomness import seed_of
from ..sinks import Output
from ..sources import Source, as_source, recognised
from ..trace_error import TraceError
from .callbacks import CallbackTask, with_callbacks
from .exact import is_exact
from .exact_pca import back_by_theirs, block_by_block, by_theirs, fitted_exactly, takes
from .fitting import fitting
from .lazily import chunk_by_chunk
from .pca_on_landmarks import check_options, fitted_on_landmarks, rows_at, way_back
from .transforms import TransformsRows


class KernelPCA(TransformsRows):
    """Kernel principal component analysis on landmarks.

    A drop-in for `sklearn.decomposition.KernelPCA`, in O(n·s²) time with s landmarks
    and memory that does not grow with n. With no more rows than `n_landmarks`,
    scikit-learn's own class does the work, and the answer is exact.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None keeps all with an eigenvalue above 0.
    kernel : str, callable or Kernel, default="linear"
        As for `Nystroem`.
    gamma : float, sequence of float, str or None, default=None
        The width of the kernel; "scale", "auto" or "median", from the rows. None is
        scikit-learn's default.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Zero coefficient of polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Further parameters of the kernel.
    alpha : float, default=1.0
        Ridge of the regression behind `inverse_transform`.
    fit_inverse_transform : bool, default=False
        Whether to learn the way back, for dense rows of numbers.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        For the n × n problem in exact mode, for the s × s one on landmarks.
    tol, max_iter, iterated_power
        Parameters of "arpack" and "randomized", as in scikit-learn.
    remove_zero_eig : bool, default=False
        Whether to drop components with eigenvalue 0.
    random_state : int, RandomState instance or None, default=None
        The same int gives the same landmarks for every storage and number of threads.
    copy_X : bool, default=True
        Whether exact mode keeps a copy of X.
    n_jobs : int, default=None
        Threads. None: as many as BLAS may use; -1: all cores.
    n_landmarks : int or None, default=1000
        How many landmarks. With `ridge` or `max_trace_error`, the most there may be;
        None for no limit.
    sampler : str, callable or array, default="auto"
        How landmarks are chosen, as for `Nystroem`.
    ridge : float, default=None
        λ > 0: as many landmarks as ‖K − K̃‖₂ ≤ λ takes.
    max_trace_error : float, default=None
        As many landmarks as tr(K − K̃) ≤ max_trace_error · tr K takes.
    center : bool, default=True
        Whether the mean is taken off in feature space, as scikit-learn does; False is
        the paper's form.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the (centred) kernel matrix, descending.
    eigenvectors_ : ndarray of shape (n_points, n_components)
        One row per point of `X_fit_`. The coordinates of a row are its (centred) kernel
        values with these points, times `eigenvectors_ / sqrt(eigenvalues_)`.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The eigenvalues as shares of tr K, less 1ᵀK̃1/n where the mean is taken off. That
        is no less than tr HKH: no share is too large.
    explained_variance_path_ : ndarray of shape (n_numbers, n_components)
        The same for the first landmarks alone, as many as `n_landmarks_path_` says: …,
        a quarter of them, half, all. Where the last rows agree there are enough. Not in
        exact mode.
    n_landmarks_path_ : ndarray of shape (n_numbers,)
        Numbers of landmarks, ascending.
    X_fit_ : array, CSR matrix or list
        The landmarks; all rows in exact mode.
    dual_coef_, X_transformed_fit_ : ndarray
        The regression behind `inverse_transform`, where it is fitted.
    gamma_ : float
        1/n_features where `gamma` is None.
    landmarks_ : Landmarks
        All that is known about the landmarks; all rows in exact mode.
    approximation_error_ : TraceError or None
        tr(K − K̃)/tr K, exact. None where the kernel is indefinite.
    n_features_in_ : int
        Number of features seen during fit.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nystrom import KernelPCA
    >>> X, _ = load_digits(return_X_y=True)
    >>> pca = KernelPCA(5, kernel="rbf", gamma=1e-3, n_landmarks=200, random_state=0)
    >>> pca.fit_transform(X).shape
    (1797, 5)
    """

    eigenvalues_: Any
    eigenvectors_: Any
    explained_variance_path_: Any
    n_landmarks_path_: np.ndarray
    X_fit_: Any
    gamma_: Any
    dual_coef_: Any
    X_transformed_fit_: Any
    landmarks_: Any
    approximation_error_: TraceError | None
    _exact: Any  # scikit-learn's own, where it did the work
    _map: LinearMap
    _preimage: Preimage

    _switches = ("fit_inverse_transform", "remove_zero_eig", "copy_X", "center")

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
        ridge: float | None = None,
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
        self.ridge = ridge
        self.max_trace_error = max_trace_error
        self.center = center
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of the rows of X.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Training rows; the square kernel matrix for kernel="precomputed".
        y : ignored
            For pipelines.

        Returns
        -------
        self : KernelPCA
            The fitted estimator.
        """
        with fitting(self, X, y) as task:
            self._fit(X, task)
        return self

    @chunk_by_chunk
    @with_callbacks
    def fit_transform(
        self, X: Any, y: Any = None, out: Any = None, **params: Any
    ) -> Any:
        """Fit, and return the coordinates of X.

        Parameters
        ----------
        X : as for `fit`
            Training rows.
        y : ignored
            For pipelines.
        out : str, Path or array, default=None
            Where the coordinates go, as for `transform`.
        **params : dict
            None are taken.

        Returns
        -------
        coordinates : array of shape (n_samples, n_components)
            In the precision of X; `out` where it is given.
        """
        if params:
            raise TypeError(f"fit_transform takes no {', '.join(params)}.")
        Output(out)  # refused before the work begins
        with fitting(self, X, y) as task:
            mapped = self._fit(X, task)
            output = Output(out, names=self.get_feature_names_out())
            if mapped is None:
                rows = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
                rows = output.keep(rows)
            else:
                expect(mapped[-1].progress, 1)
                rows = self._map(*mapped, "coordinates", output)
        return rows

    @chunk_by_chunk
    @shown
    def transform(self, X: Any, out: Any = None) -> Any:
        """The coordinates of rows, with s kernel evaluations each.

        Parameters
        ----------
        X : array-like, CSR matrix or list, of shape (n_samples, n_features)
            Rows. For kernel="precomputed", their kernel values with all training rows,
            (n_samples, n_training), or `kernels.AtLandmarks` of those with the
            landmarks alone.
        out : str, Path or array, default=None
            Where the coordinates go, as for `Nystroem.transform`.

        Returns
        -------
        coordinates : array of shape (n_samples, n_components)
            In the precision of X; `out` where it is given.
        """
        check_is_fitted(self, "eigenvalues_")
        output = Output(out, names=self.get_feature_names_out())
        X = recognised(X, self._fitted_names)
        if self._exact is not None:
            return self._exact_coordinates(X, output)
        landmarks, source, engine = self._for_new_rows(
            X, self.eigenvectors_, "transform"
        )
        return self._map(landmarks, source, engine, "coordinates", output)

    def _exact_coordinates(self, X: Any, output: Output) -> Any:
        """By scikit-learn's own class; of a source or into a file block by block."""
        if isinstance(X, AtLandmarks):  # all training rows are, in their order
            X = X.values
        if not isinstance(X, Source):
            with explaining(X=X):
                X = validate_data(self, X, accept_sparse="csr", reset=False)
        if output.where is None and not isinstance(X, Source):
            return by_theirs(self._exact, X)
        source = as_source(self._validated(X, reset=False)).having(targets=None)
        engine = engine_for(self.landmarks_.kernel, self.n_jobs, self.verbose)
        return block_by_block(self._exact, source, engine, output)

    @property
    def inverse_transform(self) -> Callable[[Any], Any]:
        """Rows that have about the coordinates given, by ridge regression.

        A method of one array of shape (n_samples, n_components), which returns rows of
        shape (n_samples, n_features). It is there with fit_inverse_transform=True only.
        """
        if not self.fit_inverse_transform:
            # NotFittedError is an AttributeError, so that hasattr is False.
            raise NotFittedError(
                "The way back is not learnt with fit_inverse_transform=False; set it "
                "to True and fit."
            )
        return self._inverse_transform

    def _inverse_transform(self, X: Any) -> Any:
        check_is_fitted(self, "eigenvalues_")
        if self._exact is not None:
            return back_by_theirs(self._exact, X)
        engine = engine_for(self._preimage.landmarks.kernel, self.n_jobs, self.verbose)
        return rows_at(self._preimage, X, engine)

    @property
    def _n_features_out(self) -> int:
        return self.eigenvalues_.shape[0]

    def _fit(
        self, X: Any, task: CallbackTask
    ) -> tuple[Landmarks, Source, Engine] | None:
        """Fit; what maps the training rows, None where scikit-learn did it."""
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if self.fit_inverse_transform and precomputed:
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        X = self._validated(X, reset=True)
        goal = self._goal()
        kernel, source, engine = self._resolved(X, task)
        if is_exact(goal, self.sampler, source) and takes(self, X):
            engine.progress("exact solution", 0, 1)
            self.__dict__.update(fitted_exactly(self, X, kernel, source))
            return None
        check_options(self)
        landmarks = self._chosen(kernel, source, engine, goal, passes_after=1.4)
        summing, _ = parts(engine.progress, 1.0, 0.4)
        with summing:
            found = components(
                landmarks,
                source,
                self.n_components,
                engine,
                center=self.center,
                solver=self.eigen_solver,
                seed=seed_of(self.random_state),
                tol=self.tol,
                max_iter=self.max_iter,
                iterated_power=self.iterated_power,
            )
        landmarks = self._keep_landmarks(landmarks, found.error)
        self._exact = None
        self.__dict__.update(fitted_on_landmarks(self, landmarks, found, source))
        default = 1 / source.n_features if source.n_features else None
        self.gamma_ = default if self.gamma is None else self.gamma
        if self.fit_inverse_transform:
            back = way_back(landmarks, self._map, source, float(self.alpha), engine)
            self.__dict__.update(back)
        return landmarks, source, engine

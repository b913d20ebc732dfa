"""Hyper-parameters and landmarks of GaussianProcessRegressor, as its parameters say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.utils import check_random_state

from .. import _arrays as arrays
from .._random import as_seed
from ..engines import Threads
from ..kernels.gaussian_process import (
    MappedKernel,
    as_scikit_learn,
    from_scikit_learn,
    has_point_gradient,
    noise_and_gradient,
    scale_names,
)
from ..landmarks import Landmarks
from ..linalg.cross_kernel import probe_rows
from ..models.collapsed_bound import MIN_BOUND_ROWS, ROWS_PER_LANDMARK
from ..models.evidence import ProcessRows, evidence, host_rows
from ..models.gaussian_process import (
    START_ROWS,
    START_STEPS,
    Optimum,
    ProcessFit,
    fit_process,
    fit_scale_and_noise,
    learn_hyperparameters,
    maximize_evidence,
    move_points,
    newton_steps,
    part_of_rows,
    target_statistics,
)
from ..models.metric import HELD_OUT_SHARE, Metric
from ..samplers import FixedSize, StoppingRule
from ..sources import Source
from ._learning import learn_kernel, move_landmarks, with_moved_points
from ._problem import LEARN, LEARN_ARD, LEARN_MATRIX, KernelProblem, resolve_kernel
from ._progress import warn

#: Landmarks that hyper-parameters are learnt with where their number is not given.
DEFAULT_LANDMARKS = 1000
#: Where rows times landmarks² are at most this, all rows that landmarks were moved on
#: raise the bound in the end. With 4,000 rows of 25 features and 80 landmarks it was
#: 2,634 before, and 3,264 of landmarks that are rows. More (512 landmarks of 15,000
#: rows: 2³²) would take longer than the move.
MAX_MOVED_PRODUCTS = 2**29
#: The number of landmarks that max_kl takes is found to one part in so many.
PREFIX_SHARE = 16


def warn_of_residual(fit: ProcessFit) -> None:
    """Where the landmarks explain too little of the kernel for its noise."""
    per_row = fit.sums.residual_trace / fit.sums.n_rows
    if per_row > 1:
        warn(
            "The variance that the landmarks do not explain exceeds the noise "
            f"({per_row:.3g} times), so the posterior is far from that of the exact "
            "process. Use more landmarks, add WhiteKernel() to the kernel, or raise "
            "alpha."
        )


def check_kernel_and_noise(kernel: Any, alpha: Any, source: Source) -> None:
    """Refuse what has no evidence, before anything is computed."""
    if any(isinstance(part, gp.CompoundKernel) for part in kernel_parts(kernel)):
        raise ValueError(
            "A CompoundKernel has several values for each pair of rows, but a Gaussian "
            "process needs one. Fit one model for each of its kernels, or add them."
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        theta = kernel.theta
    if np.isnan(theta).any():
        raise ValueError(
            f"kernel={kernel} has a hyper-parameter that is negative or not a number; "
            "all must be positive."
        )
    if source.n_features is not None:
        with np.errstate(all="ignore"):
            kernel(host_rows(source.rows(0, 1)))  # its own check of the features
    alpha, n_rows = np.asarray(alpha, dtype=np.float64), source.n_rows
    if alpha.size != 1 and alpha.shape != (n_rows,):
        size = alpha.size if alpha.ndim == 1 else alpha.shape
        raise ValueError(
            "alpha must be a scalar or an array with same number of entries as y. "
            f"({size} != {n_rows})"
        )
    if not np.all(np.isfinite(alpha) & (alpha >= 0)):
        raise ValueError(
            "alpha contains a noise variance that is negative or not finite; use "
            "finite numbers >= 0."
        )


def kernel_parts(kernel: Any) -> list[Any]:
    """A kernel, its terms and factors, and their parameters."""
    return [kernel, *kernel.get_params(deep=True).values()]


def process_rows(process: Any, problem: KernelProblem, kernel: Any) -> ProcessRows:
    """Rows with targets, their scale and noise, if there is any."""
    alpha = np.asarray(process.alpha, dtype=np.float64)
    if not np.all(alpha + noise_and_gradient(kernel)[0] > 0):
        raise ValueError(
            "alpha=0 without a WhiteKernel is a process without noise, which "
            "landmarks cannot approximate. Add WhiteKernel() to the kernel, or "
            "set alpha > 0."
        )
    source, engine = problem.source, problem.engine
    t = source.targets.shape[1]
    if process.n_targets is not None and t != process.n_targets:
        raise ValueError(
            "The number of targets seen in `y` is different from the parameter "
            f"`n_targets`. Got {t} != {process.n_targets}."
        )
    mean, scale = np.zeros(t), np.ones(t)
    if process.normalize_y:
        mean, scale = target_statistics(source, engine)
    if alpha.size == 1:
        return ProcessRows(source, engine, mean, scale, float(alpha.ravel()[0]))
    Y = np.asarray(source.targets[: source.n_rows])
    source = source.replace(targets=np.column_stack([Y, alpha]))
    return ProcessRows(source, engine, mean, scale, has_alpha=True)


@dataclass(frozen=True, eq=False)
class HyperparameterSearch:
    """Finds the kernel and the landmarks of a process for some rows."""

    process: Any  # GaussianProcessRegressor
    problem: KernelProblem
    rows: ProcessRows

    @property
    def _seed(self) -> int:
        return as_seed(self.process.random_state)

    @property
    def _n_landmarks(self) -> int:
        return self.process._max_landmarks() or DEFAULT_LANDMARKS

    def run(self, kernel: Any) -> tuple[Any, Landmarks]:
        """The kernel with its hyper-parameters, and landmarks for it."""
        process = self.process
        learns = process.optimizer is not None and kernel.n_dims > 0
        if learns and process.optimize_landmarks:
            self._check_movable(kernel)
            found = self._move(kernel)
            if found is not None:
                return found
        kernel = self._learn_metric(kernel)
        if not learns:
            return kernel, self.select(kernel)
        kernel, landmarks = self._learn(kernel)
        kernel._check_bounds_params()
        return kernel, landmarks

    def _learn(self, kernel: Any) -> tuple[Any, Landmarks]:
        """By the bound on part of the rows, then on all."""
        process, rows = self.process, self.rows
        optimum = learn_hyperparameters(
            kernel,
            rows,
            self._select_on_part,
            n_landmarks=self._n_landmarks,
            optimizer=process.optimizer if callable(process.optimizer) else None,
            restarts=self._restarts(kernel),
            move=process.optimize_landmarks,
            seed=self._seed,
        )
        kernel = optimum.kernel
        landmarks = self.select(kernel)
        if process.optimize_landmarks:
            moved = evidence(kernel, optimum.points, rows, gradient=False)
            given = evidence(kernel, landmarks.points, rows, gradient=False)
            if moved.value > given.value:
                like = landmarks.points
                points = arrays.from_host(optimum.points, like, like.dtype)
                landmarks = with_moved_points(landmarks, points, landmarks.kernel)
        elif not callable(process.optimizer):
            kernel = newton_steps(optimum, landmarks.points, rows, self._seed)
            if not np.array_equal(kernel.theta, optimum.kernel.theta):
                landmarks = replace(landmarks, kernel=from_scikit_learn(kernel))
                if process.max_trace_error is not None:  # may need more by now
                    landmarks = max(landmarks, self.select(kernel), key=len)
        return kernel, landmarks

    def _move(self, kernel: Any) -> tuple[Any, Landmarks] | None:
        """Landmarks moved together with length scales or a matrix, as in `KernelRidge`.

        For c·k + white noise with k of a distance; None for other kernels, and where
        rows that were not seen are less likely after the move. Where it takes little
        time, the bound then rises on all the rows that were drawn, and a map is kept if
        those that it was not learnt from are likelier with it.
        """
        rows, with_map = self.rows, self.process.metric is not None
        found = self._moved(kernel, with_map)
        if found is None:
            return None
        n_landmarks = len(found[1])
        size = min(
            max(ROWS_PER_LANDMARK * n_landmarks, MIN_BOUND_ROWS), rows.source.n_rows
        )
        if size * n_landmarks**2 > MAX_MOVED_PRODUCTS:
            return found
        part = part_of_rows(rows, size, self._seed)
        candidates = [found]
        if with_map:
            kernel = MappedKernel(kernel, np.eye(self.problem.source.n_features or 0))
            candidates += filter(None, [self._moved(kernel, False)])
        if size <= START_ROWS:  # of which a fifth says little
            candidates.append(self._learn(kernel))
        optima = [move_points(k, each.points, part) for k, each in candidates]
        best = max(optima[with_map:] or optima, key=lambda optimum: optimum.value)
        if with_map and _is_likelier(optima[0], best):
            best = optima[0]
        kernel, _, points, _ = best
        kernel = fit_scale_and_noise(kernel, points, rows)
        landmarks, given = found[1], found[1].points
        points = arrays.from_host(points, given, given.dtype)
        return kernel, with_moved_points(landmarks, points, from_scikit_learn(kernel))

    def _moved(self, kernel: Any, with_map: bool) -> tuple[Any, Landmarks] | None:
        """The kernel and landmarks after the move, if it is possible and pays off."""
        process, rows, names = self.process, self.rows, scale_names(kernel)
        if names is None or rows.has_alpha or callable(process.optimizer):
            return None
        params = kernel.get_params()
        length_scale = np.asarray(params[names.length_scale])
        bounds = params[f"{names.length_scale}_bounds"]
        unit = params[names.length_scale.rpartition("__")[0]]
        if with_map:
            problem = self._learn_widths(unit, LEARN_MATRIX)
        elif isinstance(bounds, str):  # fixed
            problem = replace(self.problem, kernel=from_scikit_learn(unit))
        else:
            rule = LEARN_ARD if length_scale.ndim else LEARN
            problem = self._learn_widths(unit, rule)
        landmarks = move_landmarks(
            problem,
            self._select(problem),
            Threads(process.n_jobs),
            alpha=None,
            intercept=bool(process.normalize_y),
            seed=self._seed,
        )
        if landmarks.ridge is None:  # as they were
            return None
        metric = Metric.of(landmarks.kernel, landmarks.points.shape[1])
        # κ(‖(x − y)T‖) with scikit-learn's unit length scale
        T = metric.transform / as_scikit_learn(metric.kernel).length_scale
        if with_map:
            kernel = MappedKernel(kernel, _square(T) * length_scale)
        elif problem.learned_gamma is not None:
            with np.errstate(divide="ignore"):  # of a feature that does not matter
                widths = np.clip(1 / np.abs(np.diag(T)), *np.transpose(bounds))
            widths = widths if length_scale.ndim else float(widths[0])
            kernel = clone(kernel).set_params(**{names.length_scale: widths})
        kernel = fit_scale_and_noise(kernel, landmarks.points, rows, landmarks.ridge)
        return kernel, landmarks.replace(kernel=from_scikit_learn(kernel), ridge=None)

    def _learn_metric(self, kernel: Any) -> Any:
        """The kernel after a linear map that is learnt, if that is asked for."""
        if self.process.metric is None:
            return kernel
        learned = self._learn_widths(kernel, LEARN_MATRIX, moves=False).kernel
        T = Metric.of(learned, self.problem.source.n_features or 0).transform
        # Rows as far apart as before the map: the hyper-parameters keep their meaning.
        probes = probe_rows(self.problem.source)
        X = host_rows(probes.rows(0, probes.n_rows))
        spread, mapped = np.var(X, axis=0).sum(), np.var(X @ T, axis=0).sum()
        if mapped > 0:
            T = T * np.sqrt(spread / mapped)
        maps = [_square(T), np.eye(len(T))]
        kernels = [MappedKernel(kernel, T) for T in maps]
        if self.process.optimizer is None or not kernel.n_dims:
            return kernels[0]
        few = part_of_rows(self.rows, START_ROWS, self._seed)
        points = few.source.rows(0, few.source.n_rows)
        values = [
            maximize_evidence(k, points, few, max_steps=START_STEPS).value
            for k in kernels
        ]
        return kernels[int(np.argmax(values))]

    def _learn_widths(
        self, kernel: Any, rule: str, *, moves: bool = True
    ) -> KernelProblem:
        """The problem with a kernel of a distance, learnt as gamma=rule says."""
        process, problem = self.process, self.problem
        if problem.source.n_features is None:
            raise ValueError("metric='matrix' is for rows of numbers; X holds objects.")
        name, caller = _family(kernel), type(process).__name__
        start = resolve_kernel(
            name, problem.source, caller, process.n_jobs, gamma="scale"
        )
        return learn_kernel(
            replace(problem, kernel=start),
            name,
            rule,
            n_landmarks=process._max_landmarks(),
            intercept=True,
            seed=self._seed,
            moves_landmarks=moves,
        )

    def select(self, kernel: Any, rule: StoppingRule | None = None) -> Landmarks:
        """Landmarks of all rows, weighted by the precision of their noise."""
        source, _ = self._source_and_noise(kernel)
        return self._select(
            replace(self.problem, kernel=from_scikit_learn(kernel), source=source), rule
        )

    def _select(
        self, problem: KernelProblem, rule: StoppingRule | None = None
    ) -> Landmarks:
        return replace(
            problem, source=problem.source.replace(targets=None)
        ).select_landmarks(
            rule or self.process._stopping_rule(),
            self.process.sampler,
            random_state=self._seed,
            nested=True,
        )

    def _select_on_part(self, kernel: Any, part: ProcessRows) -> Any:
        """Landmarks of part of the rows, or those that are given."""
        if not isinstance(self.process.sampler, str):
            return self.select(kernel).points
        translated, source = from_scikit_learn(kernel), part.source
        few = replace(
            self.problem,
            kernel=translated,
            source=source.replace(targets=None),
            engine=part.engine,
        )
        rule = FixedSize(self._n_landmarks)
        sampler = self.process.sampler
        return few.select_landmarks(rule, sampler, random_state=self._seed).points

    def _source_and_noise(self, kernel: Any) -> tuple[Source, float]:
        """Rows weighted by the precision of their noise, in units of one over it."""
        source, white = self.problem.source, noise_and_gradient(kernel)[0]
        if not self.rows.has_alpha:
            return source, self.rows.alpha + white
        variance = np.asarray(self.process.alpha, dtype=np.float64) + white
        noise = float(np.exp(np.mean(np.log(variance))))
        return source.replace(weights=source.weights * (noise / variance)), noise

    def fit(self, kernel: Any, landmarks: Landmarks) -> ProcessFit:
        """The process with these landmarks, on all rows."""
        source, noise = self._source_and_noise(kernel)
        rows = replace(self.rows, source=source)
        return fit_process(landmarks, rows, noise, seed=self._seed)

    def grow(
        self, kernel: Any, landmarks: Landmarks, fit: ProcessFit
    ) -> tuple[Landmarks, ProcessFit]:
        """As few landmarks as reach max_kl: twice as many each time, then a prefix.

        `landmarks` are as many as there were to learn with.
        """
        limit = self.process._max_landmarks() or self.problem.source.n_rows
        max_kl = float(self.process.max_kl)
        while fit.kl_bound > max_kl and len(landmarks) < limit:
            size = min(2 * len(landmarks), limit)
            landmarks = self.select(kernel, FixedSize(size))
            fit = self.fit(kernel, landmarks)
            if landmarks.rank < size:  # K̃ = K
                break
        if fit.kl_bound > max_kl:
            warn(
                f"max_kl={max_kl:g} was not reached: with {len(landmarks)} "
                f"landmarks the bound is {fit.kl_bound:.3g}. Raise n_landmarks, or "
                "allow a larger divergence."
            )
            return landmarks, fit
        too_few, enough = 0, len(landmarks)
        while enough - too_few > max(1, enough // PREFIX_SHARE):
            size = (too_few + enough) // 2
            trial = self.fit(kernel, landmarks[:size])
            if trial.kl_bound <= max_kl:
                enough, fit = size, trial
            else:
                too_few = size
        return landmarks[:enough], fit

    def _check_movable(self, kernel: Any) -> None:
        if not has_point_gradient(kernel):
            raise ValueError(
                "optimize_landmarks=True moves landmarks along the gradient of the "
                f"kernel, which is not known for kernel={kernel}. Use RBF, Matern, "
                "RationalQuadratic or DotProduct, or omit optimize_landmarks."
            )

    def _restarts(self, kernel: Any) -> list[np.ndarray]:
        """Random hyper-parameters, log-uniform within their bounds."""
        n_restarts = self.process.n_restarts_optimizer
        if not n_restarts:
            return []
        if not np.isfinite(kernel.bounds).all():
            raise ValueError(
                "Multiple optimizer restarts (n_restarts_optimizer>0) requires that "
                "all bounds are finite."
            )
        rng = check_random_state(self.process.random_state)
        low, high = kernel.bounds.T
        return [rng.uniform(low, high) for _ in range(n_restarts)]


def _is_likelier(mapped: Optimum, simpler: Optimum) -> bool:
    """Whether a map raises the bound, and that by rows it was not learnt from too."""
    n_held_out = round(HELD_OUT_SHARE * mapped.rows.source.n_rows)
    weights = mapped.rows.source.weights.copy()
    weights[len(weights) - n_held_out :] = 0.0  # of `move_landmarks`: the last
    seen = replace(mapped.rows, source=mapped.rows.source.replace(weights=weights))
    gain = (mapped.value - simpler.value) * len(weights)
    before, after = (
        evidence(each.kernel, each.points, seen, gradient=False).value
        for each in (simpler, mapped)
    )
    return gain > max(0.0, after - before)


def _square(T: np.ndarray) -> np.ndarray:
    """With further columns of 0: as many length scales after the map as before."""
    return np.pad(T, ((0, 0), (0, len(T) - T.shape[1])))


def _family(kernel: Any) -> str:
    """The name of the kernel of a distance that is part of a kernel; else "rbf"."""
    nus = [part.nu for part in kernel_parts(kernel) if type(part) is gp.Matern]
    names = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
    return names.get(nus[0], "rbf") if nus else "rbf"

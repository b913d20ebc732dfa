"""KernelRidge.partial_fit: sums over all rows so far, which follow the landmarks."""

from __future__ import annotations

from typing import Any

from ..edge.warnings import warn
from ..methods.ridge.running import RunningSums
from .by_epsilon import goal_for
from .callbacks import CallbackTask
from .ridge_parameters import check_alphas
from .streams import streamed

#: A stream's landmarks are changed where that leaves so many times less of K: to carry
#: sums over loses a little.
STEADY = 1.1


def fit_batch(
    estimator: Any, X: Any, y: Any, sample_weight: Any, task: CallbackTask
) -> None:
    """Fit to all rows so far, and a batch."""
    _refuse_what_is_proven(estimator)
    running = estimator.__dict__.get("_running")
    if running is None and estimator.__dict__.pop("landmarks_", None) is not None:
        warn(
            "This KernelRidge was fitted by fit, which keeps no sums to go on "
            "from: the stream begins with this batch."
        )
    before = estimator.__dict__.get("landmarks_")
    X, targets, ravel = estimator._rows_and_targets(X, y, reset=before is None)
    targets = targets[:]  # a batch is held
    _refuse_other_targets(estimator, targets, ravel, running)
    alphas = check_alphas(estimator.alpha, targets.shape[1])
    alphas += estimator._white_noise()
    landmarks, batch, engine = streamed(
        estimator,
        X,
        task,
        goal_for(estimator, float(alphas.min())),
        targets=targets,
        sample_weight=sample_weight,
        steady=STEADY,
    )
    if running is None:
        running = RunningSums.of(landmarks, batch, engine)
    else:
        running = running.having(before, landmarks, batch, engine)
    fit = running.solved(landmarks, alphas, fit_intercept=estimator.fit_intercept)
    # Nothing is proven of sums that are carried over, as little as of weights.
    estimator._keep(landmarks, fit, alphas, ravel=ravel, weighted=True)
    estimator._running, estimator.residual_ = running, None


def _refuse_what_is_proven(estimator: Any) -> None:
    if estimator.epsilon is not None or estimator.delta is not None:
        raise ValueError(
            "partial_fit proves nothing of the risk: leave epsilon and delta out, "
            "and give n_landmarks, ridge or max_trace_error."
        )


def _refuse_other_targets(
    estimator: Any, targets: Any, ravel: bool, running: RunningSums | None
) -> None:
    if running is None:
        return
    before = "(n,)" if estimator._model.ravel else f"(n, {len(running.target_shift)})"
    now = "(n,)" if ravel else f"(n, {targets.shape[1]})"
    if before != now:
        raise ValueError(
            f"y has shape {now}, but that of the batches before was {before}."
        )

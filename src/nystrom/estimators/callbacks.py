"""scikit-learn's callbacks (experimental, from 1.9 on), fed where they exist.

The only file that knows them. Without them, or where their interface has changed,
estimators fit all the same and show no bar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engines import Hook

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "CallbackTask", "with_callbacks"]

#: Steps that each stage is reported in.
STEPS = 10


class CallbackTask:
    """The fit as a task, its stages as subtasks, each in ten steps.

    `progress` is an engine's hook; `begin` and `end` go around the fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.root: Any = None
        self.stage: Any = None
        self.name, self.steps = "", 0
        wanted = hasattr(estimator, "_skl_callbacks")
        if wanted or hasattr(estimator, "_parent_callback_ctx"):
            self.root = estimator._init_callback_context(max_subtasks=None)
            self.root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """The progress hooks for the engine: none where nobody listens."""
        return () if self.root is None else (self.progress,)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell the callbacks how far a stage is."""
        if stage != self.name:
            self._end_stage()
            self.name, self.steps = stage, 0
            self.stage = self.root.subcontext(task_name=stage, max_subtasks=STEPS)
            self.stage.call_on_fit_task_begin(estimator=self.estimator)
        while self.steps < (STEPS * done // total if total else STEPS):
            self.steps += 1
            step = self.stage.subcontext(task_name="rows")
            step.call_on_fit_task_begin(estimator=self.estimator)
            step.call_on_fit_task_end(estimator=self.estimator)

    def end(self) -> None:
        """The fit is done."""
        if self.root is not None:
            self._end_stage()
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)

    def _end_stage(self) -> None:
        if self.stage is not None:
            self.stage.call_on_fit_task_end(estimator=self.estimator)
            self.stage = None

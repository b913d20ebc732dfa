"""What users call: the names that `__all__` lists, and the classes they hand back.

Called as a program it prints where each is defined, one per line, as type checkers know
them: `nystrom.estimators.kernel_ridge.KernelRidge.`.
"""

import nystrom
from nystrom import engines, kernels, landmarks, samplers, sources
from nystrom.linalg import errors as trace_error
from nystrom.linalg import operator as approximation
from nystrom.models import ridge as risk
from nystrom.samplers import cost as forecast

MODULES = (nystrom, engines, kernels, samplers, sources)
#: Nobody makes these by their names.
HANDED_BACK = (
    approximation.Approximation,
    forecast.Forecast,
    landmarks.Guarantee,
    landmarks.Landmarks,
    risk.RiskBound,
    trace_error.TraceError,
)


def public_names():
    """The full name of every public class and function."""
    things = [getattr(module, name) for module in MODULES for name in module.__all__]
    made = [thing for thing in things if hasattr(thing, "__qualname__")]
    return {
        f"{thing.__module__}.{thing.__qualname__}" for thing in (*made, *HANDED_BACK)
    }


if __name__ == "__main__":
    for name in sorted(public_names()):
        print(f"{name}.")

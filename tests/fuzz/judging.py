"""One case: right, refused with a clear message, or wrong, and then how."""

from __future__ import annotations

import re
import traceback
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn

import nystrom
from nystrom import engines
from nystrom._validation import KernelNotFiniteError
from nystrom.estimators._problem import KernelProblem

from .answers import check_functions
from .cases import case_of
from .dense import WrongError, values
from .fits import check_estimator

PACKAGE = str(Path(nystrom.__file__).parent)
HERE = str(Path(__file__).parent)
VALIDATION = str(Path(sklearn.__file__).parent / "utils")
#: What scikit-learn does itself, in exact mode.
FITTING = tuple(
    str(Path(sklearn.__file__).parent / part)
    for part in ("linear_model", "decomposition", "kernel_ridge")
)

#: Messages of cases that are refused for a reason, and the reason.
REFUSED = {
    "cannot be combined with the sampler": "goals that a sampler does not take",
    "too few for the theory|theory's constants the number": "proven sizes are large",
    "is not defined for .* not positive": "a trace says nothing of indefinite kernels",
    "takes .* landmarks .*allows no more": "epsilon asks for more than the cap",
    "sampler='kmeans' moves the landmarks off the rows": "means need a distance",
    "so it has no correlation": "a view that is constant has no correlations",
    "takes rows, not kernel='precomputed'": "two views have no one matrix",
    "solver='(cg|full)' needs alpha > 0": "least squares is for the direct solver",
    "is too small for solver='full'": "K + alpha·I is rounding",
    "solver='full' needs a positive semi": "no kernel for conjugate gradients",
    "return_std=True after solver='full'": "there is no K to solve with",
    "y has one class": "nothing to tell apart",
    "has no row of positive weight": "nothing is known of a class",
    "no class has enough of them": "nothing to choose C by",
    "is learnt from targets, but there are none": "no targets",
    "gamma='learn.*' needs a kernel of a distance": "it is that of distances",
    "Exact leverage scores need the whole": "working memory is small",
    "gamma='median' is for kernels of a distance": "it is that of distances",
    "Cannot fit_inverse_transform with a precomputed": "there are no rows",
    "has negative values, which are not affinities": "a cut needs affinities",
    "folds are not possible with": "fewer rows than folds",
    "gamma or length_scale has|gamma has .* values": "the other view is narrower",
    "should be >= n_clusters": "fewer rows than clusters",
    "needs a single gamma, because": "coordinates are other features",
    "X contains negative values, and the chi2": "coordinates are no histograms",
    "fit_inverse_transform=True is not possible": "coordinates are no histograms",
    "A split has only rows of weight 0": "nothing to train on",
    "has no correlation; at least two rows": "one row",
    "Input X contains infinity": "given values that are too large",
    "Inverse transform not implemented for sparse": "as in scikit-learn",
    "finds no way back with alpha": "scikit-learn's own solution is singular",
    "eigen_solver='arpack' fails": "as in scikit-learn",
}


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    kind: str  # right, refused, wrong
    what: str = ""


def judged(number: int) -> Verdict:
    """Run a case and judge it; never raises but for what stops a program."""
    case = case_of(number)
    with warnings.catch_warnings(record=True) as told, ExitStack() as stack:
        warnings.simplefilter("always")
        case.notes["told"] = told
        if case.working_memory is not None:
            memory = sklearn.config_context(working_memory=case.working_memory)
            stack.enter_context(memory)
        if case.engine is not None:
            stack.enter_context(engines.using(case.engine()))
        try:
            if case.estimator is None:
                check_functions(case)
            else:
                check_estimator(case)
        except WrongError as error:
            return Verdict("wrong", f"{error}")
        except Exception as error:
            return refusal(case, error)
    raw = [warning for warning in told if is_raw(warning)]
    if raw:
        where = f"{Path(raw[0].filename).name}:{raw[0].lineno}"
        return Verdict("wrong", f"a raw warning at {where}: {raw[0].message}")
    return Verdict("right")


def is_raw(warning) -> bool:
    """Whether nobody meant a warning for users: NumPy's, of an overflow and such.

    Where scikit-learn's own class does the work, its warnings are its own.
    """
    raw = issubclass(warning.category, (RuntimeWarning, DeprecationWarning))
    theirs = warning.filename.startswith(FITTING)
    return raw and not theirs and not warning.filename.startswith(HERE)


def refusal(case, error) -> Verdict:
    """Whether an error is a refusal: raised on purpose, for a known reason."""
    where = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in where if frame.filename.startswith(PACKAGE)]
    place = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in ours[:-4:-1])
    text = f"{type(error).__name__}: {error} @ {place}"
    on_purpose = where[-1].filename.startswith((PACKAGE, VALIDATION, *FITTING))
    clear = isinstance(error, (ValueError, TypeError, NotImplementedError))
    if not (on_purpose and clear):
        return Verdict("wrong", text)
    if isinstance(error, KernelNotFiniteError):
        return Verdict("refused" if overflows(case) else "wrong", text)
    for pattern, reason in REFUSED.items():
        if re.search(pattern, str(error), re.DOTALL):
            return Verdict("refused", reason)
    return Verdict("wrong", text)


def overflows(case) -> bool:
    """Whether kernel values, or sums of their squares, are out of range."""
    if "matrix" in case.notes:
        K = case.notes["matrix"].astype(np.float64)
    else:
        given = dict(case.kernel)
        if str(given.get("gamma")).startswith("learn"):
            given["gamma"] = "scale"  # where learning begins
        X = case.rows.exact
        kernel = KernelProblem.from_params(X, caller="fuzz", **given).kernel
        K = values(kernel, X, X)
        if getattr(case.estimator, "fit_inverse_transform", False):
            # Coordinates, of which the way back takes the kernel, are as large as this.
            size = np.sqrt(np.abs(K).max() * len(K))
            K = values(kernel, *[np.full((1, X.shape[1]), size)] * 2)
    most = np.finfo(np.float32 if case.rows.narrow else np.float64).max
    weight = 1.0 if case.weights is None else max(1.0, float(case.weights.sum()))
    with np.errstate(over="ignore", invalid="ignore"):
        largest = float(np.abs(K).max())
        return not largest * largest * weight * len(K) < float(most)

"""What samplers have in common that have a theorem behind them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from ..columns import Columns, diag64, trace
from ..guarantee import Guarantee
from ..precision import least_promised
from .choosing import Sampler, Work
from .goal import Ridge, Size, check_ridge

#: δ where the theory's constants are asked for without one.
DEFAULT_DELTA = 0.01


@dataclass(frozen=True)
class WithTheory(Sampler):
    """A sampler with the constants of a proof, or with those used in practice."""

    constants: str | None = None
    delta: float | None = None
    ridge: float | None = None

    takes: ClassVar[tuple[type, ...]] = (Size, Ridge)
    #: The theorem is proven for δ below 1 over this.
    delta_below: ClassVar[int]

    def __post_init__(self) -> None:
        if self.ridge is not None:
            check_ridge(self.ridge)
        delta, constants = self.delta, self.constants
        number = isinstance(delta, Real)
        if delta is not None and not (number and 0 < delta < 1 / self.delta_below):
            raise ValueError(
                f"delta={delta!r} is not allowed; it is proven for 0 < delta < "
                f"1/{self.delta_below}."
            )
        if constants not in (None, "theory", "practical"):
            raise ValueError(
                f"constants={constants!r} is unknown; allowed: 'theory', 'practical', "
                "None."
            )
        if constants == "practical" and delta is not None:
            raise ValueError(
                f"delta={delta!r} belongs to constants='theory'; leave it out, or drop "
                "constants='practical'."
            )

    @property
    def proven_delta(self) -> float | None:
        """δ of the theory's constants, which delta alone asks for; None in practice."""
        if self.constants == "theory" or self.delta is not None:
            return self.delta or DEFAULT_DELTA
        return None

    @property
    def label(self) -> str:
        return self.name if self.proven_delta is None else f"{self.name} (theory)"


def promised(
    work: Work, ridge: float, probability: float, algorithm: str
) -> Guarantee | None:
    """The guarantee of a theorem, or a note why there is none.

    Theorems are about exact numbers. Landmarks of float32 rows make K̃ and features of
    float32 values, which may be further off than λ, whatever was chosen.
    """
    kernel, source = work.kernel, work.source
    first = source.rows(0, 1)
    columns = Columns(kernel, first)
    if columns.narrow:
        least = least_promised(_trace(work, first), columns.dtype)
        if ridge < least:
            work.ledger.note(
                f"no guarantee: float32 values resolve ‖K − K̃‖₂ to {least:.2g}, not to "
                f"{ridge:.2g}; pass float64 rows"
            )
            return None
    return Guarantee(ridge, probability, source.is_weighted, algorithm)


def _trace(work: Work, first: Any) -> float:
    """tr K, in which a row of a distance's kernel counts as any other."""
    kernel, source = work.kernel, work.source
    if kernel.traits.of_distance:
        work.ledger.evaluated(1)
        return source.total_weight * float(diag64(kernel, first)[0])
    work.ledger.evaluated(source.n_rows)
    work.ledger.passed(source)
    return trace(kernel, source, engine=work.engine)

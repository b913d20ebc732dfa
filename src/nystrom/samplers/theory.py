"""What samplers have in common that have a theorem behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .choosing import Sampler
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
        if delta is not None and not 0 < delta < 1 / self.delta_below:
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

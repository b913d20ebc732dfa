"""A TOML file as a list of cases: every list in an experiment multiplies."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "configs"


class Problem(NamedTuple):
    """What cases share: rows, their precision, the kernel."""

    data: str
    rows: int  # at most
    dtype: str
    width: str  # a number is γ; "cv" is the γ that cross-validation found


class Case(NamedTuple):
    """What has one row in the results."""

    experiment: str
    problem: Problem
    threads: int
    s: int
    seed: int
    method: str

    def __str__(self) -> str:
        p = self.problem
        return f"{self.experiment}: {p.data} n={p.rows} {self.method} s={self.s}"


@dataclass(frozen=True)
class Experiment:
    """One table of a TOML file. `rows`, `sizes` and so on are lists of values."""

    name: str
    task: str
    data: list[str]
    rows: list[int]
    methods: list[str]
    sizes: list[int]
    seeds: int
    width: list[str]
    dtype: list[str]
    threads: list[int]
    options: dict

    def cases(self) -> Iterator[Case]:
        """All cases; methods change fastest, so that they are timed in turn."""
        problems = itertools.product(self.data, self.rows, self.dtype, self.width)
        for problem in itertools.starmap(Problem, problems):
            order = itertools.product(
                self.threads, self.sizes, range(self.seeds), self.methods
            )
            for threads, s, seed, method in order:
                yield Case(self.name, problem, threads, s, seed, method)


def _listed(value: object) -> list:
    return value if isinstance(value, list) else [value]


def read(path: Path) -> list[Experiment]:
    """The experiments of a TOML file, in order.

    Names that an experiment does not know stay in `options`, for its task.
    """
    with path.open("rb") as file:
        content = tomllib.load(file)
    defaults = content.get("defaults", {})
    experiments = []
    for table in content["experiment"]:
        given = {"width": "cv", "dtype": "float64", "threads": 2, "seeds": 1}
        given |= defaults | table
        listed = ("data", "rows", "methods", "sizes", "width", "dtype", "threads")
        values = {name: _listed(given.pop(name)) for name in listed}
        values["width"] = [str(width) for width in values["width"]]
        name, task, seeds = (given.pop(key) for key in ("name", "task", "seeds"))
        experiments.append(
            Experiment(name=name, task=task, seeds=seeds, options=given, **values)
        )
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        raise ValueError(f"{path.name}: experiments need names of their own: {names}")
    return experiments

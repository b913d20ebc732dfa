"""The lists that contracts run over hold every member of the package."""

from dataclasses import replace

import lists
import pytest
from lists import classes, named
from oracles_kernels import FORMULAS, Case

import nystrom
from nystrom import engines, kernels, samplers, sources


@pytest.mark.parametrize("name", lists.KERNEL_NAMES)
def test_every_named_kernel_has_a_formula(name):
    assert named(name) in map(named, FORMULAS), (
        f"The kernel {name!r} is compared with no formula: add a row to FORMULAS in "
        "tests/oracles_kernels.py."
    )


@pytest.mark.parametrize("name", classes(kernels, kernels.Kernel))
def test_every_kernel_has_a_name_or_is_made_by_users(name):
    known = {type(named(known)).__name__ for known in lists.KERNEL_NAMES}
    assert name in known | set(lists.USERS_KERNELS), (
        f"No contract runs over the kernel {name}: give it a name in NAMES of "
        "nystrom/kernels/names.py, or a reason in USERS_KERNELS of tests/lists.py."
    )


@pytest.mark.parametrize("name", classes(samplers, samplers.Sampler))
def test_every_sampler_has_a_name(name):
    assert name in {make.__name__ for make in samplers.NAMES.values()}, (
        f"No contract runs over the sampler {name}: give it a name in NAMES of "
        "nystrom/samplers."
    )


#: table: what its rows may be about
TABLES = {
    "ENGINE_MAKING": classes(engines),
    "ENGINE_OPTIONS": classes(engines),
    "ESTIMATOR_OPTIONS": classes(nystrom),
    "STORING": classes(sources),
    "USERS_KERNELS": classes(kernels),
    "OFF_THE_ROWS": samplers.NAMES,
    "CUBIC": samplers.NAMES,
    "MANY_PASSES": samplers.NAMES,
    "WITHOUT_SCORES": samplers.NAMES,
    "WITHOUT_SEED": samplers.NAMES,
    "MISSING_RARE_ROWS": samplers.NAMES,
}


@pytest.mark.parametrize("table", TABLES)
def test_no_row_is_about_what_is_gone(table):
    assert set(getattr(lists, table)) <= set(TABLES[table])


def test_no_list_is_empty():
    """A test that is parametrized by nothing is skipped."""
    assert all(value for name, value in vars(lists).items() if name.isupper())


def test_classes_are_those_that_are_public_and_can_be_made():
    found = classes(sources, sources.Source)
    assert {"DenseRows", "SparseRows"} <= set(found)
    assert {"Source", "Block", "as_source"}.isdisjoint(found)
    assert {type(estimator).__name__ for estimator in lists.ESTIMATORS} == {
        name for name in nystrom.__all__ if name[0].isupper()
    } - {"BlockwiseTransformer"}  # it has no landmarks; test_blockwise_transformer.py


def test_a_new_kernel_is_there_and_asks_for_its_formula(monkeypatch, rng):
    class Planted(kernels.RationalQuadratic):
        """Without a row anywhere."""

    names = lists.KERNEL_NAMES
    monkeypatch.setitem(names, "another", names["linear"])
    assert len(lists.cases()) == len(lists.KERNELS)
    monkeypatch.setitem(names, "planted", replace(names["linear"], make=Planted))
    *known, added = lists.cases()
    assert len(known) == len(lists.KERNELS)
    assert added == Case(Planted())
    with pytest.raises(AssertionError, match="add a row to FORMULAS"):
        added.formula(*added.rows(rng, 2))

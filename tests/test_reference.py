"""The API reference lists all that is public, and the docstrings are complete."""

import inspect
import zlib

import pytest
from reference import (
    EXTENDING,
    INTERNAL,
    PAGE,
    documented_names,
    exported_names,
    main,
    names_with_methods,
    public_methods,
    resolve,
)

if not PAGE.exists():
    pytest.skip("the pages are not here", allow_module_level=True)
USERS, DEVELOPERS = documented_names()
#: What numpydoc checks: sections, first lines, parameters, returns.
STYLE = {"GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL09", "GL10"}
STYLE |= {"SS01", "SS02", "SS03", "SS04", "SS05", "SS06", "RT03", "RT04", "RT05"}
STYLE |= {"PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10"}
COMPLETE = {"PR01", "RT01", "YD01"}
#: Estimators and functions have an example and say what to compare them with.
EXAMPLES = {"EX01", "SA01"}
WITHOUT_EXAMPLES = {"nystrom.show_versions", "nystrom.BlockwiseTransformer"}


def test_the_reference_lists_every_public_name_once():
    listed = [*USERS, *DEVELOPERS]
    assert len({*listed}) == len(listed)
    things = {id(resolve(name)) for name in listed}
    assert [name for name in listed if resolve(name) is None] == []
    exported = {n for n in exported_names() if n.rpartition(".")[2] not in INTERNAL}
    assert sorted(n for n in exported if id(resolve(n)) not in things) == []


def test_a_name_that_is_missing_is_noticed(tmp_path):
    page = tmp_path / "api.md"
    text = PAGE.read_text(encoding="utf-8").replace("   KernelPCA\n", "")
    page.write_text(text, encoding="utf-8")
    assert {*USERS} - {*documented_names(page)[0]} == {"nystrom.KernelPCA"}
    assert EXTENDING in text


METHODS = {f"nystrom.KernelRidge.{name}" for name in ("predict", "score")}
METHODS |= {"nystrom.KernelLogisticRegression.decision_function"}
METHODS |= {"nystrom.KernelPCA.inverse_transform", "nystrom.Nystroem.partial_fit"}


@pytest.mark.parametrize("lacks", ["", *sorted(METHODS)])
def test_a_method_that_the_built_site_lacks_is_named(lacks, tmp_path, capsys):
    names = {*names_with_methods()}
    assert names >= METHODS
    lines = "\n".join(f"{name} py:method 1 api.html#$ -" for name in names - {lacks})
    (tmp_path / "objects.inv").write_bytes(b"#\n" * 4 + zlib.compress(lines.encode()))
    with pytest.raises(SystemExit) as ended:
        main(tmp_path)
    assert bool(ended.value.code) == bool(lacks)
    assert capsys.readouterr().out.strip() == lacks


def with_methods(names):
    """The names, and those of methods that this package defines."""
    found = {}
    for name in names:
        thing = resolve(name)
        found.setdefault(id(thing), name)
        if inspect.isclass(thing):
            for method in public_methods(thing):
                value = inspect.getattr_static(thing, method)
                function = getattr(value, "fget", getattr(value, "__func__", value))
                if _is_ours(function) and _is_documented(function, method):
                    found.setdefault(id(function), f"{name}.{method}")
    return sorted(found.values())


def _is_ours(function):
    return str(getattr(function, "__module__", "")).startswith("nystrom.")


def _is_documented(function, name):
    return function.__doc__ and function.__name__ == name


def complaints(name, checks):
    validate = pytest.importorskip("numpydoc.validate").validate
    errors = [(c, text) for c, text in validate(name)["errors"] if c in checks]
    thing = resolve(name)
    if inspect.isclass(thing) and "Attributes" in (thing.__doc__ or ""):
        # Results describe their fields as attributes.
        errors = [(code, text) for code, text in errors if code != "PR01"]
    return errors


@pytest.mark.parametrize("name", with_methods(USERS))
def test_docstrings_for_users_are_complete(name):
    is_error = name.endswith(("Error", "Warning"))
    assert complaints(name, STYLE if is_error else STYLE | COMPLETE) == []


@pytest.mark.parametrize("name", with_methods(DEVELOPERS))
def test_docstrings_for_developers_are_tidy(name):
    assert complaints(name, STYLE) == []


@pytest.mark.parametrize("name", [n for n in USERS if n.count(".") == 1])
def test_estimators_and_functions_have_examples_and_references(name):
    checks = {"EX01"} if name in WITHOUT_EXAMPLES else EXAMPLES
    assert complaints(name, checks) == []


@pytest.mark.parametrize("name", [*USERS, *DEVELOPERS])
def test_every_public_method_has_a_docstring(name):
    thing = resolve(name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        silent = [m for m in public_methods(thing) if not inspect.getdoc(_of(thing, m))]
        assert silent == []


def _of(cls, name):
    value = inspect.getattr_static(cls, name)
    return value if isinstance(value, property) else getattr(cls, name, value)

"""The API reference of docs/api.md, beside the public names of the package.

    python tests/reference.py build/docs

Called as a program it compares the built site with the package, method by method.
"""

import importlib
import inspect
import re
import sys
import zlib
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
MODULES = ("", ".kernels", ".samplers", ".sources", ".engines", ".displays")
MODULES += (".persistence",)
#: Names in `__all__` that modules of the package share with each other.
INTERNAL = {
    *("Blockwise", "Cached", "Pairwise", "Precomputed", "PrecomputedCross"),
    *("CachedRows", "ChunkedFileRows", "NpyRows", "Pair", "RowNumbers", "Subset"),
    *("infer_source", "is_dask"),
    *("Bar", "SumSink", "checkpointed", "silent", "single_threaded_blas", "storable"),
}
#: From here on the page is for developers.
EXTENDING = "Extending nystrom"


def resolve(name):
    """The object of a full name such as `nystrom.kernels.RBF`, or None."""
    module = name.rpartition(".")[0]
    while module:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module = module.rpartition(".")[0]
    for part in name[len(module) + 1 :].split("."):
        found = getattr(found, part, None)
    return found


def documented_names(page=PAGE):
    """Full names on the page: for users, and for developers."""
    users, developers = page.read_text(encoding="utf-8").split(EXTENDING)
    return _listed(users), _listed(developers)


def _listed(text):
    names, module = [], ""
    for line in text.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z][\w.]*)$", line):
            names.append(f"{module}.{found[1]}")
    return names


def exported_names():
    """Full names of all classes and functions in `__all__` of the public modules."""
    for suffix in MODULES:
        module = importlib.import_module(f"nystrom{suffix}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}"


def public_methods(cls):
    """Names of the public methods and properties of a class, inherited ones included.

    Without fields and class attributes, without those that scikit-learn generates for
    metadata routing, and without those of built-in classes.
    """
    fields = getattr(cls, "__dataclass_fields__", {})
    for name in dir(cls):
        if name.startswith("_") or name.endswith("_request") or name in fields:
            continue
        owner = next(base for base in cls.__mro__ if name in vars(base))
        value = inspect.getattr_static(cls, name)
        if owner.__module__ in ("builtins", "abc", "os", "typing"):
            continue
        if isinstance(value, property | classmethod | staticmethod) or hasattr(
            value, "__get__"
        ):
            yield name


def built_names(folder):
    """Full names that the built site describes, by its inventory."""
    inventory = (Path(folder) / "objects.inv").read_bytes()
    lines = zlib.decompress(inventory.split(b"\n", 4)[4]).decode().splitlines()
    return {line.split(" py:")[0] for line in lines if " py:" in line}


def names_with_methods():
    """Full names of what the site has to describe, methods included."""
    for name in [name for part in documented_names() for name in part]:
        thing = resolve(name)
        is_class = inspect.isclass(thing) and not issubclass(thing, Exception)
        methods = public_methods(thing) if is_class else ()
        yield from (name, *(f"{name}.{method}" for method in methods))


def main(folder):
    """Name what the site lacks; fail if it lacks anything."""
    missing = {*names_with_methods()} - built_names(folder)
    print("\n".join(sorted(missing)))
    sys.exit(f"the API reference lacks {len(missing)} names" if missing else 0)


if __name__ == "__main__":
    main(sys.argv[1])

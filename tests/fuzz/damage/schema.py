"""Damage to what a model file says of its values: classes, numbers, references."""

from __future__ import annotations

import json
from functools import wraps

from nystrom._model_schema import SAVED_CLASSES, iter_nodes

from .archive import entries_of, some, zipped

#: What no file may call.
DANGEROUS = [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")]
DANGEROUS += [("io", "open"), ("operator", "pow"), ("scipy.sparse._lil", "lil_array")]
#: Classes and functions that a file may name, for better or worse.
NAMES = [("numpy", "zeros"), ("numpy", "ndarray"), ("builtins", "list")]
NAMES += [("scipy.sparse", "csr_array"), ("nystrom.engines", "Threads"), *DANGEROUS]
NAMES += [("nystrom", name) for name in SAVED_CLASSES]


def schema(change):
    """The change, made to the schema in place or returned as another one."""

    @wraps(change)
    def changed(rng, data):
        entries = entries_of(data)
        tree = json.loads(entries["schema.json"])
        other = change(rng, tree)
        text = other if isinstance(other, bytes) else json.dumps(other or tree)
        return zipped({**entries, "schema.json": text})

    return changed


def a_part(rng, tree):
    """Any value that was saved."""
    return some(rng, [part for _, part in iter_nodes(tree)])


def node(loader, module, name, content) -> dict:
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "content": content,
    }


@schema
def other_class(rng, tree):
    part = a_part(rng, tree)
    part["__module__"], part["__class__"] = some(rng, NAMES)


@schema
def other_loader(rng, tree):
    loaders = {part["__loader__"] for _, part in iter_nodes(tree)}
    loaders |= {"ConstructorFromReduceNode", "FunctionNode", "TypeNode", "NoSuchNode"}
    loaders |= {"OperatorFuncNode", "MethodNode", "CachedNode", "PartialNode"}
    a_part(rng, tree)["__loader__"] = some(rng, sorted(loaders))


@schema
def key_removed(rng, tree):
    part = a_part(rng, tree)
    part.pop(some(rng, list(part)))


@schema
def other_value(rng, tree):
    part = a_part(rng, tree)
    values = [None, -1, 10**400, 1e308, "", [], {}, "\ud800", True, [[[]]], "x" * 10**6]
    part[some(rng, list(part))] = some(rng, values)


@schema
def other_number(rng, tree):
    """A number or word of the model made another."""
    leaves = [part for _, part in iter_nodes(tree) if part["__loader__"] == "JsonNode"]
    values = [-1, 0, 10**12, 1e308, None, "x", True, [1, 2], {"a": 1}, "NaN"]
    some(rng, leaves)["content"] = json.dumps(some(rng, values))


@schema
def parts_swapped(rng, tree):
    """One value where another was."""
    one = json.loads(json.dumps(a_part(rng, tree)))
    other = a_part(rng, tree)
    other.clear()
    other.update(one)


@schema
def deep(rng, tree):
    depth = int(rng.integers(100, 100_000))
    return b'{"content": ' * depth + b"1" + b"}" * depth


@schema
def deep_lists(rng, tree):
    depth = int(rng.integers(50, 300))
    for _ in range(depth):
        tree = node("ListNode", "builtins", "list", [tree])
    return {**tree, "protocol": 2}


@schema
def ring(rng, tree):
    """A value with the number of another, perhaps of one that holds it."""
    numbers = [part["__id__"] for _, part in iter_nodes(tree) if "__id__" in part]
    a_part(rng, tree)["__id__"] = some(rng, numbers)


@schema
def many_references(rng, tree):
    """One array read again and again."""
    arrays = [part for _, part in iter_nodes(tree) if "file" in part]
    if not arrays:
        return tree
    array, times = some(rng, arrays), int(rng.integers(2, 20_000))
    copies = [{**array, "__id__": i} for i in range(times)]
    return {**node("ListNode", "builtins", "list", copies), "protocol": 2}


@schema
def doubling(rng, tree):
    """Lists of two of the list before, by numbers: 2ⁿ values in n lines."""
    tree = {**node("ListNode", "builtins", "list", []), "__id__": 1}
    levels = int(rng.integers(10, 60))
    for number in range(2, levels):
        again = {**node("ListNode", "builtins", "list", []), "__id__": number - 1}
        tree = {**node("ListNode", "builtins", "list", [tree, again]), "__id__": number}
    return {**tree, "protocol": 2}


@schema
def a_call(rng, tree):
    """A class or function called with what the file says."""
    module, name = some(rng, DANGEROUS if rng.random() < 0.5 else NAMES)
    calls = [[10**10], ["true"], [[10**6, 10**6]], [], [0], [10, 10**9]]
    words = [
        node("JsonNode", "builtins", "str", json.dumps(value))
        for value in some(rng, calls)
    ]
    arguments = node("TupleNode", "builtins", "tuple", words)
    loader = some(rng, ["ConstructorFromReduceNode", "OperatorFuncNode", "ListNode"])
    part = a_part(rng, tree)
    part.clear()
    part.update(node(loader, module, name, arguments), attrs=arguments)


WAYS = [
    other_class,
    other_loader,
    key_removed,
    other_value,
    other_number,
    parts_swapped,
    deep,
    deep_lists,
    ring,
    many_references,
    doubling,
    a_call,
]

"""Synthetic rows: five small sets with one trait each that a sampler can fail on, and
one of any length, for growth.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

#: Rows of `long` are generated this many at a time, from the number of the block.
BLOCK = 100_000
FEATURES = 54


def clusters(n: int, rng: np.random.Generator) -> np.ndarray:
    """Twelve clusters, from five rows to most of them, of unequal spread."""
    sizes = np.geomspace(5, 17_000, 12)
    sizes = np.maximum(5, sizes / sizes.sum() * n).astype(int)
    sizes[-1] += n - sizes.sum()
    parts = [
        rng.normal(size=(k, 10)) * rng.uniform(0.2, 1) + rng.normal(size=10) * 4
        for k in sizes
    ]
    X = np.concatenate(parts)
    return X / X.std()


def copies(n: int, rng: np.random.Generator) -> np.ndarray:
    """Every row has about nineteen near-copies."""
    base = rng.normal(size=(max(1, n // 20), 3))
    return base[rng.integers(0, len(base), n)] + 1e-3 * rng.normal(size=(n, 3))


def flat(n: int, rng: np.random.Generator) -> np.ndarray:
    """No structure: all leverage scores are about equal."""
    return rng.normal(size=(n, 50))


def tails(n: int, rng: np.random.Generator) -> np.ndarray:
    """Tails so heavy that there is no variance."""
    return rng.standard_t(1.5, size=(n, 8))


def outlier(n: int, rng: np.random.Generator) -> np.ndarray:
    """One row very far from all others."""
    X = rng.normal(size=(n, 10))
    X[n // 3] = 1e4
    return X


SYNTHETIC: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    f.__name__: f for f in (clusters, copies, flat, tails, outlier)
}


def long(n: int, path: Path) -> np.ndarray:
    """The first n of endless float32 rows with 54 features, as a memory map.

    Sixteen clusters of unequal size on a curved surface of eight dimensions, so that
    the kernel's spectrum decays and rows differ in leverage. Row i is the same for all
    n. The file is written once, under another name until it is whole.
    """
    file = path / f"long-{n}.npy"
    if not file.exists():
        path.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        shape = (n, FEATURES)
        X = np.lib.format.open_memmap(part, "w+", dtype=np.float32, shape=shape)
        for start in range(0, n, BLOCK):
            X[start : start + BLOCK] = _block(start // BLOCK)[: n - start]
        X.flush()
        part.rename(file)
    return np.load(file, mmap_mode="r")


def _block(number: int) -> np.ndarray:
    fixed = np.random.default_rng(0)
    centres = 2 * fixed.normal(size=(16, 8))
    mixing = fixed.normal(size=(8, FEATURES)) / np.sqrt(8)
    share = np.geomspace(1, 1000, 16)
    rng = np.random.default_rng([1, number])
    cluster = rng.choice(16, BLOCK, p=share / share.sum())
    inner = centres[cluster] + rng.normal(size=(BLOCK, 8)) * np.geomspace(1, 0.2, 8)
    X = np.sin(inner @ mixing) + 0.05 * rng.normal(size=(BLOCK, FEATURES))
    return np.asarray(X / 0.7, dtype=np.float32)  # variance about 1

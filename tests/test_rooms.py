"""Memory that tiles use again: never while anybody holds it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from nystrom import KernelRidge, Nystroem, rooms
from nystrom.engines import TILE

BIG = (512, 512)  # 2 MB of float64


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_what_nobody_holds_is_used_again():
    with rooms.kept():
        first = rooms.empty(BIG, np.float64)
        where = _address(first)
        del first
        assert _address(rooms.empty(BIG, np.float64)) == where


@pytest.mark.parametrize(
    "hold",
    [
        lambda a: a,
        lambda a: a[3:7],
        lambda a: a.T[1:],
        lambda a: a.view(np.uint8),
        lambda a: memoryview(a),
        lambda a: a.reshape(-1)[::2],
        lambda a: {"deep": (a[0],)},
    ],
)
def test_what_is_held_is_not(hold):
    with rooms.kept():
        first = rooms.empty(BIG, np.float64)
        first[:] = 1.0
        kept = hold(first)
        where = _address(first)
        del first
        others = [rooms.empty(BIG, np.float64) for _ in range(4)]
        assert where not in [_address(other) for other in others]
        del kept
        assert _address(rooms.empty(BIG, np.float64)) == where


def test_random_lifetimes_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    with rooms.kept():
        held: dict[int, np.ndarray] = {}
        for number in range(400):
            shape = (int(rng.integers(300, 700)), int(rng.integers(300, 700)))
            array = rooms.empty(shape, rng.choice([np.float32, np.float64]))
            array[:] = number
            held[number] = array[1:, :-1] if rng.random() < 0.5 else array
            del array
            while len(held) > rng.integers(0, 30):
                gone = list(held)[int(rng.integers(len(held)))]
                assert np.all(held.pop(gone) == gone)
        assert len(rooms._kept.buffers) <= rooms.MOST_KEPT
        assert all(np.all(array == number) for number, array in held.items())


def test_another_thread_may_hold_it():
    box: list[np.ndarray] = []

    def work() -> None:
        rooms.keep()
        box.append(rooms.empty(BIG, np.float64))
        box[0][:] = 7.0
        for _ in range(3):
            rooms.empty(BIG, np.float64)[:] = 0.0

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert np.all(box[0] == 7.0)


def test_nothing_is_kept_outside_of_passes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3 * TILE, 4)), rng.standard_normal(3 * TILE)
    for n_jobs in (1, 2):
        KernelRidge(n_landmarks=100, random_state=0, n_jobs=n_jobs).fit(X, y)
        Nystroem(random_state=0, n_jobs=n_jobs).fit_transform(X)
        assert rooms._kept.buffers is None


def test_a_pass_uses_few_rooms(monkeypatch):
    """The tiles of a long pass need no more new memory than those of a short one."""
    made: list[int] = []
    free = rooms._free

    def counting(buffers: list, n_bytes: int) -> np.ndarray:
        before = [id(each) for each in buffers]
        buffer = free(buffers, n_bytes)
        if id(buffer) not in before:
            made.append(n_bytes)
        return buffer

    monkeypatch.setattr(rooms, "_free", counting)
    rng = np.random.default_rng(0)
    counts = []
    for n_tiles in (8, 40):
        X = rng.standard_normal((n_tiles * TILE, 4)).astype(np.float32)
        model = Nystroem(n_components=200, sampler="uniform", random_state=0, n_jobs=1)
        model.fit(X)
        made.clear()
        model.transform(X)
        counts.append(len(made))
    assert 0 < counts[1] <= counts[0] + 2

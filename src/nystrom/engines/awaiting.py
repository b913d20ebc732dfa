"""Waiting for a cluster: not for ever, and with plain words for what went wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, KilledWorker, wait

#: Seconds between two looks at whether the cluster is still there.
LOOK = 2.0
#: What is "lost" is not failed: it is being made again.
FAILED = ("error", "cancelled")


class LostError(Exception):
    """What was sent to the workers is gone with them: it is to be sent again."""


class Watch:
    """Waits for the tasks of one pass.

    `rows_of` is to be told the rows that each task is about, by its key.
    """

    def __init__(self, client: Client, patience: float, name: str) -> None:
        self.client, self.patience, self.name = client, patience, name
        self.rows_of: dict[Any, tuple[int, int]] = {}
        self.alone_since: float | None = None

    def n_threads(self) -> int:
        """How many threads the workers have; waits for the first worker."""
        try:
            self.client.wait_for_workers(1, timeout=self.patience)
            return max(1, sum(self.client.nthreads().values()))
        except TimeoutError:
            raise self._alone() from None
        except OSError as error:
            raise self._unreachable() from error

    def sent(self, things: list[Any]) -> list[Future]:
        """Things at the workers, each at one of them."""
        try:
            return self.client.scatter(things, hash=False, timeout=self.patience)
        except TimeoutError:
            raise self._alone() from None
        except Exception as error:  # of any kind, where a worker dies meanwhile
            raise self._gone(error) from error

    def some_done(self, futures: Sequence[Future], others: Sequence[Future]) -> None:
        """Return when one of the first is done; raise what any has failed by."""
        while True:
            try:
                wait(list(futures), timeout=LOOK, return_when="FIRST_COMPLETED")
            except TimeoutError:
                self.look()
                continue
            except CancelledError as error:
                raise self._gone(error) from None
            failed = {f.key: f for f in [*others, *futures] if f.status in FAILED}
            if failed:
                self._raise(list(failed.values()))
            return

    def value(self, future: Future) -> Any:
        """The result of a future that is done."""
        while True:
            try:
                return future.result(timeout=LOOK)
            except TimeoutError:
                if future.status == "error":  # one of that name
                    raise
                self.look()
            except CancelledError as error:
                raise self._gone(error) from None
            except OSError as error:
                if self.client.status != "running":
                    raise self._gone(error) from None
                raise

    def look(self) -> None:
        """Raise where there is nobody left to wait for."""
        if self.client.status != "running":
            raise self._gone()
        try:
            workers = self.client.nthreads()
        except (OSError, TimeoutError) as error:
            raise self._unreachable() from error
        now = time.monotonic()
        if workers:
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = now
        elif now - self.alone_since > self.patience:
            raise self._alone()

    def _alone(self) -> RuntimeError:
        return RuntimeError(
            f"No worker of the Dask cluster at {_address(self.client)} has come in "
            f"{self.patience:g} s, in the pass {self.name!r}. Start workers and fit "
            "again."
        )

    def _unreachable(self) -> ConnectionError:
        return ConnectionError(
            f"The Dask scheduler at {_address(self.client)} went away in the pass "
            f"{self.name!r}. Nothing was fitted; connect to a cluster and fit again."
        )

    def _gone(self, error: BaseException | None = None) -> Exception:
        """What was cancelled: with the scheduler, or for lack of what was sent."""
        if self.client.status != "running":
            return self._unreachable()
        return LostError(str(error))

    def _raise(self, failed: Sequence[Future]) -> None:
        """What the first failed by; a block that kills workers is named."""
        for future in failed:
            if future.status == "error":
                error = future.exception()
                if isinstance(error, KilledWorker):
                    raise self._killed(error, failed) from None
                future.result()
        raise self._gone()

    def _killed(self, error: KilledWorker, failed: Sequence[Future]) -> RuntimeError:
        keys = [future.key for future in failed] + [error.task]
        rows = sorted({r for r in map(self.rows_of.get, keys) if r is not None})
        named = " or ".join(f"rows {start} to {stop}" for start, stop in rows)
        return RuntimeError(
            f"In the pass {self.name!r} {named or error.task} killed "
            f"{error.allowed_failures + 1} workers one after the other. Look for rows "
            "that crash a library or take more memory than a worker has."
        )


def _address(client: Client) -> str:
    return getattr(client.scheduler, "address", "an unknown address")

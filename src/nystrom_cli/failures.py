"""What a person did that cannot be done: one message, no traceback."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import Any, NoReturn

import click

from . import interrupts

#: Exit codes; 2 is click's own, for options that do not exist or do not fit.
CANNOT, INTERRUPTED = 1, 130


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


def no_column(
    where: str, name: str, columns: Iterable[Any], wanted: str = ""
) -> CommandError:
    """The error for a name that a table does not have."""
    names = [str(column) for column in columns]
    near = {each.strip().lower(): each for each in names}
    found = get_close_matches(name.strip().lower(), near, n=1)
    meant = f"did you mean {near[found[0]]!r}? It" if found else "it"
    more = ", …" if len(names) > 20 else ""
    return CommandError(
        f"{where} has no column {name!r}{wanted}; {meant} has "
        f"{', '.join(map(repr, names[:20]))}{more}."
    )


def without_tracebacks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tell errors that a person can do something about in one message."""

    @wraps(command)
    def told(*args: Any, **options: Any) -> Any:
        debug = bool(click.get_current_context().find_root().params.get("debug"))
        quiet = bool(options.get("quiet") or options.get("as_json"))
        try:
            with _warnings_told(quiet=quiet), interrupts.noticed():
                return command(*args, **options)
        except KeyboardInterrupt:
            _end_stopped()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stderr.close()  # whoever reads has enough
            sys.exit(0)
        except Exception as error:
            if interrupts.came():  # and was taken for something else
                _end_stopped()
            if debug:
                raise
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(_message(error), err=True)
            sys.exit(CANNOT)

    return told


def _end_stopped() -> NoReturn:
    click.echo("Stopped; no file was written.", err=True)
    sys.exit(INTERRUPTED)


@contextmanager
def _warnings_told(*, quiet: bool) -> Iterator[None]:
    """Each once, in words, without the line of a program that nobody here wrote."""
    told: set[str] = set()

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in told and not quiet:
            told.add(text)
            click.echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = tell
        yield


def _message(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, (CommandError, ValueError, TypeError, OSError, ImportError)):
        return text
    if isinstance(error, MemoryError):
        return text if len(text) > 20 else "There is not enough memory."
    return (
        f"{type(error).__name__}: {text}\nThis is a fault of nystrom; with --debug "
        "there is more to tell about it."
    )

"""Messages on standard error, errors without tracebacks, exit codes, and Ctrl-C that
is not lost in C readers.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.table import Table

_interrupts: list[bool] = []


@contextmanager
def record_interrupts() -> Iterator[None]:
    """Whatever becomes of the exception, `came` and `pass_on` know of Ctrl-C."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield  # somebody else's, or none of ours to see
        return

    def handle(*_: Any) -> None:
        _interrupts.append(True)
        raise KeyboardInterrupt

    _interrupts.clear()
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted() -> bool:
    """Whether somebody wants it to stop."""
    return bool(_interrupts)


def raise_if_interrupted() -> None:
    """Stop here, if somebody wanted that and was not heard."""
    if _interrupts:
        raise KeyboardInterrupt


#: Exit codes; 2 is click's own, for options that do not exist or do not fit.
FAILURE_EXIT_CODE, INTERRUPT_EXIT_CODE = 1, 130


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


def unknown_column_error(
    where: str, name: str, columns: Iterable[Any], wanted: str = ""
) -> CommandError:
    """The error for a name that a table does not have."""
    names = [str(column) for column in columns]
    by_lower_name = {each.strip().lower(): each for each in names}
    matches = get_close_matches(name.strip().lower(), by_lower_name, n=1)
    suggestion = f"did you mean {by_lower_name[matches[0]]!r}? It" if matches else "it"
    more = ", …" if len(names) > 20 else ""
    return CommandError(
        f"{where} has no column {name!r}{wanted}; {suggestion} has "
        f"{', '.join(map(repr, names[:20]))}{more}."
    )


def without_tracebacks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tell errors that a person can do something about in one message."""

    @wraps(command)
    def wrapper(*args: Any, **options: Any) -> Any:
        debug = bool(click.get_current_context().find_root().params.get("debug"))
        quiet = bool(options.get("quiet") or options.get("as_json"))
        try:
            with _print_warnings(quiet=quiet), record_interrupts():
                return command(*args, **options)
        except KeyboardInterrupt:
            _exit_interrupted()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stderr.close()  # whoever reads has enough
            sys.exit(0)
        except Exception as error:
            if was_interrupted():  # and was taken for something else
                _exit_interrupted()
            if debug:
                raise
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(_error_message(error), err=True)
            sys.exit(FAILURE_EXIT_CODE)

    return wrapper


def _exit_interrupted() -> NoReturn:
    click.echo("Stopped; no file was written.", err=True)
    sys.exit(INTERRUPT_EXIT_CODE)


@contextmanager
def _print_warnings(*, quiet: bool) -> Iterator[None]:
    """Each once, in words, without the line of a program that nobody here wrote."""
    printed: set[str] = set()

    def print_once(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed and not quiet:
            printed.add(text)
            click.echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = print_once
        yield


def _error_message(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, (CommandError, ValueError, TypeError, OSError, ImportError)):
        return text
    if isinstance(error, MemoryError):
        return text if len(text) > 20 else "There is not enough memory."
    return (
        f"{type(error).__name__}: {text}\nThis is a fault of nystrom; with --debug "
        "there is more to tell about it."
    )


class StatusPrinter:
    """Says what happens; nothing where it is to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if not self.quiet:
            Console(stderr=True, highlight=False).print(text, markup=False)

    def summary(self, summary: dict[str, Any]) -> None:
        """What was learnt, as a table on standard output."""
        if self.quiet:
            return
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in _summary_lines(summary):
            table.add_row(name, value)
        Console(highlight=False).print(table, markup=False)


def _summary_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    columns = summary["columns"]
    ours, linear, constant = (
        summary["held_out"][name] for name in ("nystrom", "linear", "constant")
    )
    error = summary["approximation_error"]
    lines = [
        ("task", f"{summary['task']} of {summary['target']}"),
        ("rows", _format_row_count(summary)),
        *[
            (part, _format_list(columns[part]))
            for part in ("numbers", "dates", "categories")
            if columns[part]
        ],
        ("landmarks", f"{summary['landmarks']}, {summary['kernel']}"),
        (
            "max_spectral_error",
            f"alpha = {summary['alpha']:.3g}, which leaves an effective dimension of "
            f"{summary['effective_dimension']:.3g}",
        ),
        ("error", f"{error:.3g} of tr K is not covered by the landmarks"),
        (
            f"{summary['score']}",
            f"{ours:.4f} on {summary['held_out_rows']} rows held out "
            f"(linear {linear:.4f}, constant {constant:.4f})" + _no_better(summary),
        ),
        ("seconds", f"{sum(summary['seconds'].values()):.1f}"),
    ]
    after = next(i for i, line in enumerate(lines) if line[0] == "landmarks")
    if columns["left_out"]:
        lines.insert(after, ("left out", _format_list(list(columns["left_out"]))))
    if summary.get("classes"):
        lines.insert(1, ("classes", _format_list(summary["classes"])))
    if "model" in summary:
        lines.append(("model", summary["model"]))
    return lines


def _no_better(found: dict[str, Any]) -> str:
    names = found["no_better_than"]
    return f": no better than {' or '.join(names)}" if names else ""


def _format_row_count(summary: dict[str, Any]) -> str:
    without = summary["rows_without_target"]
    more = f", and {without} without a value of {summary['target']}" if without else ""
    return f"{summary['rows']}{more}"


def _format_list(names: list[str], max_items: int = 12) -> str:
    """How many, and the first of them."""
    more = ", …" if len(names) > max_items else ""
    return f"{len(names)}: {', '.join(names[:max_items])}{more}"

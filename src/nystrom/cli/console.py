"""Errors without tracebacks, warnings in words, exit codes, a model's summary."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import click

#: Exit code of Ctrl-C; 1 is click's for errors and 2 for wrong options.
INTERRUPT_EXIT_CODE = 130


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


def unknown_column_error(
    file: Any, name: str, columns: Iterable[Any], wanted: str = ""
) -> CommandError:
    """The error for a name that a table does not have."""
    names = [str(column) for column in columns]
    by_lower_name = {each.strip().lower(): each for each in names}
    matches = get_close_matches(name.strip().lower(), by_lower_name, n=1)
    suggestion = f"did you mean {by_lower_name[matches[0]]!r}? It" if matches else "it"
    more = ", …" if len(names) > 20 else ""
    return CommandError(
        f"{file} has no column {name!r}{wanted}; {suggestion} has "
        f"{', '.join(map(repr, names[:20]))}{more}."
    )


class Command(click.Command):
    """A command that reports an error in one message, which says what to do."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _print_warnings(quiet=is_quiet()):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped; no file was written.", err=True)
            ctx.exit(INTERRUPT_EXIT_CODE)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stderr.close()  # the reader has enough
            ctx.exit(0)
        except Exception as error:
            if ctx.find_root().params["debug"]:
                raise
            raise click.ClickException(_error_message(error)) from None


class CommandGroup(click.Group):
    """All commands."""

    command_class = Command


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


def is_quiet() -> bool:
    """Whether the command that runs has --quiet or --json."""
    options = click.get_current_context().params
    return bool(options.get("quiet") or options.get("as_json"))


def say(text: str) -> None:
    """Print progress on standard error, unless the command is to be quiet."""
    if not is_quiet():
        click.echo(text, err=True)


def _error_message(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, (CommandError, ValueError, TypeError, OSError, ImportError)):
        return text
    if isinstance(error, MemoryError):
        return text if len(text) > 20 else "There is not enough memory."
    return (
        f"{type(error).__name__}: {text}\nThis is a fault of nystrom; --debug shows "
        "where it is."
    )


def print_summary(summary: dict[str, Any], model: str | None = None) -> None:
    """The summary of a model as a table on standard output."""
    columns, scores = summary["columns"], summary["held_out"]
    without = summary["rows_without_target"]
    names = summary["no_better_than"]
    lines = {
        "task": f"{summary['task']} of {summary['target']}",
        "classes": format_list(summary["classes"]),
        "rows": f"{summary['rows']}"
        + (f", and {without} without a value of {summary['target']}" * (without > 0)),
        "numbers": format_list(columns["numbers"]),
        "dates": format_list(columns["dates"]),
        "categories": format_list(columns["categories"]),
        "left out": format_list(list(columns["left_out"])),
        "landmarks": f"{summary['landmarks']}, {summary['kernel']}",
        "ridge": f"alpha = {summary['alpha']:.3g}, which leaves an effective dimension "
        f"of {summary['effective_dimension']:.3g}",
        "error": f"{summary['approximation_error']:.3g} of tr K is not covered by the "
        "landmarks",
        summary["score"]: f"{scores['nystrom']:.4f} on {summary['held_out_rows']} rows "
        f"held out (linear {scores['linear']:.4f}, constant {scores['constant']:.4f})"
        + (f": no better than {' or '.join(names)}" if names else ""),
        "seconds": f"{sum(summary['seconds'].values()):.1f}",
        "model": model or "",
    }
    formatter = click.HelpFormatter()
    formatter.write_dl([(name, text) for name, text in lines.items() if text])
    click.echo(formatter.getvalue(), nl=False)


def format_list(names: list[str], max_items: int = 12) -> str:
    """How many, and the first of them; "" where there are none."""
    more = ", …" if len(names) > max_items else ""
    return f"{len(names)}: {', '.join(names[:max_items])}{more}" if names else ""

"""What a person did that cannot be done: one message, no traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

#: Exit codes; 2 is click's own, for options that do not exist or do not fit.
CANNOT, INTERRUPTED = 1, 130


class CommandError(Exception):
    """The data, the model or the disk does not allow it; the message says what does."""


def without_tracebacks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tell errors that a person can do something about in one message."""

    @wraps(command)
    def told(*args: Any, **options: Any) -> Any:
        debug = bool(click.get_current_context().find_root().params.get("debug"))
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            click.echo("Stopped; nothing was written.", err=True)
            sys.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            sys.stderr.close()  # whoever reads has enough
            sys.exit(0)
        except Exception as error:
            if debug:
                raise
            click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
            click.echo(_message(error), err=True)
            sys.exit(CANNOT)

    return told


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

"""The command `nystrom`: models from a table in a file, without writing code.

It uses only the public API. Slow imports happen in the command that needs them, so
that `--help` answers at once.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command; where it cannot, say what to install."""
    try:
        from click import Abort, ClickException

        from .commands import nystrom

        try:
            # Not standalone: then click ends with 1 where it is stopped itself.
            code = nystrom.main(prog_name="nystrom", standalone_mode=False)
        except ClickException as error:
            error.show()
            code = error.exit_code
        except Abort:
            raise KeyboardInterrupt from None
        raise SystemExit(code or 0)
    except KeyboardInterrupt:  # before there was anything to tell
        raise SystemExit(130) from None
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        raise SystemExit(
            f"The command nystrom needs {error.name}, which is not installed: "
            'pip install "nystrom[cli]".'
        ) from None

"""The command `nystrom`: models from a table in a file, without writing code.

It uses only the public API.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command; where it cannot, say what to install."""
    try:
        from .commands import nystrom
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("click", "pandas"):
            raise
        raise SystemExit(
            f"The command nystrom needs {error.name}, which is not installed: "
            'pip install "nystrom[cli]".'
        ) from None
    nystrom(prog_name="nystrom")

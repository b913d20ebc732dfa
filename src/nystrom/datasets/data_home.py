"""The folder where downloaded files are kept."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "NYSTROM_DATA_HOME"


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """The folder where downloaded files are kept; it need not exist yet.

    Parameters
    ----------
    data_home : str or path, default=None
        The folder itself; None for that of the environment variable
        `NYSTROM_DATA_HOME`, or `nystrom_data` in the home directory if it is not set.

    Returns
    -------
    path
        With `~` replaced by the home directory. Each set has a folder of its own in it.

    Examples
    --------
    >>> from nystrom.datasets import get_data_home
    >>> get_data_home("elsewhere").name
    'elsewhere'
    """
    # An empty variable is one that is not set, as everywhere in a shell.
    chosen = data_home or os.environ.get(VARIABLE) or Path("~") / "nystrom_data"
    return Path(chosen).expanduser()

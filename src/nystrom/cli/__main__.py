"""`python -m nystrom.cli`."""

from . import main

main()

"""`python -m nystrom_cli`."""

from . import main

main()

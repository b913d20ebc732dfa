"""Ridge regression on Z, from sums over blocks of rows."""

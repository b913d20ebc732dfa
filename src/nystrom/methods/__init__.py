"""Linear methods on Z, as plain functions of sums over blocks of rows."""

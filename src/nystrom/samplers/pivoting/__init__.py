"""Landmarks as pivots of a Cholesky factorisation, one after the other."""

"""Widths of a kernel, learnt from targets."""

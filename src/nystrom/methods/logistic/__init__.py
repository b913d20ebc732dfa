"""Kernel logistic regression on landmarks, from sums over blocks."""

"""The paper: Algorithms 2 and 3, their levels and their constants."""

"""Planted faults: what the suite must notice, as data, and what plants them."""

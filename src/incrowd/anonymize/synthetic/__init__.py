"""Synthetic rows: noisy small tables, a model that agrees with them, and rows drawn from it."""

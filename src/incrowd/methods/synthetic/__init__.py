"""Synthetic rows: drawn from a model of noisy small tables."""

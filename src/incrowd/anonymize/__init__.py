"""Algorithms on codes and counts; no tables."""

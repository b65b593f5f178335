"""Attacks on a release, one file for each risk."""

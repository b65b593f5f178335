"""Adversaries: one file for each risk; arrays in, an estimate with its interval out."""

"""A spec that is good, for tests that spoil it."""

from __future__ import annotations

GOOD = """\
table: patients.parquet  # where it lies
unit: one row per person
columns:
  name: {role: identifier}
  zip: {role: quasi, hierarchy: {mask: {length: 5}}}
  sex: {role: quasi, hierarchy: {groups: {Person: [female, male]}}}
  # the years that voters can be born in
  birth_year: {role: quasi, hierarchy: {intervals: {from: 1900, to: 2026, widths: [2, 4, 8]}}}
  race: {role: quasi, hierarchy: {csv: race.csv}}
  diagnosis: {role: sensitive}
release: {method: safe, epsilon: 1.0, delta: 1e-6}
"""

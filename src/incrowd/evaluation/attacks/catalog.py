"""The attacks by name, and what each needs. It loads nothing, so that help can list them."""

from __future__ import annotations

ATTACKS = ("linkage", "join", "singling-out", "inference", "membership", "extreme")
# On every release that is made: those that take a second
QUICK = ("linkage", "join", "inference", "membership", "extreme")
# On synthetic rows, in which no group of rows stands for a group of people
ON_SYNTHETIC_ROWS = ("linkage", "join", "singling-out", "inference", "membership")
# Left out where there is no secret, or nothing of it is shown
NEEDS_SECRET = ("inference",)
# Left out where people are known by the levels of the release alone
NEEDS_VALUES = ("extreme",)
# About one person, who could as well be one of the control group: differential privacy then bounds
# the success by that on the control group. Membership has a bound of its own
BOUNDED_BY_CONTROL = ("join", "inference")

QUESTIONS = {  # of WP216, and the attacks that try each: a dossier groups attacks by them
    "Singling out": ("singling-out", "extreme"),
    "Linkability": ("linkage", "join"),
    "Inference": ("inference",),
    "Membership (not a question of WP216)": ("membership",),
}

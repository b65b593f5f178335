"""The two papers' evaluations, computed again."""

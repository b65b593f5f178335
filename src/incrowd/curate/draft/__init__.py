"""Draft a spec from a table: guesses that a curator confirms."""

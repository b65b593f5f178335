"""The proofs in code: numbers and arrays only, no tables."""

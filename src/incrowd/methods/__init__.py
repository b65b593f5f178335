"""The ways to publish: from a spec and a table to rows and a guarantee."""

"""Tables on this machine, by Polars and Arrow."""

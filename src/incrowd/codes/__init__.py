"""A table as integers: values, hierarchies, distinct tuples with counts."""

"""Lower bounds on epsilon from many runs of a method."""

"""Tables of counts that add up."""

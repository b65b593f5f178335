"""Tables of counts that add up: residuals with exact noise, estimates, and whole counts."""

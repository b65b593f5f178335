"""(k,epsilon)-anonymous releases: classes, and noise inside each of them."""

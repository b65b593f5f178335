"""k-anonymous releases: classes of at least k rows that look alike."""

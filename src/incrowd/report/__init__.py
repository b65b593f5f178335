"""Reports for people: HTML pages with figures."""

"""The curator's private report."""

"""What a release is worth and what it risks, measured on codes and counts; no tables."""

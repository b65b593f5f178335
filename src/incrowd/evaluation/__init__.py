"""Judge a release: measures of it, attacks, audits, the report."""

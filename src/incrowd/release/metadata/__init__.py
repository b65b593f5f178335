"""Files that describe a release to catalogs, registries, repositories and regulators."""

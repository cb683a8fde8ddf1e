"""The language in which facts are stated: versions, ranges, conditions, names, rows, artifacts."""

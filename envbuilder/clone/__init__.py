"""A copy of an existing conda environment."""

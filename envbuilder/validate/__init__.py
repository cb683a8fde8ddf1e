"""Checks of an existing environment. Only reads."""

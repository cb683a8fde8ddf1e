"""The recipe of an existing environment. Only reads."""

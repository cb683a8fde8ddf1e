"""Talking to Lmod and Environment Modules: trees, what loading a module does, what it brings."""

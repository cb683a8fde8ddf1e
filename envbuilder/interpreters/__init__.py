"""The Pythons of a machine and what each says of itself."""

from .find import InterpreterSearch, find_interpreters

__all__ = ["InterpreterSearch", "find_interpreters"]

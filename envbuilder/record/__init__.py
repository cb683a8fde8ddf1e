"""Evidence beside the prefix: appended, never changed."""

from .evidence import append, next_run, read_all

__all__ = ["append", "next_run", "read_all"]

"""Evidence beside the prefix: appended, never changed."""

from .build_facts import read_build_facts
from .evidence import append, next_run, read_all

__all__ = ["append", "next_run", "read_all", "read_build_facts"]

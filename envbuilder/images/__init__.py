"""Images: what one begins with, the program that builds, packs and tests it, what it holds."""

from .apptainer import Builder, find_builder
from .base import read_base
from .contents import sandbox_root, unpack_records
from .sif import arch_of, read_header

__all__ = [
    "Builder",
    "arch_of",
    "find_builder",
    "read_base",
    "read_header",
    "sandbox_root",
    "unpack_records",
]

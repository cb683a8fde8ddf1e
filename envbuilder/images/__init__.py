"""Images: what one begins with, and the program that builds, packs and tests it."""

from .apptainer import Builder, find_builder
from .base import read_base
from .sif import arch_of

__all__ = ["Builder", "arch_of", "find_builder", "read_base"]

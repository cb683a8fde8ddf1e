"""Images: what one begins with, the program that builds, packs and tests it, what it holds."""

from .apptainer import Builder, find_builder
from .base import read_base
from .contents import sandbox_root, unpack_records
from .oci import OciConfig, check_layer, pack_layout
from .sif import arch_of, read_header

__all__ = [
    "Builder",
    "OciConfig",
    "arch_of",
    "check_layer",
    "find_builder",
    "pack_layout",
    "read_base",
    "read_header",
    "sandbox_root",
    "unpack_records",
]

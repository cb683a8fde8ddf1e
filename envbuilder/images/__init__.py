"""Images: what one begins with, the program that builds, packs and tests it, what it holds."""

from .apptainer import MOUNT, Builder, check_rights, find_builder
from .base import read_base
from .built import obtain_base
from .contents import LABELS, labels_of, sandbox_root, unpack_records
from .contract import check_contract, fitting
from .obtain import BaseRequest
from .oci import OciConfig, check_layer, pack_layout
from .oci_contents import (
    ImageManifest,
    attached_signatures,
    is_layout,
    read_manifest,
    unpack_layout_records,
)
from .reference import BuildFile, ImageFile, RegistryImage, parse_base
from .registry import pull, push, tags_of
from .sif import arch_of, read_header
from .system import environments, unpack_system

__all__ = [
    "LABELS",
    "MOUNT",
    "BaseRequest",
    "BuildFile",
    "Builder",
    "ImageFile",
    "ImageManifest",
    "OciConfig",
    "RegistryImage",
    "arch_of",
    "attached_signatures",
    "check_contract",
    "check_layer",
    "check_rights",
    "environments",
    "find_builder",
    "fitting",
    "is_layout",
    "labels_of",
    "obtain_base",
    "pack_layout",
    "parse_base",
    "pull",
    "push",
    "read_base",
    "read_header",
    "read_manifest",
    "sandbox_root",
    "tags_of",
    "unpack_layout_records",
    "unpack_records",
    "unpack_system",
]

"""Another architecture's Debian on this machine, its programs run by qemu-user.

``system`` finds or makes one, ``enter`` runs a bundle's installer or a smoke test in it.
"""

from __future__ import annotations

from .enter import EmulatedRun, install, prove_again
from .system import (
    NAMED,
    SystemRequest,
    can_be_found,
    check_emulator,
    find_system,
    systems_folder,
)

__all__ = [
    "NAMED",
    "EmulatedRun",
    "SystemRequest",
    "can_be_found",
    "check_emulator",
    "find_system",
    "install",
    "prove_again",
    "systems_folder",
]

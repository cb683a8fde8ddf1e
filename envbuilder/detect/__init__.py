"""Finding out what a machine has: the snapshot, the detected site, and doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .doctor import doctor
    from .host import Host
    from .interpreters import Detected, snapshot
    from .local import local_notes, local_site
    from .places import cache_folder

__all__ = [
    "Detected",
    "Host",
    "cache_folder",
    "doctor",
    "local_notes",
    "local_site",
    "snapshot",
]

_MODULES = {
    "Detected": "interpreters",
    "Host": "host",
    "cache_folder": "places",
    "doctor": "doctor",
    "local_notes": "local",
    "local_site": "local",
    "snapshot": "interpreters",
}


def __getattr__(name: str) -> Any:
    # Most verbs need one of these or none; all together take a tenth of a second.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    # Importing the module "doctor" made that name mean the module.
    globals()[name] = value
    return value

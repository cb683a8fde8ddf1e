"""Finding out what a machine has: the snapshot, the detected site, and doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .doctor import doctor
    from .interpreters import Detected, snapshot
    from .local import local_notes, local_site

__all__ = ["Detected", "doctor", "local_notes", "local_site", "snapshot"]

_MODULES = {
    "Detected": "interpreters",
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

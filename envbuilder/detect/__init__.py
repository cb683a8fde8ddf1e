"""Finding out what a machine has: the snapshot, the detected site, and doctor."""

from __future__ import annotations

from .doctor import doctor
from .interpreters import Detected, snapshot
from .local import local_notes, local_site

__all__ = ["Detected", "doctor", "local_notes", "local_site", "snapshot"]

"""From a plan to a lock: pip is asked, with the plan's pins, which files it would take."""

from .failures import Refusal
from .locker import make_lock

__all__ = ["Refusal", "make_lock"]

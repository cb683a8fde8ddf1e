"""From a plan to a lock: which files its pins are, wheels and sources, with hash and size."""

from .failures import Refusal
from .locker import Known, Where, make_lock
from .questions import question
from .target import OLDEST_GLIBC
from .virtualenv import Run

__all__ = ["OLDEST_GLIBC", "Known", "Refusal", "Run", "Where", "make_lock", "question"]

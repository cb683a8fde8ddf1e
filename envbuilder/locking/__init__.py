"""From a plan to a lock: which files its pins are, wheels and sources, with hash and size."""

from .checks import changed_inputs, check_is_for, check_runtime
from .distributions import Distributions, distributions_of
from .failures import Refusal
from .fingerprint import request_fingerprint
from .locker import LockEnvironment, make_lock
from .target import OLDEST_GLIBC
from .virtualenv import Run

__all__ = [
    "OLDEST_GLIBC",
    "Distributions",
    "LockEnvironment",
    "Refusal",
    "Run",
    "changed_inputs",
    "check_is_for",
    "check_runtime",
    "distributions_of",
    "make_lock",
    "request_fingerprint",
]

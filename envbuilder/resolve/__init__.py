"""Choosing who provides each component, and in which version."""

from .request import Request, Resolution, Wanted
from .resolver import resolve
from .why import why, why_not

__all__ = ["Request", "Resolution", "Wanted", "resolve", "why", "why_not"]

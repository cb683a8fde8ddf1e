"""Choosing who provides each component, and in which version."""

from .resolver import Request, Resolution, Wanted, resolve

__all__ = ["Request", "Resolution", "Wanted", "resolve"]

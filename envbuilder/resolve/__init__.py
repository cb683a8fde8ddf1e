"""Choosing who provides each component, and in which version."""

from .resolver import Request, Resolution, resolve

__all__ = ["Request", "Resolution", "resolve"]

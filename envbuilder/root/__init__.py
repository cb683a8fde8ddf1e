"""Environments of a root by name and lock, and their removal; its layout is target_tools'."""

from ..target_tools.root.stamp import Root

__all__ = ["Root"]

"""Choosing who provides each component, and in which version."""

from .flag_table import TABLE_ROWS
from .request import Request, Requirement
from .resolver import resolve

__all__ = ["TABLE_ROWS", "Request", "Requirement", "resolve"]

"""Choosing who provides each component, and in which version."""

"""Pipelines of continuous integration: rendered for a provider, or run on this machine."""

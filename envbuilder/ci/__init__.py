"""Pipelines of continuous integration, rendered for a provider."""

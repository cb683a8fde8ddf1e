"""Rendering: pure functions from a lock to the texts of files. Nothing is written or run here."""

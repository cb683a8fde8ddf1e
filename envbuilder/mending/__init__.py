"""Puts files back that are not as they were recorded: ``validate --fix``.

A file is put back if its hash was recorded and a package holds a file of that hash; nothing else
is known to be right, so nothing else is written. See docs/validating.md.
"""

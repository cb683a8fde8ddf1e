"""What a form's module has.

A new form is a module with these names, and its line in FORMS.
"""

from __future__ import annotations

from typing import Protocol

from ..subject import Subject


class Form(Protocol):
    """One file that a plan can be rendered to.

    ``FILE``: its name, ``{name}`` being the recipe's. ``SUMMARY``: what it is.
    """

    @property
    def FILE(self) -> str: ...  # noqa: N802
    @property
    def SUMMARY(self) -> str: ...  # noqa: N802

    def render(self, subject: Subject) -> str:
        """Return its text. Raises UsageError for a plan that cannot have it."""

"""Who is told how a build goes while it goes."""

from __future__ import annotations

from typing import Protocol

from .plan import Step


class Listener(Protocol):
    """Is told of each step of a build: its beginning, what it prints, its end."""

    def step_begins(self, step: Step) -> None: ...

    def step_says(self, line: str) -> None: ...

    def step_ends(self, step: Step, *, done: bool) -> None: ...

"""Who is told how a build goes while it goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from .plan import Step


class Listener(Protocol):
    """Is told of each step of a build: its beginning, what it prints, its end."""

    def step_begins(self, step: Step) -> None: ...

    def step_says(self, line: str) -> None: ...

    def step_ends(self, step: Step, *, done: bool) -> None: ...


@contextlib.contextmanager
def reported(step: Step, listener: Listener) -> Iterator[None]:
    """Tell a listener that a step begins, and how it ended."""
    listener.step_begins(step)
    done = False
    try:
        yield
        done = True
    finally:
        listener.step_ends(step, done=done)

"""Stacks of ranks as people are told them."""

from __future__ import annotations

import pytest

from envbuilder.model.evidence import _program_first

RUNTIME = 'Thread 0x01 (most recent call first):\n  File "wait.py", line 1 in wait'
MAIN = 'Thread 0x02 (most recent call first):\n  File "train.py", line 9 in <module>'
CRASHED = 'Current thread 0x03 (most recent call first):\n  File "c.py", line 3 in crash'


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        (f"Timeout (0:00:13)!\n{RUNTIME}\n\n{MAIN}", f"Timeout (0:00:13)!\n{MAIN}\n{RUNTIME}"),
        (f"Fatal\n\n{RUNTIME}\n\n{CRASHED}\n\n{MAIN}", f"Fatal\n{CRASHED}\n{MAIN}\n{RUNTIME}"),
        ("no stack at all\nin two lines", "no stack at all\nin two lines"),
    ],
)
def test_the_programs_own_thread_comes_first(stack: str, told: str) -> None:
    assert _program_first(stack) == told

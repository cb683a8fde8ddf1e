"""Stacks of ranks as people are told them."""

from __future__ import annotations

import pytest

from envbuilder.model.evidence import SmokeResult, _program_first

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


def test_a_long_stack_is_cut_and_says_so() -> None:
    calls = [f'  File "train.py", line {number} in step' for number in range(15)]
    stack = "\n".join(["Thread 0x02 (most recent call first):", *calls])
    result = SmokeResult.model_construct(reasons=(), stacks={"rank 1": stack})
    title, *told = result.failure_lines()
    assert title == "stack of rank 1:"
    assert told[-2:] == [f"  {calls[10].strip()}", "  ... 4 more lines"]
    assert len(told) == 12 + 1

"""What a process does, by py-spy, which reads it from outside: https://github.com/benfred/py-spy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..base import Line, fits
from ..process import Finished
from ..target_tools.files import parse_json
from ..text import shown
from .values import StackFrame

Run = Callable[[list[str]], Finished]

MOST_FRAMES = 200
"""So many frames of a stack are kept: a recursion without end has more."""


class CallStack(NamedTuple):
    """The frames of a main thread, innermost first; or why there are none."""

    frames: tuple[StackFrame, ...]
    unseen: str | None = None


def read_stack(program: str, pid: int, run: Run, *, stopped: bool) -> CallStack:
    """Return what the main thread of a process does. *stopped*: by a signal.

    With its native frames, which name the call of MPI, where py-spy can read them: on x86_64 and
    aarch64, not of a process that is stopped.
    """
    words = [program, "dump", "--json", "--pid", str(pid)]
    ways = [["--nonblocking"]] if stopped else [["--native"], [], ["--nonblocking"]]
    said = "py-spy printed nothing"
    for more in ways:
        done = run([*words, *more])
        if done.ok:
            return _main_thread(done.stdout, pid)
        said = next(filter(None, map(str.strip, done.stderr.splitlines())), said)
    return CallStack((), shown(said.removeprefix("Error: "), 300))


def _main_thread(text: str, pid: int) -> CallStack:
    try:
        threads = parse_json(text)
        main = next((each for each in threads if each["os_thread_id"] == pid), threads[-1])
        frames = tuple(_frames(main["frames"]))
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return CallStack((), "the output of py-spy is not a stack")
    return CallStack(frames[:MOST_FRAMES])


def _frames(found: list[Mapping[str, Any]]) -> Iterator[StackFrame]:
    for each in found:
        function, file = str(each["name"]), str(each["filename"])
        # An address without a name tells nobody anything.
        if function.startswith("0x") or not (fits(Line, function) and fits(Line, file)):
            continue
        yield StackFrame(function=function, file=file, line=int(each["line"]))

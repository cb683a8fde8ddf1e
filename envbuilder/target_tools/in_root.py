"""What tools have in common that a script starts to work in a root."""

import os
import signal
import sys
from typing import Callable, NoReturn

from .errors import BuildError, EnvbuildError
from .processes import ASKING_FOR_THE_END


def say(text: str) -> None:
    """Print a line on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def run(work: "Callable[[dict[str, str]], object]", nothing: str) -> int:
    """Return the exit code of ``work(environ)``; see ``exit_code``.

    *environ*: the variables on standard input, each with a NUL byte behind it.
    """
    pairs = (each.partition(b"=") for each in sys.stdin.buffer.read().split(b"\0") if each)
    environ = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    # Nobody else may have written what chooses the code that runs: see trust.
    os.umask(os.umask(0o022) | 0o022)
    for number in ASKING_FOR_THE_END:
        signal.signal(number, end)
    return exit_code(lambda: work(environ), nothing)


def exit_code(work: "Callable[[], object]", nothing: str) -> int:
    """Do some work, print its errors and return the exit code.

    *nothing*: the hint if a file cannot be read or written: what was not done.
    """
    try:
        work()
    except EnvbuildError as error:
        for problem in error.problems:
            say("\n".join([f"error: {problem.message}", *(f"hint: {h}" for h in problem.hints)]))
        return int(error.code)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        say(f"error: {error.strerror or error}{where}\nhint: {nothing}")
        return int(BuildError.code)
    return 0


def end(number: int, _: object) -> "NoReturn":
    """Exit on a signal, so that running processes are ended on the way out."""
    sys.exit(128 + number)

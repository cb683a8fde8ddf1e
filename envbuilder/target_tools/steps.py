"""The steps of a build, as create and install-bundle run them: each alone, for a limited time."""

import re
from collections.abc import Mapping

from .errors import UsageError

# Seconds after which a step is taken for hung: steps take minutes, compiling a framework hours.
STEP_SECONDS = 2 * 3600.0
COMPILING_SECONDS = 24 * 3600.0
LIMIT_VARIABLE = "ENVBUILD_STEP_SECONDS"
MORE_TIME = f"{LIMIT_VARIABLE}=SECONDS gives each step more time"


def stated_limit(environ: "Mapping[str, str]") -> "float | None":
    """Return the user's time limit for each step in seconds; None if it is not set.

    Raises UsageError if it is not a positive number.
    """
    text = environ.get(LIMIT_VARIABLE)
    if not text:
        return None
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) == 0:
        raise UsageError(
            "build.malformed-time-limit", f"{LIMIT_VARIABLE}={text!r} is not a number of seconds"
        )
    return float(text)


def limit_of(step: str, stated: "float | None") -> float:
    """Return the time limit of a step in seconds. *stated*: the user's limit."""
    compiles = step.startswith("build-")
    return stated or (COMPILING_SECONDS if compiles else STEP_SECONDS)


def ending(code: "int | None", limit: float) -> str:
    """Return how a step failed. *code*: its exit code; None: it was ended at the time limit."""
    if code is None:
        return f"did not end within {limit:g} s and was ended"
    if code == 0:
        return "ended without its completion mark"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

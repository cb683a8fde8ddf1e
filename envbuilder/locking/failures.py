"""What it means when the modules, the virtualenv or pip fail while a lock is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import BuildError, MissingToolError
from ..model.plan import Pin, Plan
from ..process import Finished
from ..target_tools.names import normalize

# So much of the end of what the module system said is shown.
_LAST_LINES = 20

# Who wants which release of what, behind the words that it cannot be.
_CAUSES = re.compile(r"^The conflict is caused by:\n((?:    .+\n)+)", re.MULTILINE)
_UNREACHABLE = re.compile(
    r"Failed to establish a new connection|Temporary failure in name resolution|"
    r"Name or service not known|Network is unreachable|Connection refused|"
    r"NewConnectionError|NameResolutionError|ProxyError|ConnectTimeoutError|"
    r"problem confirming the ssl certificate|Max retries exceeded|40[13] Client Error"
)
_REFUSED = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)==(\S+)")
_LACKING = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")
# pip's word for a package of which no file fits this Python and platform.
LACKING = "(from versions: none)"
# What pip writes before a traceback.
_CRASHED = "ERROR: Exception:"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
_FULL = "No space left on device"
_FULL_HINT = "the file system is full: free some space, or use another --root"
_NOT_REACHED = (
    "cannot lock the files to install: the package index is not reachable",
    (
        "create the environment on a node with network, or set pip-indexes in the site file to "
        "a mirror"
    ),
)


class Refusal(Exception):  # noqa: N818 - an answer that the solver works with, no error of the user's
    """The index does not offer a pin; the resolver has to choose another."""

    def __init__(self, component: str, version: str, reason: str) -> None:
        super().__init__(reason)
        self.component = component
        self.version = version


def modules_failure(plan: Plan, entered: Finished) -> BuildError:
    """Return what to say when the modules of the plan do not load."""
    printed = [line for line in (entered.stdout + entered.stderr).splitlines() if line.strip()]
    hints = [line for line in printed if line.startswith("hint: ")]
    lines = [f"  | {line}" for line in printed if line not in hints][-_LAST_LINES:]
    how = "do not load as planned" if entered.code is not None else "did not load in time"
    return BuildError(
        "modules.load-failed",
        "\n".join([f"the modules of site {plan.site} {how}", *lines]),
        *(hint.removeprefix("hint: ") for hint in hints),
        f"the plan loads: {', '.join(plan.modules.loads)}",
    )


def venv_failure(plan: Plan, made: Finished) -> BuildError:
    """Return what to say when the interpreter cannot make a virtualenv."""
    hints = (
        (_FULL_HINT,)
        if _FULL in made.stderr + made.stdout
        else (
            "on Debian, install the package python3-venv",
            "envbuild doctor lists the interpreters and their missing modules",
        )
    )
    return BuildError(
        "python.no-virtualenv",
        f"{plan.python} cannot make a virtualenv: {_last_line(made)}",
        *hints,
    )


def pip_failure(plan: Plan, pins: Sequence[Pin], answer: Finished) -> Exception:
    """Return what pip's answer means: a Refusal of one of *pins*, or an error to show."""
    text = answer.stderr + answer.stdout
    if answer.code is None:
        return BuildError(
            "index.timeout",
            "resolving packages against the index took too long: pip did not end in time",
            "check that the package index is reachable",
            "pip may be trying many releases: add constraints to the stack",
        )
    if _FULL in text:
        return BuildError("file.disk-full", f"pip failed: {_last_line(answer)}", _FULL_HINT)
    if _CRASHED in text:
        return _unreadable(text)
    unreachable = _UNREACHABLE.search(text)
    if unreachable:
        message = next(line for line in text.splitlines() if unreachable[0] in line)
        return BuildError("index.unreachable", *_NOT_REACHED, f"pip said: {message.strip()[:300]}")
    refused = _REFUSED.search(text)
    by_name = {normalize(pin.locator): pin for pin in pins}
    if refused and normalize(refused[1]) in by_name:
        pin = by_name[normalize(refused[1])]
        if LACKING in text:
            return BuildError(
                "index.no-file",
                f"the package index offers no file of {pin.locator} for this Python and platform",
                "if the mirror is incomplete, set pip-indexes (recipe or site file) to another",
                f"pip said: {_last_line(answer)}",
            )
        return Refusal(pin.component, pin.version, _last_line(answer))
    return BuildError(
        "pip.no-solution",
        f"pip finds no set of packages for recipe {plan.recipe}: {_last_line(answer)}",
        *(line[:300] for line in text.splitlines() if _tells(line)),
        *(line.strip()[:300] for found in _CAUSES.findall(text) for line in found.splitlines()),
        *_sources_only(text),
    )


def _unreadable(text: str) -> BuildError:
    """Return what to say where pip ends with a traceback: what it was sent is no page."""
    looking = [line for line in text.splitlines() if line.startswith("Looking in ")]
    lines = [line for line in text[text.index(_CRASHED) :].splitlines() if line.strip()]
    return BuildError(
        "index.unreadable-answer",
        "pip cannot read the answer of a package index",
        *(_CREDENTIALS.sub("", line)[:300] for line in looking),
        f"pip said: {lines[-1].strip()[:300]}",
        "a proxy or login page may have answered instead: check the index with curl",
    )


def _tells(line: str) -> bool:
    # Its list of all releases for other Pythons is longer than a screen.
    return line.startswith("ERROR:") and "Ignored the following" not in line


def _sources_only(text: str) -> Iterator[str]:
    """Say what may be done about a package that no wheel fits, where pip wants no other."""
    lacking = _LACKING.search(text)
    if lacking:
        yield (
            f"{lacking[1]} may exist only as sources: envbuild builds it if the recipe's stack "
            "includes it and knowledge states from-source for it"
        )


def index_unreachable(place: str, reason: str) -> BuildError:
    """Return what to say when a place that may have a file does not answer."""
    return BuildError("index.unreachable", *_NOT_REACHED, f"{place}: {reason[:300]}")


def pip_is_missing(python: str, finished: Finished) -> MissingToolError:
    """Return what to say when the tool's own Python has no pip that can report."""
    version = finished.stdout.strip() if finished.ok else "none"
    return MissingToolError(
        "pip.too-old",
        "locking for another Python or machine requires pip >= 22.2 in the Python of envbuild; "
        f"it has {version}",
        f"{python} -m pip install 'pip>=22.2' (or {python} -m ensurepip --upgrade first)",
    )


def _last_line(answer: Finished) -> str:
    output = answer.stderr if answer.stderr.strip() else answer.stdout
    lines = [line for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if line.startswith("ERROR:")] or lines
    return lines[-1].strip()[:300] if lines else f"exit code {answer.code}"

"""Asking pip which files the plan's packages are, without installing any.

pip resolves with its own configuration (mirrors, proxies, certificates), so whatever works for
the user's pip works here, and its report names the URL and hash of each file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

from packaging.utils import canonicalize_name

from ..errors import BuildError
from ..model.plan import Artifact, Lock, Pin, Plan
from ..process import Finished

Run = Callable[[Sequence[str]], Finished]

# So much of the end of what the module system said is shown.
LAST_LINES = 20

UNREACHABLE = re.compile(
    r"Failed to establish a new connection|Temporary failure in name resolution|"
    r"Name or service not known|Network is unreachable|Connection refused|"
    r"NewConnectionError|NameResolutionError|ProxyError|ConnectTimeoutError|"
    r"problem confirming the ssl certificate|Max retries exceeded|40[13] Client Error"
)
REFUSED = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)==(\S+)")
# pip's word for a package of which no file fits this Python and platform.
LACKING = "(from versions: none)"
FULL = "No space left on device"
FULL_HINT = "the file system is full: free some space, or use another --root"


class Refusal(Exception):  # noqa: N818 - an answer that the solver works with, no error of the user's
    """The index does not offer a pin; the resolver has to choose another."""

    def __init__(self, component: str, version: str, reason: str) -> None:
        super().__init__(reason)
        self.component = component
        self.version = version


def make_lock(
    plan: Plan, run: Run, scratch: Path, imports: Mapping[str, str] | None = None
) -> Lock:
    """Return the lock of *plan*; may use the network.

    *run* starts a command in the plan's environment, with *scratch*/venv as its virtualenv.
    *imports* says, by distribution name, what Python imports a package as, where that is known.
    Raises Refusal for a pin that the index does not offer, BuildError where it cannot be reached,
    the packages contradict each other or the modules are not those of the plan.
    """
    python = str(scratch / "venv" / "bin" / "python")
    _load_modules(plan, run)
    _make_venv(plan, run, scratch)
    report = scratch / "report.json"
    answer = run(_pip_command(plan, python, report, "--quiet"))
    if not answer.ok and LACKING in answer.stderr:
        # Whether an index lacks a package or could not be asked, pip only says at length.
        answer = run(_pip_command(plan, python, report, "-vv"))
    if not answer.ok:
        raise _failure(plan, answer)
    installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    return Lock(plan=plan, artifacts=_artifacts(plan, installs, imports or {}))


def _load_modules(plan: Plan, run: Run) -> None:
    """Enter the environment once for nothing else, so that its failure is told as what it is."""
    if not plan.modules.loads:
        return
    entered = run(["true"])
    if entered.ok:
        return
    said = [line for line in (entered.stdout + entered.stderr).splitlines() if line.strip()]
    hints = [line for line in said if line.startswith("hint: ")]
    lines = [f"  | {line}" for line in said if line not in hints][-LAST_LINES:]
    how = "do not load as planned" if entered.code is not None else "did not load in time"
    raise BuildError(
        "\n".join([f"the modules of site {plan.site} {how}", *lines]),
        *(hint.removeprefix("hint: ") for hint in hints),
        f"the plan loads: {', '.join(plan.modules.loads)}",
    )


def _make_venv(plan: Plan, run: Run, scratch: Path) -> None:
    flags = ["--system-site-packages"] if plan.system_site_packages else []
    venv = scratch / "venv"
    made = run([plan.python, "-m", "venv", *flags, str(venv)])
    if made.ok:
        return
    if (venv / "bin" / "python").exists():
        # venv keeps to itself what its ensurepip said; run alone, that says it again.
        made = run([str(venv / "bin" / "python"), "-I", "-m", "ensurepip", "--upgrade"])
        if made.ok:
            return
    hints = (
        (FULL_HINT,)
        if FULL in made.stderr + made.stdout
        else (
            "on Debian its venv module is the package python3-venv",
            "envbuild doctor lists the interpreters and what each lacks",
        )
    )
    raise BuildError(f"{plan.python} cannot make a virtualenv: {_last_line(made)}", *hints)


def _pip_command(plan: Plan, python: str, report: Path, loudness: str) -> list[str]:
    # Packages of the site are left in place; without them everything must be reported.
    ignore = [] if plan.system_site_packages else ["--ignore-installed"]
    return [
        *(python, "-m", "pip", "install", "--dry-run", loudness, *ignore),
        *("--only-binary", ":all:", "--report", str(report)),
        *_index_options(plan),
        *(_requirement(pin) for pin in _pip_pins(plan)),
        *plan.packages,
    ]


def _index_options(plan: Plan) -> list[str]:
    words: list[str] = []
    for number, url in enumerate(plan.pip_indexes):
        words += ["--index-url" if number == 0 else "--extra-index-url", url]
    for url in plan.find_links:
        words += ["--find-links", url]
    return words


def _pip_pins(plan: Plan) -> tuple[Pin, ...]:
    return tuple(pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "pip")


def _requirement(pin: Pin) -> str:
    return f"{pin.locator}=={pin.version}"


def _failure(plan: Plan, answer: Finished) -> Exception:
    text = answer.stderr + answer.stdout
    if answer.code is None:
        return BuildError("pip did not answer in time", "is the package index reachable?")
    if FULL in text:
        return BuildError(f"pip cannot work: {_last_line(answer)}", FULL_HINT)
    unreachable = UNREACHABLE.search(text)
    if unreachable:
        said = next(line for line in text.splitlines() if unreachable[0] in line)
        return BuildError(
            "the package index cannot be reached, so the files to install cannot be locked",
            "on a node without network create it where there is one, or set pip-indexes in the "
            "site file to a mirror",
            f"pip said: {said.strip()[:300]}",
        )
    refused = REFUSED.search(text)
    pins = {canonicalize_name(pin.locator): pin for pin in _pip_pins(plan)}
    if refused and canonicalize_name(refused[1]) in pins:
        pin = pins[canonicalize_name(refused[1])]
        if LACKING in text:
            return BuildError(
                f"the package index offers no file of {pin.locator} for this Python and platform",
                "is it a complete mirror? pip-indexes in the recipe or site file names another",
                f"pip said: {_last_line(answer)}",
            )
        return Refusal(pin.component, pin.version, _last_line(answer))
    return BuildError(
        f"pip finds no set of packages for recipe {plan.recipe}: {_last_line(answer)}",
        *(line for line in text.splitlines() if line.startswith("ERROR:")),
    )


def _last_line(answer: Finished) -> str:
    said = answer.stderr if answer.stderr.strip() else answer.stdout
    lines = [line for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if line.startswith("ERROR:")] or lines
    return lines[-1].strip()[:300] if lines else f"exit code {answer.code}"


def _artifacts(
    plan: Plan, installs: Sequence[dict[str, Any]], imports: Mapping[str, str]
) -> tuple[Artifact, ...]:
    by_name = {str(canonicalize_name(name)): module for name, module in imports.items()}
    found = [_artifact(plan, entry, by_name) for entry in installs]
    return tuple(sorted(found, key=lambda artifact: (artifact.name, artifact.version)))


def _artifact(plan: Plan, entry: dict[str, Any], imports: Mapping[str, str]) -> Artifact:
    name = canonicalize_name(entry["metadata"]["name"])
    url = _without_credentials(entry["download_info"]["url"])
    build_only = {canonicalize_name(pin.locator) for pin in plan.build_pins}
    run_time = {canonicalize_name(pin.locator) for pin in plan.pins}
    return Artifact(
        name=name,
        version=entry["metadata"]["version"],
        filename=unquote(urlsplit(url).path.rpartition("/")[2]),
        url=url,
        sha256=_sha256(url, entry["download_info"]),
        build_only=name in build_only - run_time,
        imports=imports.get(name),
    )


def _sha256(url: str, info: dict[str, Any]) -> str:
    archive = info.get("archive_info", {})
    known = archive.get("hashes", {}).get("sha256")
    if known:
        return str(known)
    if url.startswith("file://"):
        content = Path(url2pathname(urlsplit(url).path)).read_bytes()
        return hashlib.sha256(content).hexdigest()
    raise BuildError(
        f"the index gives no sha256 for {url}", "use an index that does, or a folder of wheels"
    )


def _without_credentials(url: str) -> str:
    """A mirror's user and password must not end in a file that others read."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))

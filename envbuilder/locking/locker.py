"""Asking pip which files the plan's packages are, without installing any.

pip resolves with its own configuration (mirrors, proxies, certificates), so whatever works for
the user's pip works here, and its report names the URL and hash of each file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

from packaging.utils import canonicalize_name

from ..errors import BuildError, UsageError
from ..model.plan import Artifact, Lock, Pin, Plan
from ..process import Finished
from .failures import LACKING, modules_failure, pip_failure, venv_failure

Run = Callable[[Sequence[str]], Finished]


def make_lock(
    plan: Plan, run: Run, scratch: Path, imports: Mapping[str, str] | None = None
) -> Lock:
    """Return the lock of *plan*; may use the network.

    *run* starts a command in the plan's environment, with *scratch*/venv as its virtualenv.
    *imports* says, by distribution name, what Python imports a package as, where that is known.
    Raises Refusal for a pin that the index does not offer, BuildError where it cannot be reached,
    the packages contradict each other or the modules are not those of the plan, UsageError where
    something would have to be built from its sources.
    """
    _all_are_wheels(plan)
    python = str(scratch / "venv" / "bin" / "python")
    _load_modules(plan, run)
    _make_venv(plan, run, scratch)
    report = scratch / "report.json"
    answer = run(_pip_command(plan, python, report, "--quiet"))
    if not answer.ok and LACKING in answer.stderr:
        # Whether an index lacks a package or could not be asked, pip only says at length.
        answer = run(_pip_command(plan, python, report, "-vv"))
    if not answer.ok:
        raise pip_failure(plan, _pip_pins(plan), answer)
    installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    return Lock(plan=plan, artifacts=_artifacts(plan, installs, imports or {}))


def _all_are_wheels(plan: Plan) -> None:
    if plan.builds:
        names = ", ".join(f"{each.component} {each.version}" for each in plan.builds)
        raise UsageError(
            f"{plan.recipe} needs {names} built from source, which envbuild cannot do yet",
            "envbuild plan shows the stack, its modules and the flags to build it with by hand",
        )


def _load_modules(plan: Plan, run: Run) -> None:
    """Enter the environment once for nothing else, so that its failure is told as what it is."""
    if not plan.modules.loads:
        return
    entered = run(["true"])
    if not entered.ok:
        raise modules_failure(plan, entered)


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
    raise venv_failure(plan, made)


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

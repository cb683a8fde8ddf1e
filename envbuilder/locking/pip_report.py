"""Asking pip which files it would take: the environment's own, or the tool's for another Python."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..model.plan import Pin, Plan
from ..process import Finished
from .closure import check_closure
from .failures import LACKING, pip_failure, pip_is_missing
from .settings import PipSettings, read_settings
from .stub_wheels import is_present, write_present
from .target import Target
from .virtualenv import REPORTS, Run, pip_version

_PROGRAM = Path(__file__).with_name("pip_for_target.py")
_KEEPING = Path(__file__).with_name("pip_keeping.py")
# How pip names what it took from a constraint and could not use.
_CONSTRAINED = re.compile(r"The user requested \(constraint\) ([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class InstalledDistributions:
    """What is there without pip, normalised name -> version.

    ``firm``: what the plan decided; ``loose``: what else lies there, which another version may
    take the place of where something needs one.
    """

    firm: Mapping[str, str] = field(default_factory=dict)
    loose: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PipReport:
    """Entries of pip's report, of what must be fetched, and the settings pip found them with."""

    installs: tuple[dict[str, Any], ...]
    settings: PipSettings


def ask_own(
    plan: Plan,
    run: Run,
    python: str,
    scratch: Path,
    firm: Mapping[str, str],
    downloads: Path | None = None,
) -> PipReport:
    """Ask the pip of the plan's own environment; what it downloads for that goes to *downloads*."""
    # Packages of the site are left in place; without them everything must be reported.
    ignore = [] if plan.system_site_packages else ["--ignore-installed"]
    options = [*ignore, *write_present(scratch, firm)]
    pip = [python, str(_KEEPING), str(downloads)] if downloads else [python, "-m", "pip"]
    answer, report = _asked(plan, run, pip, options, scratch)
    if not answer.ok:
        raise pip_failure(plan, pip_pins(plan), answer)
    return PipReport(_to_fetch(_installs(report), scratch), _settings(plan, run, python))


def ask_for_target(
    plan: Plan,
    run: Run,
    target: Target,
    scratch: Path,
    present: InstalledDistributions,
    with_pip: bool,
) -> PipReport:
    """Ask the pip of the Python that envbuild runs on, for another Python.

    *with_pip*: the environment gets a pip of the index, as its own cannot install today's wheels.
    Raises MissingToolError without a pip that can report.
    """
    version, finished = pip_version(run, sys.executable)
    if version < REPORTS:
        raise pip_is_missing(sys.executable, finished)
    markers = scratch / "markers.json"
    markers.write_text(json.dumps(target.markers()), encoding="utf-8")
    command = [sys.executable, str(_PROGRAM), str(markers)]
    options = ["--target", str(scratch / "nowhere"), *target.pip_options()]
    own = ("pip",) if with_pip else ()
    loose = dict(present.loose)
    while True:
        there = write_present(scratch, {**loose, **present.firm})
        answer, report = _asked(plan, run, command, [*options, *there], scratch, own)
        in_the_way = set(_CONSTRAINED.findall(answer.stderr + answer.stdout)) & loose.keys()
        if answer.ok or not in_the_way:
            break
        loose = {name: found for name, found in loose.items() if name not in in_the_way}
    if not answer.ok:
        raise pip_failure(plan, pip_pins(plan), answer)
    installs = _installs(report)
    check_closure(installs, [*requirements(plan), *own], target)
    return PipReport(_to_fetch(installs, scratch), _settings(plan, run, sys.executable))


def pip_pins(plan: Plan) -> tuple[Pin, ...]:
    """Return the pins that pip installs, those of build tools last."""
    return tuple(pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "pip")


def requirements(plan: Plan) -> list[str]:
    """Return everything that pip is asked for."""
    return [*(f"{pin.locator}=={pin.version}" for pin in pip_pins(plan)), *plan.packages]


def _asked(
    plan: Plan,
    run: Run,
    pip: Sequence[str],
    options: Sequence[str],
    scratch: Path,
    more: Sequence[str] = (),
) -> tuple[Finished, Path]:
    report = scratch / "report.json"
    wanted = [*requirements(plan), *more]
    if not wanted:
        report.write_text('{"install": []}', encoding="utf-8")
        return Finished((), 0, "", ""), report

    def command(*loudness: str) -> list[str]:
        return [
            *(*pip, "install", "--dry-run", *loudness, *options),
            *("--only-binary", ":all:", "--report", str(report)),
            *_index_options(plan),
            *wanted,
        ]

    answer = run(command("--progress-bar", "off"))
    if not answer.ok and LACKING in answer.stderr:
        # Whether an index lacks a package or could not be asked, pip only says at length.
        answer = run(command("-vv"))
    return answer, report


def _index_options(plan: Plan) -> list[str]:
    words: list[str] = []
    for number, url in enumerate(plan.pip_indexes):
        words += ["--index-url" if number == 0 else "--extra-index-url", url]
    for url in plan.find_links:
        words += ["--find-links", url]
    return words


def _settings(plan: Plan, run: Run, python: str) -> PipSettings:
    finished = run([python, "-m", "pip", "config", "list"])
    return read_settings(finished.stdout if finished.ok else "", plan)


def _installs(report: Path) -> list[dict[str, Any]]:
    installs: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return installs


def _to_fetch(installs: Sequence[dict[str, Any]], scratch: Path) -> tuple[dict[str, Any], ...]:
    return tuple(each for each in installs if not is_present(scratch, each["download_info"]["url"]))

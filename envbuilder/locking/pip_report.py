"""Asking pip which files it would take: the environment's own, or the tool's for another Python."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BuildError
from ..model.plan import Pin, Plan
from ..process import Finished
from ..redaction.secret_queries import without_secret_queries
from ..target_tools.names import normalize
from .failures import LACKING, pip_failure, pip_is_missing
from .settings import PipSettings, read_settings
from .target import TargetPlatform
from .virtualenv import REPORTS, Run, pip_version

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# What is there without pip, told to pip: wheels with nothing in them, as constraints.
#
# What the site's modules provide and what is built from source must be taken as it is: not fetched,
# and not replaced by another version that some package would rather have. A constraint with an
# address makes pip take that file or say that it does not fit.
STUBS = "present"


def write_present(scratch: Path, present: Mapping[str, str]) -> list[str]:
    """Write a wheel for each distribution (normalised name -> version); return pip's options."""
    if not present:
        return []
    folder = scratch / STUBS
    folder.mkdir(exist_ok=True)
    lines = [
        f"{name} @ {_wheel(folder, name, version).as_uri()}\n"
        for name, version in sorted(present.items())
    ]
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(lines), encoding="utf-8")
    return ["--constraint", str(constraints)]


def well_named(versions: Mapping[str, str]) -> dict[str, str]:
    """Return what a wheel can be named after; an old distribution may have any text as version."""
    # lazy import: 25 ms
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    good = {}
    for name, version in versions.items():
        try:
            good[str(canonicalize_name(name, validate=True))] = str(Version(version))
        except ValueError as error:
            if not isinstance(error, InvalidVersion):
                continue
    return good


def _wheel(folder: Path, name: str, version: str) -> Path:
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    path = folder / f"{stem}-py3-none-any.whl"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: envbuild\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        "RECORD": f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in texts.items():
            wheel.writestr(f"{info}/{each}", text)
    return path


@dataclass(frozen=True)
class Closure:
    """What *roots* need of a report's entries, followed from one to the next.

    ``needs``: of each entry that something needs, the names that it needs itself. ``wrong``: what
    is missing or of another version than is wanted.
    """

    needs: Mapping[str, tuple[str, ...]]
    wrong: tuple[str, ...]


def closure_of(
    installs: Sequence[Mapping[str, Any]], roots: Sequence[str], markers: Mapping[str, str]
) -> Closure:
    """Follow the requirements whose markers hold. *roots* are requirements as pip takes them.

    *markers*: the environment that they are evaluated in, as in PEP 508.
    """
    # lazy import: 36 ms
    from packaging.requirements import Requirement

    entries = _by_name(installs)
    wrong = []
    todo = [Requirement(each) for each in roots]
    seen: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    while todo:
        wanted = todo.pop()
        name = normalize(wanted.name)
        entry = entries.get(name)
        if entry is None:
            wrong.append(f"{wanted} is missing")
            continue
        version = entry["metadata"]["version"]
        if not wanted.url and not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted} is required, but {name} {version} was chosen")
        for extra in {"", *wanted.extras} - seen.setdefault(name, set()):
            seen[name].add(extra)
            found = [*_needs(entry, {**markers, "extra": extra})]
            needs.setdefault(name, set()).update(normalize(each.name) for each in found)
            todo += found
    return Closure({name: tuple(sorted(each)) for name, each in needs.items()}, tuple(wrong))


def check_closure(
    installs: Sequence[Mapping[str, Any]], closure: Closure, target: TargetPlatform
) -> None:
    """Raise BuildError unless a report's entries are all that is needed on *target*.

    Every requirement whose marker holds there must be met by an entry, every entry must take that
    Python, and none may be there for nothing.
    """
    entries = _by_name(installs)
    wrong = [*_unfit(entries, target), *closure.wrong]
    wrong += [f"no package needs {name}" for name in entries.keys() - closure.needs.keys()]
    if wrong:
        raise BuildError(
            "pip.wrong-files",
            "pip chose wrong files for Python "
            f"{target.python} on {target.arch}: {'; '.join(sorted(wrong))}",
            "make the lock on a machine of that architecture with this Python, or upgrade "
            "pip: python -m pip install --upgrade pip",
        )


def _by_name(installs: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {normalize(each["metadata"]["name"]): each for each in installs}


def _unfit(entries: Mapping[str, Mapping[str, Any]], target: TargetPlatform) -> Iterator[str]:
    from packaging.specifiers import SpecifierSet

    python = target.markers()["python_full_version"]
    for name, entry in entries.items():
        requirement = entry["metadata"].get("requires_python")
        if requirement and not SpecifierSet(requirement).contains(python, prereleases=True):
            yield f"{name} {entry['metadata']['version']} requires Python {requirement}"


def _needs(entry: Mapping[str, Any], environment: dict[str, str]) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    for text in entry["metadata"].get("requires_dist", ()):
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate(environment):
            yield need


_REPORT = "report.json"
_RUN_PIP = str(Path(__file__).with_name("run_pip.py"))
# How pip names what it took from a constraint and could not use.
_CONSTRAINED = re.compile(r"The user requested \(constraint\) ([A-Za-z0-9._-]+)")


class InstalledDistributions(NamedTuple):
    """What is there without pip, normalised name -> version.

    ``firm``: what the plan decided; ``loose``: what else lies there, which another version may
    take the place of where something needs one.
    """

    firm: Mapping[str, str]
    loose: Mapping[str, str] = {}


class PipReport(NamedTuple):
    """Entries of pip's report, of what must be fetched, and the settings pip found them with.

    ``needs``: the names that each of them requires.
    """

    installs: tuple[dict[str, Any], ...]
    needs: Mapping[str, tuple[str, ...]]
    settings: PipSettings


def ask_own(
    plan: Plan,
    run: Run,
    python: str,
    scratch: Path,
    firm: Mapping[str, str],
    downloads: Path | None = None,
    exact: Mapping[str, str] = MappingProxyType({}),
) -> PipReport:
    """Ask the pip of the plan's own environment; what it downloads for that goes to *downloads*.

    *exact*: the versions of distributions that are decided already.
    """
    # Packages of the site are left in place; without them everything must be reported.
    ignore = [] if plan.system_site_packages else ["--ignore-installed"]
    options = [*ignore, *write_present(scratch, firm), *_exactly(scratch, exact)]
    pip = [python, _RUN_PIP, "keep", str(downloads)] if downloads else [python, "-m", "pip"]
    answer = _asked(plan, run, pip, options, scratch)
    installs, markers = _installs(plan, answer, scratch)
    closure = closure_of(installs, _requirements(plan), markers)
    return _report(plan, run, python, scratch, installs, closure)


def ask_for_target(
    plan: Plan,
    run: Run,
    target: TargetPlatform,
    scratch: Path,
    present: InstalledDistributions,
    with_pip: bool,
    exact: Mapping[str, str] = MappingProxyType({}),
) -> PipReport:
    """Ask the pip of the Python that envbuild runs on, for another Python.

    *with_pip*: the environment gets a pip of the index, as its own cannot install today's wheels.
    *exact* as for ``ask_own``.
    Raises MissingToolError without a pip that can report.
    """
    version, finished = pip_version(run, sys.executable)
    if version < REPORTS:
        raise pip_is_missing(sys.executable, finished)
    markers = scratch / "markers.json"
    markers.write_text(json.dumps(target.markers()), encoding="utf-8")
    command = [sys.executable, _RUN_PIP, "for", str(markers)]
    options = ["--target", str(scratch / "nowhere"), *target.pip_options()]
    options += _exactly(scratch, exact)
    own = ("pip",) if with_pip else ()
    loose = dict(present.loose)
    while True:
        there = write_present(scratch, {**loose, **present.firm})
        answer = _asked(plan, run, command, [*options, *there], scratch, own)
        in_the_way = set(_CONSTRAINED.findall(answer.stderr + answer.stdout)) & loose.keys()
        if answer.ok or not in_the_way:
            break
        loose = {name: found for name, found in loose.items() if name not in in_the_way}
    installs, _ = _installs(plan, answer, scratch)
    closure = closure_of(installs, [*_requirements(plan), *own], target.markers())
    check_closure(installs, closure, target)
    return _report(plan, run, sys.executable, scratch, installs, closure)


def _exactly(scratch: Path, versions: Mapping[str, str]) -> list[str]:
    """Return the options by which pip takes these versions, where it takes the distributions."""
    if not versions:
        return []
    file = scratch / "exact.txt"
    lines = (f"{name}=={version}\n" for name, version in sorted(versions.items()))
    file.write_text("".join(lines), encoding="utf-8")
    return ["--constraint", str(file)]


def pip_pins(plan: Plan) -> tuple[Pin, ...]:
    """Return the pins that pip installs, those of build tools last."""
    return tuple(pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "pip")


def _requirements(plan: Plan) -> list[str]:
    return [*(f"{pin.locator}=={pin.version}" for pin in pip_pins(plan)), *plan.packages]


def _asked(
    plan: Plan,
    run: Run,
    pip: Sequence[str],
    options: Sequence[str],
    scratch: Path,
    more: Sequence[str] = (),
) -> Finished:
    wanted = [*_requirements(plan), *more]
    if not wanted:
        (scratch / _REPORT).write_text('{"install": []}', encoding="utf-8")
        return Finished((), 0, "", "")
    options = [*options, "--only-binary", ":all:", "--report", str(scratch / _REPORT)]
    for url in plan.find_links:
        options += ["--find-links", url]
    dry_run = [*_index_variables(plan), *pip, "install", "--dry-run"]
    answer = run([*dry_run, "--progress-bar", "off", *options, *wanted])
    if not answer.ok and LACKING in answer.stderr:
        # Whether an index lacks a package or could not be asked, pip only says at length.
        answer = run([*dry_run, "-vv", *options, *wanted])
    said = (without_secret_queries(text) for text in answer[2:])
    return Finished(answer.command, answer.code, *said)


def _index_variables(plan: Plan) -> list[str]:
    """Return what starts pip with the plan's indexes, and without those of its configuration.

    --extra-index-url would add to the configured ones; a variable takes their place, but an empty
    one counts as none. Of files that are equal to it pip takes those of the last index, so the
    plan's first one comes last; ``index_order`` checks what it took.
    """
    if not plan.pip_indexes:
        return []
    *others, last = plan.pip_indexes
    more = " ".join(reversed(others)) or last
    return ["env", f"PIP_INDEX_URL={last}", f"PIP_EXTRA_INDEX_URL={more}"]


def _installs(
    plan: Plan, answer: Finished, scratch: Path
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the entries of pip's report, also of what is there, and what it evaluated markers in.

    Raises what its failure means.
    """
    if not answer.ok:
        raise pip_failure(plan, pip_pins(plan), answer)
    report = json.loads((scratch / _REPORT).read_text(encoding="utf-8"))
    # Its links may hold secrets, and a process that is killed leaves its folder.
    (scratch / _REPORT).unlink()
    return report["install"], report.get("environment", {})


def _report(
    plan: Plan,
    run: Run,
    python: str,
    scratch: Path,
    installs: Sequence[dict[str, Any]],
    closure: Closure,
) -> PipReport:
    finished = run([python, "-m", "pip", "config", "list"])
    settings = read_settings(finished.stdout if finished.ok else "", plan)
    present = f"{(scratch / STUBS).as_uri()}/"
    urls = ((each["download_info"]["url"], each) for each in installs)
    to_fetch = tuple(each for url, each in urls if not url.startswith(present))
    return PipReport(to_fetch, closure.needs, settings)

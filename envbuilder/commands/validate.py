"""``envbuild validate``: what is wrong with an environment, whoever built it. Only reads."""

from __future__ import annotations

import re
from pathlib import Path

from ..backends import BACKENDS
from ..documents.load import read_document
from ..errors import UsageError
from ..host import Host, is_file, is_there
from ..inspect import checks
from ..inspect.checks.protocol import seen
from ..inspect.facts import Environment, arch_of
from ..inspect.reading import read_environment
from ..inspect.stack import Stack, stack_of
from ..model.base import ModuleName, fits
from ..model.matching import Verdict
from ..model.outcome import RowMatch
from ..model.recipe import Severity
from ..model.site import StatedModule
from ..model.validation import Acceptance, Baseline, CheckInfo, Finding, Validation
from ..resolve.facts import Facts
from ..resolve.names import names
from ..resolve.verdicts import StackFacts
from ..root.environments import find
from ..text import shown
from .advisories import row_matches
from .context import Context
from .options import RootOptions
from .places import find_root

_PUBLISHED = re.compile(r"[a-z0-9][a-z0-9._+-]*(/[0-9]+)?")
_WORST: tuple[Severity, ...] = ("error", "warning", "info")
# What is told: of rows that a remedy lifts, or that speak of what is not there, nothing is.
_TOLD: tuple[Verdict, ...] = ("holds", "unknown")
# What holds a row: a version that was read is certain, what it does to this user is likely.
_WHY_ROW = "it is recorded among the advisories: envbuild advisories show {}"


def list_checks() -> tuple[CheckInfo, ...]:
    """Return every kind of finding."""
    return checks.table()


def validate(
    name: str | None,
    root: str | None,
    context: Context,
    *,
    hashes: bool = False,
    loaded: bool = False,
) -> Validation:
    """Return what is wrong with an environment; None: the one that is active in this shell.

    *name*: a folder, or NAME[/N] of *root*. *hashes*: every file that its packages recorded is
    hashed. *loaded*: the modules that are loaded in this shell belong to it; None is then the
    Python that the shell runs. Raises UsageError for what is none.
    """
    prefix = _first_python(context) if loaded and name is None else _prefix(name, root, context)
    environment = read_environment(prefix, context.environ, loaded=loaded)
    stack = stack_of(environment, context.knowledge.components, _provided(environment, context))
    facts = Facts({**stack.facts, **_backend(environment)}, stack.flags)
    rows = row_matches(
        context.knowledge, StackFacts(stack.versions, facts, stack.origins, complete=True)
    )
    told = [row for row in rows if row.verdict in _TOLD]
    sure = [_of_row(row, stack, environment) for row in told if row.verdict == "holds"]
    findings = [*checks.run(environment, hashes=hashes), *sure]
    python = environment.interpreter
    return Validation(
        path=shown(str(environment.prefix), 400),
        kind=environment.kind,
        python=python.version or python.series,
        arch=arch_of(python.machine),
        distributions=len(environment.distributions),
        libraries=len(environment.libraries),
        files=sum(len(each.recorded or ()) for each in environment.distributions),
        modules=tuple(shown(each.name, 400) for each in environment.modules),
        findings=tuple(sorted(findings, key=_place)),
        undecided=tuple(row for row in told if row.verdict == "unknown"),
    )


def accept(value: Validation, baseline: Path, context: Context) -> Validation:
    """Return what was found, each with the reason of the baseline's first row that fits it.

    Raises DocumentError (what is written) or UsageError (the file).
    """
    rows = read_document(context.path(baseline), Baseline).value.accepted
    used: set[Acceptance] = set()
    findings = []
    for each in value.findings:
        row = next((row for row in rows if _accepts(row, each)), None)
        used |= {row} if row else set()
        findings.append(each.model_copy(update={"accepted": row.reason}) if row else each)
    unused = tuple(row for row in rows if row not in used)
    return value.model_copy(update={"findings": tuple(findings), "unused": unused})


def _accepts(row: Acceptance, found: Finding) -> bool:
    """Whether a row speaks of a finding; a summary with brackets in it is no pattern."""
    if row.id != found.id:
        return False
    pattern = ".*".join(map(re.escape, row.summary.split("*"))) if row.summary else ".*"
    return re.fullmatch(pattern, found.summary) is not None


def _first_python(context: Context) -> Path:
    """Return the prefix of the Python that the shell runs, as Python finds it: site.py."""
    host = Host(context.environ)
    path = host.which("python3") or host.which("python")
    if path is None:
        raise UsageError("there is no python3 on PATH", "load a module that brings one")
    if is_file(Path(path).parent.parent / "pyvenv.cfg"):
        return Path(path).parent.parent
    return Path(path).resolve().parent.parent


def _provided(environment: Environment, context: Context) -> dict[str, dict[str, str]]:
    """Return the components that the loaded modules are, by the modules' names."""
    if not environment.modules:
        return {}
    known = names(context.knowledge.components, {}, {})
    fitting = (each.name for each in environment.modules if fits(ModuleName, each.name))
    return {name: known.provides(StatedModule(name=name)) for name in fitting}


def _prefix(name: str | None, root: str | None, context: Context) -> Path:
    if name is not None:
        folder = context.path(name)
        published = _PUBLISHED.fullmatch(name) and not is_there(folder)
        there = find_root(RootOptions(root), context) if published else None
        if there is None:
            return folder
        home, version = find(there, name)
        return home.prefix(version.id)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if active := context.environ.get(name):
            return Path(active)
    raise UsageError(
        "no environment is active in this shell", "name one: envbuild validate PATH|NAME"
    )


def _backend(environment: Environment) -> dict[str, str]:
    """Return the fact that tells which backend makes such environments, if one does."""
    made_by = {each.TRAITS.environment: name for name, each in BACKENDS.items()}
    return {"backend": made_by[environment.kind]} if environment.kind in made_by else {}


def _place(each: Finding) -> tuple[int, str, str]:
    return _WORST.index(each.severity), each.id, each.summary


def _of_row(row: RowMatch, stack: Stack, environment: Environment) -> Finding:
    named = [about.partition("@")[0] for about in row.about]
    places = tuple(stack.places[name] for name in named if name in stack.places)
    return Finding(
        id=row.id,
        severity=row.severity,
        confidence="likely",
        summary=f"{', '.join(row.about)}: {row.summary}"[:500],
        evidence=places or (seen(environment.prefix),),
        why=_WHY_ROW.format(row.id),
        fix=row.fix or f"envbuild advisories show {row.id}",
        source=row.link,
    )

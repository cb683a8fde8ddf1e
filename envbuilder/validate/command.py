"""``envbuild validate``: what is wrong with an environment, whoever built it. Only reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from ..documents.library import find as find_document
from ..documents.load import for_arch, load_recipe, read_document
from ..documents.site_choice import ChosenSite, with_partition
from ..errors import UsageError
from ..inspect.environments import backend_of, components_of, rows_of
from ..inspect.facts import Environment, TargetSite, arch_of
from ..inspect.observation import seen
from ..inspect.stack import InstalledStack
from ..knowledge import matching
from ..knowledge.conditions import Value
from ..knowledge.log_sources import LibraryName, library_name
from ..knowledge.matching import Verdict
from ..knowledge.terms import Arch, Severity
from ..model.outcome import RowMatch
from ..model.recipe import Recipe
from ..model.runtime import own_component
from ..model.validation import Acceptance, Baseline, CheckInfo, Finding, Validation
from ..resolve.facts import site_facts
from ..runtimes import RUNTIMES
from ..text import shown
from ..workflow.context import Context
from ..workflow.entries import entries
from ..workflow.site_contents import site_search
from . import checks, horovod_build, imports
from . import recipe_comparison as as_asked
from .checks.protocol import INFOS
from .image_environment import environment_or_image
from .options import ComparisonOptions, ProvingOptions, RemovedOptions, ValidateOptions

if TYPE_CHECKING:
    from .rank_proofs import ForeignRun

_AS_IT_IS = ValidateOptions()
_WORST: tuple[Severity, ...] = ("error", "warning", "info")
# What is told: of rows that a remedy lifts, or that speak of what is not there, nothing is.
_TOLD: tuple[Verdict, ...] = ("holds", "unknown")
# What holds a row: a version that was read is certain, what it does to this user is likely.
_WHY_ROW = "a known problem: envbuild advisories show {}"


def list_checks() -> tuple[CheckInfo, ...]:
    """Return every kind of finding."""
    return tuple(INFOS.values())


def looked_for(options: ValidateOptions) -> tuple[CheckInfo, ...]:
    """Return the kinds of findings that a call looks for: some compare with what it names."""
    given = {
        "recipe": options.compared.recipe,
        "site": options.compared.site,
        "run": options.proving.run,
    }
    return tuple(each for each in list_checks() if given.get(each.id.partition(".")[0], True))


def check_removed(options: RemovedOptions) -> None:
    """Raise UsageError for an option that no longer exists, with what replaces it."""
    if options.fix:
        raise UsageError(
            "option.removed",
            "--fix was removed: validate writes nothing",
            "reinstall the damaged package: pip install --force-reinstall --no-deps "
            "NAME==VERSION, or conda install --force-reinstall NAME=VERSION; the findings of "
            "envbuild validate contain the command for each package",
        )
    if options.watch_list is not None:
        raise UsageError(
            "option.removed",
            "--watch-list was removed",
            "envbuild validate PATH --as baseline writes a baseline of each environment; envbuild "
            "validate PATH --baseline FILE then reports only new findings",
        )


def check_proving(options: ProvingOptions) -> None:
    """Raise UsageError for what is said of ranks that are not started."""
    given = {"--ranks": options.ranks, "--evidence": options.evidence}
    for name, value in given.items():
        if value is not None and not options.run:
            raise UsageError(
                "option.needs-run",
                f"{name} needs --run",
                f"envbuild validate --run {name} ... PATH|NAME",
            )


def validate(
    name: str | None,
    root: str | None,
    context: Context,
    options: ValidateOptions = _AS_IT_IS,
) -> Validation:
    """Return what is wrong with an environment, with what the baseline accepts of it.

    *name*: a folder, an image, or NAME[/N] of *root*; None: the one that is active in this shell,
    or with ``loaded`` the Python that the shell runs. Raises UsageError for what is none, for a
    baseline DocumentError too, and of images DriftError and MissingToolError.
    """
    loaded, inside = options.loaded, options.inside
    with environment_or_image(name, root, context, loaded=loaded, inside=inside) as there:
        if options.proving.run and there.root:
            raise UsageError(
                "option.not-for-image",
                "--run does not apply to an image: it starts the environment's Python",
                "leave --run out",
            )
        value = _validated(there, context, options)
    if there.root:
        value = value.model_copy(update={"path": f"{name}:{value.path}"})
    return _accepted(value, options.baseline, context) if options.baseline else value


def _validated(there: Environment, context: Context, options: ValidateOptions) -> Validation:
    compared, run = options.compared, options.proving if options.proving.run else None
    site = _site(compared, context)
    environment = replace(there, target=_target(site)) if site else there
    stack = components_of(environment, context)
    rows = rows_of(environment, stack, context, _site_facts(site))
    told = [row for row in rows if row.verdict in _TOLD]
    replaced = _replaced(context)
    sure = [_of_row(row, stack, environment, replaced) for row in told if row.verdict == "holds"]
    recipe = _recipe(compared.recipe, environment, context) if compared.recipe else None
    asked = [*_as_recipe(recipe, environment, stack, context)] if recipe else []
    imported = imports.modules_of(environment, context.knowledge.components) if run else ()
    failed = [*imports.failures(environment, imported)]
    ranks = _ranks(environment, stack, site, run, context, imports_failed=bool(failed))
    failed += ranks.findings if ranks else ()
    runtime = RUNTIMES.get(own_component(RUNTIMES, stack.versions) or "")
    horovod = horovod_build.HorovodInputs(
        environment, stack, context.knowledge, runtime, context.folders
    )
    looked = checks.run(environment, horovod_build.look(horovod), hashes=options.verify)
    names = context.knowledge.library_names
    named = (_name_library(finding, names) for finding in looked.findings)
    findings = [*named, *sure, *asked, *failed]
    python = environment.interpreter
    return Validation(
        path=shown(str(environment.prefix)[len(environment.root) :] or "/", 400),
        kind=environment.kind,
        python=python.version or python.series,
        arch=arch_of(python.machine) or environment.away,
        distributions=len(environment.distributions),
        libraries=len(environment.libraries),
        files=sum(len(each.recorded or ()) for each in environment.distributions),
        imported=tuple(shown(each, 400) for each in imported),
        proofs=ranks.proofs if ranks else (),
        not_proved=ranks.refused if ranks else None,
        modules=tuple(shown(each.name, 400) for each in environment.modules),
        findings=tuple(sorted(findings, key=_place)),
        undecided=tuple(row for row in told if row.verdict == "unknown" and row.severity != "info"),
        unchecked=looked.unchecked,
    )


def _name_library(finding: Finding, names: Sequence[LibraryName]) -> Finding:
    """Return a finding about a missing library with the software that the library belongs to."""
    needed = [place.value for place in finding.evidence if (place.field or "").startswith("NEEDED")]
    row = library_name(names, "soname", needed[0]) if needed and needed[0] else None
    if finding.id != "library.missing" or row is None:
        return finding
    name, parts = row
    return finding.model_copy(
        update={
            "summary": f"{finding.summary}; it is {name.text.format(**parts)}"[:480],
            "fix": name.hint.format(**parts) if name.hint else finding.fix,
        }
    )


def _accepted(value: Validation, baseline: Path, context: Context) -> Validation:
    """Return what was found, each with the reason of the baseline's first row that fits it.

    Raises DocumentError (what is written) or UsageError (the file).
    """
    rows = read_document(context.path(baseline), Baseline).value.accepted
    used: set[Acceptance] = set()
    findings = []
    replaced = _replaced(context)
    for each in value.findings:
        row = next((row for row in rows if _accepts(row, each, replaced)), None)
        used |= {row} if row else set()
        findings.append(each.model_copy(update={"accepted": row.reason}) if row else each)
    unused = tuple(row for row in rows if row not in used)
    return value.model_copy(update={"findings": tuple(findings), "unused": unused})


def _accepts(row: Acceptance, found: Finding, replaced: Mapping[str, str]) -> bool:
    """Whether a row speaks of a finding; a summary with brackets in it is no pattern.

    *replaced*: rules by the ids of rows that they replace. Their summaries are others; what a
    finding is about comes first in both.
    """
    if row.id != found.id:
        about = row.summary.partition(": ")[0] if row.summary else None
        same = about is None or about == found.summary.partition(": ")[0]
        return replaced.get(row.id) == found.id and same
    pattern = ".*".join(map(re.escape, row.summary.split("*"))) if row.summary else ".*"
    return re.fullmatch(pattern, found.summary) is not None


def _site(where: ComparisonOptions, context: Context) -> ChosenSite | None:
    if where.site is None:
        return None
    return with_partition(site_search(context).named(where.site, "asked for"), where.partition)


def _site_facts(site: ChosenSite | None) -> dict[str, Value]:
    if site is None:
        return {}
    scheduler = site.site.scheduler
    stated = site_facts(site.site.facts, site.facts)
    return {**({"scheduler": scheduler} if scheduler else {}), **stated}


def _target(site: ChosenSite) -> TargetSite:
    archs = (site.partition.arch,) if site.partition else site.site.arch
    glibc = site_facts(site.site.facts, site.facts).get("glibc")
    return TargetSite(site.site.name, archs, str(glibc) if glibc else None)


def _recipe(name: str, environment: Environment, context: Context) -> Recipe:
    """Return a recipe as it is on the architecture of an environment.

    Raises DocumentError or UsageError.
    """
    loaded = load_recipe(
        find_document("recipe", name, context.folders), context.knowledge, entries()
    )
    arch = next((a for a in get_args(Arch) if a == arch_of(environment.interpreter.machine)), None)
    return (for_arch(loaded, arch) if arch else loaded).value


def _as_recipe(
    wanted: Recipe, environment: Environment, stack: InstalledStack, context: Context
) -> Iterator[Finding]:
    """Return what is not as a recipe asks."""
    components = context.knowledge.components
    yield from as_asked.compare(
        as_asked.Comparison(
            wanted, environment, stack, components, backend_of(environment), RUNTIMES
        )
    )


def _ranks(
    environment: Environment,
    stack: InstalledStack,
    site: ChosenSite | None,
    run: ProvingOptions | None,
    context: Context,
    *,
    imports_failed: bool,
) -> ForeignRun | None:
    """Return what its ranks prove, where they are to be started."""
    if run is None:
        return None
    # lazy import: launchers and templates, for what is seldom asked
    from .rank_proofs import ForeignRun, prove_ranks

    if imports_failed:
        return ForeignRun(refused="not all of its packages can be imported")
    return prove_ranks(environment, stack, site, run, context)


def _place(each: Finding) -> tuple[int, str, str]:
    return _WORST.index(each.severity), each.id, each.summary


def _replaced(context: Context) -> dict[str, str]:
    """Return the rules by the ids of the rows that they replace."""
    every = matching.rows(context.knowledge)
    return {row.id: row.replaced_by for row in every if row.replaced_by}


def _of_row(
    row: RowMatch, stack: InstalledStack, environment: Environment, replaced: Mapping[str, str]
) -> Finding:
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
        accepted=_waiver(row, environment, replaced),
    )


def _waiver(row: RowMatch, environment: Environment, replaced: Mapping[str, str]) -> str | None:
    """Return why the recipe of an environment of a root waives a row; None if it does not.

    A row that a rule has replaced since waives the rule for the same components.
    """
    waived = environment.lock.plan.waived if environment.lock else ()
    for finding in waived:
        rule = replaced.get(finding.id)
        if finding.id == row.id or (rule == row.id and {*finding.components} & {*row.about}):
            return finding.reason
    return None

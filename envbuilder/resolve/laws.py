"""What a plan refuses whatever rows say, of versions that a user states: the laws of the solver.

One MPI, one Python for which there are wheels, and a machine on which they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..knowledge.components import Release
from ..knowledge.releases import admits, fit_text, glibc_suffices, has_wheels_for
from ..knowledge.rows import Knowledge
from .explain import one_provider
from .facts import Facts
from .pool import Pool
from .problem import Candidate, Rule
from .rules import GroundRule, rule_row

_INDEX = "recipes/knowledge/versions.yaml"

LAW_ROWS: Mapping[str, str] = {
    "ONE-MPI": "a stack has two MPIs",
    "WHEEL-PYTHON": "a release has no wheels for the Python of the stack",
    "WHEEL-GLIBC": "the wheels of a release need a newer glibc",
    "WHEEL-ARCH": "a release has no wheels for the architecture",
}
"""The ids of these rules, and what they refuse."""


def stated_laws(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[GroundRule]:
    """Yield the rules that stated versions break."""
    yield from _providers(knowledge, pool)
    for candidate in pool.candidates:
        release = _release(candidate, knowledge) if candidate.origin in ("pip", "build") else None
        if release is not None:
            yield from _of_release(candidate, release, pool, facts)


def _providers(knowledge: Knowledge, pool: Pool) -> Iterator[GroundRule]:
    virtuals = {role for known in knowledge.components.values() for role in known.fulfils}
    for role in sorted(virtuals):
        by_component: dict[str, frozenset[str]] = {}
        for candidate in pool.of(role):
            by_component.setdefault(candidate.component, frozenset())
            by_component[candidate.component] |= {candidate.id}
        if len(by_component) > 1:
            text = one_provider(role, knowledge)
            yield _law(f"ONE-{role.upper()}", tuple(by_component.values()), text, None)


def _release(candidate: Candidate, knowledge: Knowledge) -> Release | None:
    version = candidate.version.partition("+")[0]
    recorded = knowledge.releases.get(candidate.component, ())
    return next((release for release in recorded if release.version == version), None)


def _of_release(
    candidate: Candidate, release: Release, pool: Pool, facts: Facts
) -> Iterator[GroundRule]:
    own, component = frozenset({candidate.id}), candidate.component
    fits = has_wheels_for if candidate.origin == "pip" else admits
    unfit = frozenset(one.id for one in pool.of("python") if not fits(release, one.version))
    if unfit and component != "python":
        text = f"each release of {component} supports only certain Pythons: "
        text += fit_text(component, [release])
        yield _law("WHEEL-PYTHON", (own, unfit), text, "another Python or another release")
    if candidate.origin != "pip":
        return
    glibc, arch = facts.stated.get("glibc"), facts.stated.get("arch")
    if isinstance(glibc, str) and not glibc_suffices(release, glibc):
        text = f"the wheels of {component} {release.version} need glibc {release.glibc}, and the "
        text += f"site has {glibc}"
        yield _law("WHEEL-GLIBC", (own,), text, f"an older {component}, or that of a module")
    if isinstance(arch, str) and release.arch and arch not in release.arch:
        text = f"{component} {release.version} has wheels for {' and '.join(release.arch)} alone"
        yield _law("WHEEL-ARCH", (own,), text, f"the {component} of a module")


def _law(name: str, slots: tuple[frozenset[str], ...], summary: str, fix: str | None) -> GroundRule:
    rule = Rule(f"{name}: {summary}", name, hard=True, slots=slots)
    return GroundRule(rule, rule_row(name, summary, fix, (_INDEX,)))

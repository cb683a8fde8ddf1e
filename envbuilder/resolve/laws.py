"""What a plan refuses whatever rows say, of versions that a user states: the laws of the solver.

One MPI, one Python for which there are wheels, and a machine on which they run.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..knowledge.releases import admits, fit_text, glibc_suffices, has_wheels_for
from ..knowledge.rows import Coupling, Knowledge, Release
from .explain import one_provider
from .facts import Facts
from .pool import Pool
from .problem import Candidate, Rule
from .rules import GroundRule

_INDEX = "recipes/knowledge/versions.yaml"


def stated_laws(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[GroundRule]:
    """Yield the rules that stated versions break."""
    yield from _providers(knowledge, pool)
    for each in pool.candidates:
        release = _release(each, knowledge) if each.origin in ("pip", "build") else None
        if release is not None:
            yield from _of_release(each, release, pool, facts)


def _providers(knowledge: Knowledge, pool: Pool) -> Iterator[GroundRule]:
    virtuals = {role for known in knowledge.components.values() for role in known.fulfils}
    for role in sorted(virtuals):
        by_component: dict[str, frozenset[str]] = {}
        for each in pool.of(role):
            by_component.setdefault(each.component, frozenset())
            by_component[each.component] |= {each.id}
        if len(by_component) > 1:
            text = one_provider(role, knowledge)
            yield _law(f"ONE-{role.upper()}", tuple(by_component.values()), text, None)


def _release(each: Candidate, knowledge: Knowledge) -> Release | None:
    version = each.version.partition("+")[0]
    recorded = knowledge.releases.get(each.component, ())
    return next((release for release in recorded if release.version == version), None)


def _of_release(
    each: Candidate, release: Release, pool: Pool, facts: Facts
) -> Iterator[GroundRule]:
    mine, component = frozenset({each.id}), each.component
    fits = has_wheels_for if each.origin == "pip" else admits
    others = frozenset(one.id for one in pool.of("python") if not fits(release, one.version))
    if others and component != "python":
        text = f"each release of {component} supports only certain Pythons: "
        text += fit_text(component, [release])
        yield _law("WHEEL-PYTHON", (mine, others), text, "another Python or another release")
    if each.origin != "pip":
        return
    glibc, arch = facts.stated.get("glibc"), facts.stated.get("arch")
    if isinstance(glibc, str) and not glibc_suffices(release, glibc):
        text = f"the wheels of {component} {release.version} need glibc {release.glibc}, and the "
        text += f"site has {glibc}"
        yield _law("WHEEL-GLIBC", (mine,), text, f"an older {component}, or that of a module")
    if isinstance(arch, str) and release.arch and arch not in release.arch:
        text = f"{component} {release.version} has wheels for {' and '.join(release.arch)} alone"
        yield _law("WHEEL-ARCH", (mine,), text, f"the {component} of a module")


def _law(name: str, slots: tuple[frozenset[str], ...], summary: str, fix: str | None) -> GroundRule:
    row = Coupling.model_construct(
        id=name,
        severity="error",
        summary=summary,
        fix=fix,
        evidence="derived",
        sources=(_INDEX,),
        given={},
        needs={},
    )
    return GroundRule(Rule(f"{name}: {summary}", name, hard=True, slots=slots), row)

"""A plan, and the answers to why and why-not, as text for people: pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..knowledge.channels import copy_hint
from ..model.plan import Edit, Pin, Plan, PlanFinding, SiteFinding
from ..text import WIDTH, counted, filled
from .layout import joined

if TYPE_CHECKING:
    from ..model.why import ComponentReason, WhyNot

# So many findings fit beside the rest of a plan on a screen; --verbose shows all.
_MOST_FINDINGS = 8
# Facts that recipes state, and not sites.
_RECIPE_FACTS = frozenset({"uses"})
# Where nothing is fetched from.
_THERE = ("module", "system")


@joined
def plan(value: Plan, verbose: bool = False) -> Iterator[str]:
    """Return a plan: components, what is known of them, modules, environment, steps."""
    yield from _gone_channels(value)
    yield f"{value.recipe}: {value.summary}"
    yield f"site {value.site}, {value.arch}, {value.backend}"
    yield from site_lines(value.site_findings)
    yield from ("", "components")
    yield from _pins(value)
    if value.brought:
        along = ", ".join(f"{pin.component} {pin.version}" for pin in value.brought)
        yield from filled("  ", f"additional components of the modules: {along}", 4)
    if value.packages:
        yield from filled("  ", f"pip also resolves: {', '.join(value.packages)}", 4)
    yield from _known(value.findings, verbose, f"site {value.site}")
    if value.modules.loads:
        yield from ("", "modules, in this order")
        yield from (f"  module {action} {name}" for action, name in value.modules.actions())
    if value.modules.stand_ins:
        names = ", ".join(value.modules.stand_ins)
        yield from filled("  ! stand-ins, so this does not prove the recipe: ", names, 4)
    yield from ("", "environment", *(f"  {_edit_line(edit)}" for edit in value.environment))
    yield from ("", "steps")
    yield from (f"  {n}. {step.title}" for n, step in enumerate(value.steps, start=1))
    yield from ("", *_costs(value))


def _gone_channels(value: Plan) -> Iterator[str]:
    """Yield a line for each channel whose packages nobody can fetch."""
    for each in value.channels:
        if each.gone_since:
            yield f"channel {each.name} gone since {each.gone_since}; {copy_hint(each.name)}"


def site_lines(findings: Iterable[SiteFinding]) -> Iterator[str]:
    """Yield what a plan does not take from its site, or does not know about it."""
    for each in findings:
        yield from filled("  warning  ", each.message(), 11)


def _pins(value: Plan) -> Iterator[str]:
    names = max((len(pin.component) for pin in value.pins), default=0)
    versions = max((len(pin.version) for pin in value.pins), default=0)
    for pin in value.pins:
        head = f"  {pin.component.ljust(names)}  {pin.version.ljust(versions)}  "
        # The recipe stands at the head of the plan.
        why = pin.why.replace(f" (recipe {value.recipe})", "")
        why = why.replace(f"(runtime {value.runtime.package})", "(runtime)")
        about = ", ".join(_about(pin, value.findings))
        yield from _wrapped_after(head, [f"{pin.origin}:{pin.locator}", why, about])


def _about(pin: Pin, findings: Iterable[PlanFinding]) -> Iterator[str]:
    """Yield the ids of what is known of a pin, each with what came of it."""
    for each in findings:
        if (
            each.status not in ("info", "unknown")
            and f"{pin.component}@{pin.version}" in each.components
        ):
            outcome = f"lifted by {each.remedy}" if each.status == "lifted" else each.status
            yield f"{each.id} {outcome}"


def _known(
    findings: Sequence[PlanFinding], verbose: bool, site: str = "the site file"
) -> Iterator[str]:
    visible = [each for each in findings if verbose or each.status not in ("info", "unknown")]
    undecided = [] if verbose else [each for each in findings if each.status == "unknown"]
    most = len(visible) if verbose else _MOST_FINDINGS
    if visible or undecided:
        yield from ("", "advisories")
    for each in visible[:most]:
        yield from finding_lines(each)
    if len(visible) > most:
        yield f"  and {len(visible) - most} more: --verbose shows them"
    if undecided:
        yield from filled("  ", _worth_stating(undecided, site), 4)


def _worth_stating(undecided: Sequence[PlanFinding], site: str) -> str:
    """Return the facts that would settle undecided rows, those of most rows first."""
    counts = Counter(name for each in undecided for name in each.facts)
    names = sorted(counts, key=lambda name: (-counts[name], name))
    of_site = ", ".join(name for name in names if name not in _RECIPE_FACTS)
    of_recipe = ", ".join(name for name in names if name in _RECIPE_FACTS)
    places = [f"{of_site} in {site}"] * bool(of_site) + [f"{of_recipe} in the recipe"] * bool(
        of_recipe
    )
    rows = counted(len(undecided), "row")
    return f"state {' and '.join(places)}: settles {rows} (--verbose shows them)"


def finding_lines(each: PlanFinding) -> Iterator[str]:
    """Yield one finding: what it is, what came of it, what to do."""
    head = f"  {each.status.ljust(7)}  {each.id}  "
    parts = [f"{each.summary} ({', '.join(each.components)})"]
    if each.status == "lifted":
        parts.append(f"lifted by {each.remedy}")
    if each.status == "waived":
        parts.append(f"waived: {each.reason}")
    if each.facts:
        parts.append(f"undecided: depends on facts that are not stated: {', '.join(each.facts)}")
    if each.status in ("warning", "unknown") and each.fix:
        parts.append(f"fix: {each.fix}")
    yield from _wrapped_after(head, parts)


def _costs(value: Plan) -> Iterator[str]:
    fetched = [pin for pin in (*value.pins, *value.build_pins) if pin.origin not in _THERE]
    for what, each in (("fetch", fetched), ("compile", value.builds)):
        names = ", ".join(f"{one.component} {one.version}" for one in each)
        yield from filled("", f"to {what}: {names or 'nothing'}", 2)
    for build in value.builds:
        homes = {name: _in_prefix(folder) for name, folder in build.homes.items()}
        settings = {**build.flags, **homes, **build.environment}
        yield from (f"  {name}={setting}" for name, setting in settings.items())
        yield from (f"  patch {name}" for name in build.patches)
        yield from (f"  pip option {name}" for name in build.pip_options)


def _in_prefix(relative: str) -> str:
    return "/".join(["<prefix>", relative]).rstrip("/.")


def _edit_line(edit: Edit) -> str:
    """Return one environment edit in words."""
    value = _in_prefix(edit.value) if edit.in_prefix else edit.value
    return {
        "set": f"{edit.name} = {value}",
        "unset": f"{edit.name} unset",
        "prepend": f"{edit.name} begins with {value}",
        "append": f"{edit.name} ends with {value}",
    }[edit.kind]


@joined
def why(value: ComponentReason) -> Iterator[str]:
    """Return what a component is, who asks for it, and what is not there in its place."""
    yield f"{value.component} {value.version} <- {value.provider}"
    for each in value.asked:
        yield from filled("  ", each, 4)
    yield from _known(value.findings, verbose=True)
    if value.instead_of:
        yield from ("", "instead of")
    for other in value.instead_of:
        yield from _why_not_lines(other, "  ")
    if value.further:
        yield f"  and {value.further} more that rank higher"


@joined
def why_not(value: WhyNot) -> Iterator[str]:
    """Return what stands against a version."""
    yield from _why_not_lines(value, "")


def _why_not_lines(value: WhyNot, indent: str) -> Iterator[str]:
    verdict = "possible, but not the best" if value.possible else "not possible together with"
    if value.possible and not value.because:
        verdict = "is in the plan"
    yield from filled(indent, f"{value.what}: {verdict}", len(indent) + 2)
    for each in (*value.because, *value.links):
        yield from filled(f"{indent}  ", each, len(indent) + 4)


def _wrapped_after(head: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts behind *head*: on its line as far as they fit, then below one another."""
    indent = " " * min(len(head), WIDTH // 3)
    line = head
    for part in (each for each in parts if each):
        if line is not head and len(line) + 2 + len(part) <= WIDTH:
            line = f"{line}  {part}"
            continue
        if line is not head:
            yield line.rstrip()
            line = indent
        # The head is as wide as what it is wrapped with, and stands on the first line only.
        *full, line = filled(line, part, len(indent) + 2)
        yield from (one.rstrip() for one in full)
    yield line.rstrip()

"""A plan, and the answers to why and why-not, as text for people: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model.plan import Edit, Finding, Pin, Plan, SourceBuild
from ..model.why import Why, WhyNot
from ..text import WIDTH, filled

# So many findings fit beside the rest of a plan on a screen; --verbose shows all.
_MOST_FINDINGS = 8


def plan(value: Plan, verbose: bool = False) -> str:
    """Return a plan: components, what is known of them, modules, environment, steps."""
    return "\n".join(_plan_lines(value, verbose))


def _plan_lines(value: Plan, verbose: bool) -> Iterator[str]:
    yield f"{value.recipe}: {value.summary}"
    yield f"site {value.site}, {value.arch}, {value.backend}"
    yield ""
    yield "components"
    yield from _pins(value)
    if value.brought:
        along = ", ".join(f"{pin.component} {pin.version}" for pin in value.brought)
        yield from filled("  ", f"along with the modules: {along}", 4)
    if value.packages:
        yield from filled("  ", f"and what pip chooses for: {', '.join(value.packages)}", 4)
    yield from _known(value.findings, verbose)
    if value.modules.loads:
        yield from ("", "modules, in this order")
        yield from (f"  module {action} {name}" for action, name in value.modules.actions())
    yield from ("", "environment", *(f"  {edit_line(edit)}" for edit in value.environment))
    yield from ("", "steps")
    yield from (f"  {n}. {step.title}" for n, step in enumerate(value.steps, start=1))
    yield from ("", *_costs(value))


def _pins(value: Plan) -> Iterator[str]:
    pins = value.pins
    names = max((len(pin.component) for pin in pins), default=0)
    versions = max((len(pin.version) for pin in pins), default=0)
    for pin in pins:
        head = f"  {pin.component.ljust(names)}  {pin.version.ljust(versions)}  "
        rest = f"{pin.origin}:{pin.locator}"
        about = ", ".join(_about(pin, value.findings))
        yield from _wrapped_after(head, [rest, _asked(pin.why, value), about])


def _asked(why: str, value: Plan) -> str:
    """Return who asks for what, without naming the recipe at the head of the plan once more."""
    own = why.replace(f" (recipe {value.recipe})", "")
    return own.replace(f"(runtime {value.runtime.package})", "(runtime)")


def _about(pin: Pin, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the ids of what is known of a pin, each with what came of it."""
    for each in findings:
        if each.status != "info" and f"{pin.component}@{pin.version}" in each.components:
            yield f"{each.id} {_outcome(each)}"


def _outcome(finding: Finding) -> str:
    return f"lifted by {finding.remedy}" if finding.status == "lifted" else finding.status


def _known(findings: Sequence[Finding], verbose: bool) -> Iterator[str]:
    visible = [each for each in findings if verbose or each.status != "info"]
    if not visible:
        return
    yield from ("", "advisories")
    shown = visible if verbose else visible[:_MOST_FINDINGS]
    for each in shown:
        yield from finding_lines(each)
    if len(shown) < len(visible):
        yield f"  and {len(visible) - len(shown)} more: --verbose shows them"


def finding_lines(each: Finding) -> Iterator[str]:
    """Yield one finding: what it is, what came of it, what to do."""
    head = f"  {each.status.ljust(7)}  {each.id}  "
    parts = [f"{each.summary} ({', '.join(each.components)})"]
    if each.status == "lifted":
        parts.append(f"lifted by {each.remedy}")
    if each.status == "waived":
        parts.append(f"waived: {each.reason}")
    if each.facts:
        parts.append(f"undecided: depends on facts that were not given: {', '.join(each.facts)}")
    if each.status in ("warning", "unknown") and each.fix:
        parts.append(f"fix: {each.fix}")
    yield from _wrapped_after(head, parts)


def _costs(value: Plan) -> Iterator[str]:
    fetched = [pin for pin in (*value.pins, *value.build_pins) if pin.origin in ("pip", "build")]
    compiled = [f"{each.component} {each.version}" for each in value.builds]
    names = ", ".join(f"{pin.component} {pin.version}" for pin in fetched)
    yield from filled("", f"to fetch: {names or 'nothing'}", 2)
    yield from filled("", f"to compile: {', '.join(compiled) or 'nothing'}", 2)
    for each in value.builds:
        yield from _build(each)


def _build(each: SourceBuild) -> Iterator[str]:
    homes = {name: _in_prefix(value) for name, value in each.homes.items()}
    settings = {**each.flags, **homes, **each.environment}
    yield from (f"  {name}={value}" for name, value in settings.items())
    yield from (f"  patch {name}" for name in each.patches)
    yield from (f"  pip option {name}" for name in each.pip_options)


def _in_prefix(relative: str) -> str:
    return "/".join(["<prefix>", relative]).rstrip("/.")


def edit_line(edit: Edit) -> str:
    """Return one environment edit in words."""
    value = _in_prefix(edit.value) if edit.in_prefix else edit.value
    return {
        "set": f"{edit.name} = {value}",
        "unset": f"{edit.name} unset",
        "prepend": f"{edit.name} begins with {value}",
        "append": f"{edit.name} ends with {value}",
    }[edit.kind]


def why(value: Why) -> str:
    """Return what a component is, who asks for it, and what is not there in its place."""
    lines = [f"{value.component} {value.version} <- {value.provider}"]
    for each in value.asked:
        lines += filled("  ", each, 4)
    if value.findings:
        lines += ["", "advisories"]
        lines += [line for each in value.findings for line in finding_lines(each)]
    if value.instead_of:
        lines += ["", "rather than"]
        lines += [line for each in value.instead_of for line in _why_not_lines(each, "  ")]
    if value.further:
        lines.append(f"  and {value.further} more that rank before it")
    return "\n".join(lines)


def why_not(value: WhyNot) -> str:
    """Return what stands against a version."""
    return "\n".join(_why_not_lines(value, ""))


def _why_not_lines(value: WhyNot, indent: str) -> Iterator[str]:
    verdict = "possible, but not the best" if value.possible else "cannot be, together with"
    if value.possible and not value.because:
        verdict = "is what the plan has"
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

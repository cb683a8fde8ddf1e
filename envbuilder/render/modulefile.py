"""The modulefile of one environment."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model.evidence import Evidence
from ..model.launch import StartCommand
from ..model.places import BuildFolders, Dialect
from ..model.plan import Edit, FindingStatus, Lock, Modules, Plan, PlanFinding
from ..target_tools.modulefile import NUMBER, PROVED, SUMMARY, filled, proved_lines
from .dialects import action_line, edit_line, edit_value
from .subject import Renderable
from .templates import render

# In this order; what is only information is left to ``envbuild info``.
_HEADS: Mapping[FindingStatus, str] = {
    "waived": "Waived advisories:",
    "lifted": "Known problems that a remedy solves:",
    "warning": "Known problems:",
    "unknown": "Undecided, because facts are not stated:",
}


def help_lines(lock: Renderable, example: StartCommand | None) -> tuple[str, ...]:
    """Return the lines of the help text, with marks for its number and for what was proved."""
    plan = lock.plan
    return (
        f"{plan.recipe}/{NUMBER}: {plan.summary}",
        f"For site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        f"  {plan.runtime.package}@{plan.runtime.version} <- built in this environment",
        *_known(plan.findings),
        "",
        PROVED,
        *_start(example),
        *_module_notes(plan.modules),
    )


def image_help_lines(
    lock: Renderable, proved: Sequence[str], example: Sequence[str]
) -> tuple[str, ...]:
    """Return the lines of the help text of an image, with a mark for its number."""
    plan = lock.plan
    return (
        f"{plan.recipe}/{NUMBER}: {plan.summary}",
        f"An image for site {plan.site}, {plan.arch}. Environment {lock.id()}.",
        "",
        "Components:",
        *_indented(str(pin) for pin in plan.pins),
        *_known(plan.findings),
        "",
        *proved,
        "",
        "Each program starts in a container of its own. Start ranks with the launcher of the",
        "machine, or on one machine with the MPI in the image:",
        f"  {shlex.join(example)}",
    )


def _start(example: StartCommand | None) -> Iterator[str]:
    if example:
        yield ""
        yield f"Start a program on {example.ranks} ranks:"
        yield f"  {shlex.join(example.words)}"


def _known(findings: Sequence[PlanFinding]) -> Iterator[str]:
    for status, head in _HEADS.items():
        matching = [each for each in findings if each.status == status]
        if matching:
            yield from ("", head)
        for each in matching:
            yield f"  {each.id}: {each.summary} ({', '.join(each.components)})"
            yield from _indented(_consequence(each), "    ")


def _consequence(finding: PlanFinding) -> Iterator[str]:
    """Yield what came of it, with what to do, then where to read on."""
    if finding.status == "waived":
        yield f"waived: {finding.reason}"
    elif finding.status == "lifted":
        yield f"lifted by {finding.remedy}"
    else:
        if finding.facts:
            yield f"depends on: {', '.join(finding.facts)}"
        if finding.fix:
            yield f"fix: {finding.fix}"
    yield finding.link


def _module_notes(modules: Modules) -> Iterator[str]:
    if not modules.loads:
        return
    yield from ("", "Loads the site's modules:")
    yield from _indented(f"{what} {name}" for what, name in modules.actions())
    if modules.trees:
        yield "If the module system does not find them, first run: module use"
        yield from _indented(modules.trees)
    if modules.replaced:
        names = ", ".join(each.module for each in modules.replaced)
        yield from (
            "",
            f"The module system then warns that {names} is missing. This is intended.",
            "Unloading this module does not restore it, and modules that loaded it may remain.",
            "To reset the shell, run module purge or start a new shell.",
        )


def _indented(lines: Iterable[str], indent: str = "  ") -> tuple[str, ...]:
    return tuple(f"{indent}{line}" for line in lines)


@dataclass(frozen=True)
class ToolModule:
    """The module of envbuild itself at a site.

    ``folder``: where it is installed; its ``bin`` holds the one program, so that the Python that
    runs it is not taken for the user's. ``trees``: of the roots whose modules it shows.
    """

    version: str
    site: str
    folder: Path
    trees: tuple[Path, ...]


# What Lmod 8.6 and Environment Modules 5.2 do not escape, or not right, for csh and tcsh.
_NOT_FOR_CSH: Mapping[Dialect, str] = {"lua": "!{}", "tcl": "[]{}~"}


def render_modulefile(
    lock: Renderable,
    places: BuildFolders,
    number: int,
    evidence: Evidence | None,
    dialect: Dialect,
    example: StartCommand | None = None,
) -> str:
    """Return the text of modulefile ``<name>/<number>``; without evidence its help says so."""
    told = evidence.plain() if evidence else None
    return filled(unfilled(lock, places, dialect, example), number, told, dialect)


def unfilled(
    lock: Renderable, places: BuildFolders, dialect: Dialect, example: StartCommand | None = None
) -> str:
    """Return the text of a modulefile, with marks for its number and for what was proved.

    *example*: what the help shows of starting a program.

    It does not touch MODULEPATH: the trees of a site are in use where its modules are used, adding
    one again would change the user's search order, and a conditional edit does not unload (Lmod
    evaluates the condition again). The help names the trees.
    """
    plan, modules = lock.plan, lock.plan.modules.loads
    # A module that is loaded already is not loaded again, and does not bring what it brought.
    missing = f"{plan.recipe}: not proved with these modules; run module purge first; not loaded:"
    # Without modules it can only be the user's own, and nothing was checked with it.
    pythonpath = (
        f"{plan.recipe}: packages in PYTHONPATH come before this environment's own; "
        "unset PYTHONPATH"
    )
    return render(
        f"modulefile/{dialect}.j2",
        name=plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        help=help_lines(lock, example),
        whatis=_whatis(plan),
        actions=[action_line(dialect, each) for each in plan.modules.actions()],
        final=sorted(plan.modules.final),
        missing_messages=[missing] if modules else [],
        edits=[edit_line(dialect, each, places.prefix) for each in plan.environment],
        absent_messages=_absent_messages(lock, places),
        prefix=str(places.prefix),
        csh_messages=_csh_messages(plan, places, dialect),
        pythonpath_messages=[] if modules else [pythonpath],
    )


def render_image_modulefile(
    lock: Lock, prefix: Path, number: int, proofs: Sequence[Evidence], example: Sequence[str]
) -> str:
    """Return the modulefile of a published image, which every module system reads.

    *prefix*: the folder of the programs that start the image. *proofs*: the one that says most
    first. *example*: what starts a program.

    The modules of a site are loaded in the image; here they would change the programs around it.
    """
    plan = lock.plan
    told = [each.plain() for each in proofs]
    edit = Edit(kind="prepend", name="PATH", value=f"{prefix}/bin")
    text = render(
        "modulefile/tcl.j2",
        name=plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        help=image_help_lines(
            lock, [line for each in told for line in proved_lines(each)], example
        ),
        whatis=_whatis(plan),
        edits=[edit_line("tcl", edit, prefix)],
        prefix=str(prefix),
        actions=(),
        final=(),
        absent_messages=(),
        csh_messages=(),
        missing_messages=(),
        pythonpath_messages=(),
    )
    return filled(text, number, told[0], "tcl")


def render_image_start(image: Path, verb: str, options: Sequence[str]) -> str:
    """Return the program that starts an image with the name by which it is called."""
    return render("container/start.sh.j2", image=str(image), verb=verb, options=options)


def _whatis(plan: Plan) -> tuple[str, ...]:
    return (
        f"Name: {plan.recipe}",
        f"Version: {NUMBER}",
        "Category: deep learning environment",
        f"Description: {plan.summary}",
        f"Proved: {SUMMARY}",
        *(f"Waived: {each.id}" for each in plan.waived),
    )


def _absent_messages(source: Renderable, places: BuildFolders) -> Iterator[str]:
    """A clear refusal of what is only planned: its prefix is not there, and its variables empty."""
    plan = source.plan
    if not isinstance(source, Lock):
        words = ["envbuild", "create", plan.recipe, "--site", plan.site, "--arch", plan.arch]
        line = shlex.join([*words, "--root", str(places.prefix.parent.parent)])
        yield f"{plan.recipe}: planned, but not built; to build it: {line}"


def render_tool_modulefile(tool: ToolModule, dialect: Dialect) -> str:
    """Return the text of the modulefile of envbuild itself.

    It adds the roots' own trees to MODULEPATH: they hold what this envbuild has published.
    """
    edits = [
        Edit(kind="set", name="ENVBUILD_SITE", value=tool.site),
        *(Edit(kind="prepend", name="MODULEPATH", value=str(tree)) for tree in tool.trees),
        Edit(kind="prepend", name="PATH", value=str(tool.folder / "bin")),
    ]
    return render(
        f"modulefile/envbuild.{dialect}.j2",
        version=tool.version,
        site=tool.site,
        program=str(tool.folder / "bin" / "envbuild"),
        absent=f"envbuild: not installed in {tool.folder}; see docs/rendering.md",
        help=(
            f"envbuild/{tool.version}: build and prove deep-learning environments",
            f"Site: {tool.site} (the default of --site).",
            "",
            "  envbuild recipes list",
            "  envbuild plan RECIPE",
            "  envbuild create RECIPE --root DIR",
            "",
            "This module adds the module trees of the published environments to MODULEPATH:",
            *(f"  {tree}" for tree in tool.trees),
        ),
        edits=[edit_line(dialect, each, tool.folder) for each in edits],
    )


def _csh_messages(plan: Plan, places: BuildFolders, dialect: Dialect) -> Iterator[str]:
    """A clear refusal, where the module system would stop half-way through the variables."""
    bad = frozenset(_NOT_FOR_CSH[dialect])
    names = sorted(e.name for e in plan.environment if bad & {*edit_value(e, places.prefix)})
    if names:
        yield (
            f"{plan.recipe}: load it in bash or zsh; module systems cannot escape "
            f"{' '.join(sorted(bad))} for csh and tcsh in {', '.join(names)}"
        )

"""The modulefile of one environment and the file that says which number is the default."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.evidence import Evidence
from ..model.launch import LaunchExample
from ..model.places import Places
from ..model.plan import Plan
from .dialects import Dialect, edit_value, lua_action, lua_edit, tcl_action, tcl_edit
from .help_text import help_lines
from .renderable import Renderable
from .templates import render

_EDITS = {"lua": lua_edit, "tcl": tcl_edit}
_ACTIONS = {"lua": lua_action, "tcl": tcl_action}
# What Lmod 8.6 and Environment Modules 5.2 do not escape, or not right, for csh and tcsh.
_NOT_FOR_CSH: Mapping[Dialect, str] = {"lua": "!{}", "tcl": "[]{}~"}
DEFAULT_FILES: Mapping[Dialect, str] = {"lua": ".modulerc.lua", "tcl": ".version"}


def render_modulefile(
    lock: Renderable,
    places: Places,
    number: int,
    evidence: Evidence | None,
    dialect: Dialect,
    example: LaunchExample | None = None,
) -> str:
    """Return the text of modulefile ``<name>/<number>``; without evidence its help says so.

    *example*: what the help shows of starting a program.

    It does not touch MODULEPATH: the trees of a site are in use where its modules are used, adding
    one again would change the user's search order, and a conditional edit does not unload (Lmod
    evaluates the condition again). The help names the trees.
    """
    plan = lock.plan
    edit = _EDITS[dialect]
    return render(
        f"modulefile/{dialect}.j2",
        name=plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        help=help_lines(lock, number, evidence, example),
        whatis=_whatis(plan, number, evidence),
        actions=[_ACTIONS[dialect](each) for each in plan.modules.actions()],
        final=sorted(plan.modules.final),
        missing_messages=_missing_messages(plan),
        edits=[edit(each, places.prefix) for each in plan.environment],
        csh_messages=_csh_messages(plan, places, dialect),
        pythonpath_messages=_pythonpath_messages(plan),
    )


def render_default(name: str, number: int, dialect: Dialect) -> tuple[str, str]:
    """Return file name and text of what makes ``<name>/<number>`` the default."""
    text = render(
        f"modulefile/default.{dialect}.j2",
        name=name,
        full_name=f"{name}/{number}",
        number=str(number),
    )
    return DEFAULT_FILES[dialect], text


def _whatis(plan: Plan, number: int, evidence: Evidence | None) -> tuple[str, ...]:
    proved = f"{evidence.result.tier}, {evidence.time}" if evidence else "rendered, nothing was run"
    return (
        f"Name: {plan.recipe}",
        f"Version: {number}",
        "Category: deep learning environment",
        f"Description: {plan.summary}",
        f"Proved: {proved}",
        *(f"Waived: {each.id}" for each in plan.findings if each.status == "waived"),
    )


def _csh_messages(plan: Plan, places: Places, dialect: Dialect) -> tuple[str, ...]:
    """A clear refusal, where the module system would stop half-way through the variables."""
    bad = frozenset(_NOT_FOR_CSH[dialect])
    names = sorted(
        edit.name
        for edit in plan.environment
        if not bad.isdisjoint(edit_value(edit, places.prefix))
    )
    if not names:
        return ()
    message = (
        f"{plan.recipe}: load it in bash or zsh; module systems cannot hand csh and tcsh the "
        f"characters {' '.join(sorted(bad))} in {', '.join(names)}"
    )
    return (message,)


def _missing_messages(plan: Plan) -> tuple[str, ...]:
    """A module that is loaded already is not loaded again, and does not bring what it brought."""
    if not plan.modules.loads:
        return ()
    return (f"{plan.recipe}: not proved like this, first: module purge; not loaded:",)


def _pythonpath_messages(plan: Plan) -> tuple[str, ...]:
    """Without modules, PYTHONPATH can only be the user's own, and nothing was checked with it."""
    if plan.modules.loads:
        return ()
    message = "packages in PYTHONPATH come before this environment's own; unset PYTHONPATH"
    return (f"{plan.recipe}: {message}",)

"""The build folder's files, and those of a smoke test: pure, from a lock to texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import data
from ..errors import UsageError
from ..model.places import Places
from ..model.plan import Lock, Modules
from .dialects import bash_action, bash_edit
from .launch import as_root, launch
from .quoting import Quoted
from .requirements import import_name, requirement_files
from .templates import program, render

PROGRAMS = ("check.py", "build_wheel.py")


def render_build(lock: Lock, places: Places) -> dict[str, str]:
    """Return every file of the build folder: relative name -> text.

    The runtime's sources (``runtime/``) and, for smoke.sh, the program ``smoke.py`` are put beside
    them by whoever writes the folder. Raises UsageError for a lock that cannot be rendered.
    """
    values = _values(lock, places)
    return {
        **render_smoke(lock, places),
        **requirement_files(lock),
        "build.sh": render("bash/build.sh.j2", **values, steps=_steps(lock)),
        "shell.sh": render("bash/shell.sh.j2", **values, prompt=rf"({lock.plan.recipe}) \w\$ "),
        **{name: program(name) for name in PROGRAMS},
    }


def render_smoke(lock: Lock, places: Places) -> dict[str, str]:
    """Return the files with which a smoke test runs from any folder that holds ``smoke.py``."""
    values = _values(lock, places)
    words = launch(
        lock.plan.launcher,
        Quoted('"$ranks"'),
        (str(places.prefix / "bin" / "python"), Quoted('"$HERE/smoke.py"'), Quoted('"$@"')),
    )
    smoke = render(
        "bash/smoke.sh.j2",
        **values,
        ranks=str(lock.plan.smoke.ranks),
        as_root=[bash_edit(edit, places.prefix) for edit in as_root(lock.plan.launcher)],
        words=words,
    )
    return {"environment.sh": _environment(lock, places, values), "smoke.sh": smoke}


def _values(lock: Lock, places: Places) -> dict[str, Any]:
    return {
        "name": lock.plan.recipe,
        "id": lock.id(),
        "lock_sha256": lock.sha256(),
        "prefix": str(places.prefix),
    }


def _environment(lock: Lock, places: Places, values: Mapping[str, Any]) -> str:
    modules = lock.plan.modules
    return render(
        "bash/environment.sh.j2",
        **values,
        edits=[bash_edit(edit, places.prefix) for edit in lock.plan.environment],
        modules=Quoted(_module_functions(modules)),
    )


def _module_functions(modules: Modules) -> str:
    if modules.system == "none":
        return render("bash/modules-none.sh.j2")
    if modules.init is None:
        raise UsageError(
            "the plan uses the site's modules but does not say how to reach them",
            "give the site file module-init: the file that a script sources",
        )
    return render(
        "bash/modules.sh.j2",
        init=modules.init,
        # `module use` puts a tree first, so the last one goes in first.
        trees=tuple(reversed(modules.trees)),
        actions=[bash_action(each) for each in modules.actions()],
        final=sorted(modules.final),
    )


def _steps(lock: Lock) -> list[dict[str, str | Quoted]]:
    for step in lock.plan.steps:
        if not (data.TEMPLATES / "bash" / "steps" / f"{step.id}.sh.j2").is_file():
            raise UsageError(
                f"the lock has a step that this envbuild does not know: {step.id}",
                "make the lock anew: envbuild lock",
            )
    return [
        {
            "id": step.id,
            "title": step.title,
            "function": Quoted(render(f"bash/steps/{step.id}.sh.j2", **_step_values(lock))),
        }
        for step in lock.plan.steps
    ]


def _step_values(lock: Lock) -> dict[str, Any]:
    plan = lock.plan
    return {
        "python": plan.python,
        "venv_options": ("--system-site-packages",) if plan.system_site_packages else (),
        "package": plan.runtime.package,
        "runtime": import_name(plan.runtime),
    }

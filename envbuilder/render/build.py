"""The build folder's files, and those of a smoke test: pure, from a lock to texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import data
from ..errors import UsageError
from ..model.places import Places
from ..model.plan import Lock, Modules, Proof
from ..model.proofs import mpi_of, proofs_of
from .dialects import bash_action, bash_edit
from .launch import as_root, launch
from .quoting import Quoted
from .requirements import import_name, requirement_files
from .sources import STEP, builds_text, source_values
from .templates import program, render

PROGRAMS = ("check.py", "build_wheel.py", "fetch.py")
# For what is built from its sources.
SOURCE_PROGRAMS = (
    *("wheel_cache.py", "wheel_key.py", "linking.py"),
    *("verify.py", "library_facts.py", "loading.py", "horovod_build.py"),
)


def render_build(lock: Lock, places: Places) -> dict[str, str]:
    """Return every file of the build folder: relative name -> text.

    The runtime's sources (``runtime/``) and, for smoke.sh, the program ``smoke.py`` are put beside
    them by whoever writes the folder. Raises UsageError for a lock that cannot be rendered.
    """
    values = _values(lock, places)
    return {
        **render_smoke(lock, places),
        **requirement_files(lock),
        **_source_files(lock),
        "build.sh": render(
            "bash/build.sh.j2",
            **values,
            steps=_steps(lock),
            sources=Quoted(render("bash/sources.sh.j2") if lock.plan.builds else ""),
        ),
        "shell.sh": render("bash/shell.sh.j2", **values, prompt=rf"({lock.plan.recipe}) \w\$ "),
        **{name: program(name) for name in PROGRAMS},
    }


def render_smoke(lock: Lock, places: Places, proof: Proof | None = None) -> dict[str, str]:
    """Return the files with which a smoke test runs from any folder that holds its program.

    *proof*: what it proves; the first one of the plan if it is left out.
    """
    proof = proof or proofs_of(lock.plan)[0]
    values = _values(lock, places)
    program = (str(places.prefix / "bin" / "python"), Quoted('"$HERE/smoke.py"'))
    asked = ("--api", proof.api, "--transport", proof.transport, Quoted('"$@"'))
    smoke = render(
        "bash/smoke.sh.j2",
        **values,
        ranks=str(lock.plan.smoke.ranks),
        wrappers=_mpi_wrappers(lock),
        as_root=[bash_edit(edit, places.prefix) for edit in as_root(proof.launcher)],
        words=launch(proof.launcher, Quoted('"$ranks"'), (*program, *asked), proof.transport),
    )
    return {"environment.sh": _environment(lock, places, values), "smoke.sh": smoke}


# The compiler wrapper beside the launcher that the loaded modules bring.
_BESIDE_LAUNCHER = Quoted('"$(dirname -- "$(command -v mpiexec || command -v mpirun)")/mpicxx"')


def _mpi_wrappers(lock: Lock) -> tuple[str, ...]:
    """Return the wrapper that links the plan's libmpi; none where pip brings it, or nobody."""
    pin = mpi_of(lock.plan)
    if pin is None or pin.origin not in ("module", "system"):
        return ()
    return (pin.locator if pin.origin == "system" else _BESIDE_LAUNCHER,)


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


def _source_files(lock: Lock) -> dict[str, str]:
    if not lock.plan.builds:
        return {}
    return {
        "builds.json": builds_text(lock),
        **{name: program(name) for name in SOURCE_PROGRAMS},
    }


def _steps(lock: Lock) -> list[dict[str, str | Quoted]]:
    return [
        {"id": step.id, "title": step.title, "function": Quoted(_function(lock, step.id))}
        for step in lock.plan.steps
    ]


def _function(lock: Lock, step: str) -> str:
    if step.startswith(STEP):
        values = source_values(lock, step.removeprefix(STEP))
        return render("bash/steps/source.sh.j2", **values)
    if step == "source" or not (data.TEMPLATES / "bash" / "steps" / f"{step}.sh.j2").is_file():
        raise UsageError(
            f"the lock has a step that this envbuild does not know: {step}",
            "make the lock anew: envbuild lock",
        )
    return render(f"bash/steps/{step}.sh.j2", **_step_values(lock))


def _step_values(lock: Lock) -> dict[str, Any]:
    plan = lock.plan
    return {
        "python": plan.python,
        "venv_options": ("--system-site-packages",) if plan.system_site_packages else (),
        "package": plan.runtime.package,
        "runtime": import_name(plan.runtime),
    }


def render_install(lock: Lock, placeholder: str, modulefile: str) -> str:
    """Return the script that builds a bundle; *placeholder* stands for its root in all files."""
    smoke = lock.plan.smoke
    return render(
        "bundle/install.sh.j2",
        name=lock.plan.recipe,
        id=lock.id(),
        site=lock.plan.site,
        arch=lock.plan.arch,
        ranks=str(smoke.ranks),
        max_bytes=str(smoke.max_bytes),
        timeout=str(smoke.timeout),
        placeholder=placeholder,
        modulefile=modulefile,
        proofs=[
            {"title": f"{proof.api} over {proof.transport}", "script": f"smoke-{number}.sh"}
            for number, proof in enumerate(proofs_of(lock.plan), start=1)
        ],
    )

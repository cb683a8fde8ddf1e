"""The build folder's files, and those of a smoke test: pure, from a lock to texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import data
from ..base import canonical_json
from ..errors import UsageError
from ..knowledge.artifacts import GitTree, Sdist, tree_file
from ..knowledge.conda_order import compare
from ..model.backend import PrefixParts, Script
from ..model.launch import StartCommand
from ..model.places import BuildFolders
from ..model.plan import (
    Edit,
    Lock,
    Modules,
    Pin,
    Plan,
    Proof,
    SourceBuild,
    is_mpi,
    mpi_of,
    proofs_of,
)
from ..model.runtime import FlagMeaning, Runtimes
from .dialects import action_line, edit_line
from .quoting import Quoted, bash
from .requirements import import_name, requirement_files
from .subject import Renderable
from .templates import render

_PREFIX = "."

# The step that builds a component is named after it.
STEP = "build-"


def source_values(lock: Renderable, component: str) -> dict[str, Any]:
    """Return what the step's template needs. Raises UsageError for a lock without its sources."""
    build = next((each for each in lock.plan.builds if each.component == component), None)
    if build is None:
        raise UsageError(
            "lock.build-missing",
            f"the lock has a step that builds {component}, but no build of it",
            "make the lock again: envbuild lock",
        )
    sources = sources_of(lock, build) if isinstance(lock, Lock) else None
    # A wheel's folder has libraries to run with and no names to link by: those are made beside it.
    homes = {
        name: Quoted('"$PREFIX"' if each == _PREFIX else f'"$HERE"/linked/{name}')
        for name, each in build.homes.items()
    }
    return {
        "component": component,
        "title": f"{component} {build.version}",
        "archive": sources.filename if sources else _unlocked(build),
        "patches": build.patches,
        "variables": sorted({**build.environment, **build.flags, **homes}.items()),
        "linked": [
            {"name": name, "folder": Quoted(f'"$PREFIX"/{bash(folder)}')}
            for name, folder in sorted(build.homes.items())
            if folder != _PREFIX
        ],
        "options": build.pip_options,
    }


def _unlocked(build: SourceBuild) -> str:
    """Return what the sources of a build may be called in a wheelhouse, to be read."""
    if build.tree:
        return tree_file(build.component, build.version)
    return f"{build.component}-{build.version}.tar.gz"


def sources_of(lock: Lock, build: SourceBuild) -> Sdist | GitTree | None:
    """Return the artifact that holds the sources of *build*."""
    if build.tree:
        return lock.tree_of(build)
    pin = lock.plan.pin(build.component)
    locator = pin.locator.lower() if pin else build.component
    sdists = (each for each in lock.artifacts if isinstance(each, Sdist))
    wanted = (locator, build.version)
    return next((each for each in sdists if (each.name, each.version) == wanted), None)


def builds_text(lock: Lock, runtimes: Runtimes) -> str:
    """Return builds.json: what the target tools wheel-cache and verify must know of each build."""
    plan = lock.plan
    verified = [(each, plan.pin(each.component)) for each in plan.verified]
    every = [*((each, None) for each in plan.builds), *verified]
    return canonical_json([_described(lock, *each, runtimes) for each in every])


def contents(build: SourceBuild, runtimes: Runtimes, *, mpi: bool, module: bool) -> dict[str, Any]:
    """Return what a build must contain: of a module's, only what its flags state is known."""
    runtime = runtimes.get(build.component)
    meaning = runtime.meaning(build.flags, build.version) if runtime else FlagMeaning()
    parts = {
        name: wanted and (name != "mpi" or mpi)
        for name, wanted in meaning.parts.items()
        if not module or name in meaning.stated
    }
    return {
        "parts": parts if meaning.parts else None,
        "cpu_operations": meaning.cpu_operations,
    }


def _described(
    lock: Lock, build: SourceBuild, module: Pin | None, runtimes: Runtimes
) -> dict[str, Any]:
    """*module*: brings what is verified; None for what is built here."""
    mpi = _pin(lock, is_mpi) if "mpi" in build.links else None
    sources = sources_of(lock, build)
    patches = {patch.name: patch.sha256 for patch in lock.plan.patches}
    return {
        "component": build.component,
        "version": build.version,
        **({"module": module.locator} if module else {}),
        "sdist": sources.filename if sources else None,
        "sha256": sources.sha256 if sources else None,
        "flags": build.flags,
        "environment": build.environment,
        "pip_options": list(build.pip_options),
        "patches": [{"name": name, "sha256": patches.get(name)} for name in build.patches],
        "frameworks": list(build.frameworks),
        "homes": build.homes,
        **contents(build, runtimes, mpi=mpi is not None, module=module is not None),
        "mpi": mpi,
        "nccl": _pin(lock, lambda pin: pin.component == "nccl") if "nccl" in build.links else None,
    }


def _pin(lock: Lock, wanted: Callable[[Pin], bool]) -> dict[str, Any] | None:
    # What comes along with the modules nobody has asked for; what was asked for goes before it.
    pin = next(filter(wanted, (*lock.plan.pins, *lock.plan.brought)), None)
    keys = ("component", "version", "origin", "locator")
    return {key: getattr(pin, key) for key in keys} if pin else None


def render_build(
    lock: Lock,
    places: BuildFolders,
    prefix: PrefixParts,
    runtimes: Runtimes,
    start: StartCommand | None = None,
) -> dict[str, str]:
    """Return every file of the build folder: relative name -> text.

    *prefix*: what the plan's backend makes of it. *runtimes*: all of them. *start*: what starts the
    ranks of the first smoke test; without it there is no smoke.sh.

    The runtime's sources (``runtime/``) and the tools that the scripts call (``target_tools/``) are
    put beside them by whoever writes the folder. Raises UsageError for a lock that cannot be
    rendered.
    """
    return {
        **(render_smoke(lock, places, prefix, start) if start else {}),
        **render_shell(lock, places, prefix),
        **requirement_files(lock),
        **(
            {"builds.json": builds_text(lock, runtimes)}
            if lock.plan.builds or lock.plan.verified
            else {}
        ),
        "build.sh": render_script(lock, places, prefix),
    }


def render_script(source: Renderable, places: BuildFolders, prefix: PrefixParts) -> str:
    """Return the text of build.sh, which works with the other files of its folder."""
    return render(
        "bash/build.sh.j2",
        **_values(source, places),
        steps=[(each, Quoted(_function(source, each.id, prefix))) for each in source.plan.steps],
        sources=Quoted(_source_functions(source.plan)),
        install_options=_install_options(source),
    )


# The release of pip that knows --root-user-action.
_QUIET_AS_ROOT = "22.1"


def _install_options(source: Renderable) -> tuple[str, ...]:
    """Return what pip is told whenever it installs.

    As root it warns of an environment that is no virtualenv, and --isolated hides its variable.
    """
    packages = source.conda_packages if isinstance(source, Lock) else ()
    pip = next((each.version for each in packages if each.name == "pip"), None)
    known = pip is not None and compare(pip, _QUIET_AS_ROOT) >= 0
    return ("--root-user-action=ignore",) if known else ()


def render_shell(source: Renderable, places: BuildFolders, prefix: PrefixParts) -> dict[str, str]:
    """Return the files with which a command runs in the environment of the build's steps."""
    prompt = rf"({source.plan.recipe}) \w\$ "
    return {
        "environment.sh": _environment(source, places, prefix),
        "shell.sh": render("bash/shell.sh.j2", **_values(source, places), prompt=prompt),
    }


def render_smoke(
    lock: Lock,
    places: BuildFolders,
    prefix: PrefixParts,
    start: StartCommand,
    proof: Proof | None = None,
) -> dict[str, str]:
    """Return the files with which a smoke test runs from any folder that holds its program.

    *start*: what starts its ranks. *proof*: what it proves; the first one of the plan if it is left
    out.
    """
    proof = proof or proofs_of(lock.plan)[0]
    smoke = render(
        "bash/smoke.sh.j2",
        **_values(lock, places),
        ranks=str(start.ranks),
        wrappers=_mpi_wrappers(lock),
        as_root=[
            edit_line("bash", Edit(kind="set", name=name, value="1"), places.prefix)
            for name in start.root_variables
        ],
        settings=[Quoted(line) for line in start.settings],
        words=(*start.words, *_ranks_program(places.prefix, proof)),
    )
    return {"environment.sh": _environment(lock, places, prefix), "smoke.sh": smoke}


def render_foreign_smoke(
    prefix: Path, start: StartCommand, proof: Proof, *, mpi_outside: bool
) -> str:
    """Return the script of a smoke test of an environment that was not built by envbuild.

    It runs in the shell as that is, with the environment first on PATH. *mpi_outside*: its MPI does
    not lie in it, so that its compiler wrapper is asked where it does.
    """
    return _render_outside(
        f"Environment {prefix}, not built by envbuild",
        (*start.words, *_ranks_program(prefix, proof)),
        start,
        setup=[
            Quoted(f"prefix={bash(str(prefix))}"),
            Quoted('export PATH="$prefix/bin:$PATH" PYTHONDONTWRITEBYTECODE=1'),
        ],
        wrappers=[_BESIDE_LAUNCHER] if mpi_outside else [],
    )


def render_image_smoke(
    prefix: Path, container: tuple[str, ...], image: Path, start: StartCommand, proof: Proof
) -> str:
    """Return the script of a smoke test whose ranks are each in a container of an image.

    *container*: the words that start one, but for the image. *prefix*: in the image.
    """
    here = Quoted('"$HERE"')
    words = (*start.words, *container, "--bind", here, "--pwd", here, str(image))
    return _render_outside(f"Image {image}", (*words, *_ranks_program(prefix, proof)), start)


def _ranks_program(prefix: Path, proof: Proof) -> tuple[str, ...]:
    """Return the words that run the program of the ranks, of the folder that the script is in."""
    program = (str(prefix / "bin" / "python"), Quoted('"$HERE/target_tools"'), "smoke")
    return (*program, "--api", proof.api, "--transport", proof.transport, Quoted('"$@"'))


def _render_outside(
    title: str,
    words: tuple[str, ...],
    start: StartCommand,
    setup: Sequence[Quoted] = (),
    wrappers: Sequence[Quoted] = (),
) -> str:
    """Return the script of a smoke test that runs in the shell as that is."""
    return render(
        "bash/smoke-foreign.sh.j2",
        title=title,
        setup=setup,
        ranks=str(start.ranks),
        wrappers=wrappers,
        as_root=[
            edit_line("bash", Edit(kind="set", name=name, value="1"), Path("/"))
            for name in start.root_variables
        ],
        settings=[Quoted(line) for line in start.settings],
        words=words,
    )


# The compiler wrapper beside the launcher that the loaded modules bring.
_BESIDE_LAUNCHER = Quoted('"$(dirname -- "$(command -v mpiexec || command -v mpirun)")/mpicxx"')


def _mpi_wrappers(lock: Lock) -> tuple[str, ...]:
    """Return the wrapper that links the plan's libmpi; none where pip brings it, or nobody."""
    pin = mpi_of(lock.plan)
    if pin is None or pin.origin not in ("module", "system"):
        return ()
    return (pin.locator if pin.origin == "system" else _BESIDE_LAUNCHER,)


def _values(lock: Renderable, places: BuildFolders) -> dict[str, Any]:
    return {
        "name": lock.plan.recipe,
        "id": lock.id(),
        "lock_sha256": lock.sha256(),
        "prefix": str(places.prefix),
    }


def _environment(lock: Renderable, places: BuildFolders, prefix: PrefixParts) -> str:
    activation = render_text(prefix.activation) if prefix.activation else ""
    return render(
        "bash/environment.sh.j2",
        **_values(lock, places),
        edits=[edit_line("bash", edit, places.prefix) for edit in lock.plan.environment],
        activation=[Quoted(line) for line in activation.splitlines()],
        modules=Quoted(_module_functions(lock.plan.modules)),
    )


def _module_functions(modules: Modules) -> str:
    if modules.system == "none":
        return render("bash/modules-none.sh.j2")
    if modules.init is None:
        raise UsageError(
            "plan.no-module-init",
            "the plan uses the site's modules, but has no module-init",
            "add module-init to the site file: the file that a script sources",
        )
    return render(
        "bash/modules.sh.j2",
        init=modules.init,
        # `module use` puts a tree first, so the last one goes in first.
        trees=tuple(reversed(modules.trees)),
        actions=[action_line("bash", each) for each in modules.actions()],
        final=sorted(modules.final),
    )


def _function(lock: Renderable, step: str, prefix: PrefixParts) -> str:
    plan = lock.plan
    if step in prefix.scripts:
        return render_text(prefix.scripts[step])
    if step.startswith(STEP):
        return render("bash/steps/source.sh.j2", **source_values(lock, step.removeprefix(STEP)))
    template = f"bash/steps/{step}.sh.j2"
    if step == "source" or not (data.TEMPLATES / template).is_file():
        raise UsageError(
            "lock.unknown-step",
            f"the lock has an unknown step: {step}",
            "make the lock again with this envbuild: envbuild lock",
        )
    return render(
        template,
        install_options=_install_options(lock),
        aliases=plan.runtime.aliases,
        built=[each.component for each in plan.builds],
        environment=prefix.environment,
        prefix_steps=[*prefix.scripts],
        operation=_operation(plan),
        package=plan.runtime.package,
        python=plan.python,
        trees=any(each.tree for each in plan.builds),
        runtime=import_name(plan.runtime),
        secret_links=isinstance(lock, Lock) and bool(lock.secret_links),
    )


def _operation(plan: Plan) -> str | None:
    """Return the module of the bundled runtime that compiles an operation for graphs, if any."""
    has = any(each.component == "tensorflow" for each in plan.pins)
    return "tensorflow" if plan.runtime.bundled and has else None


def _source_functions(plan: Plan) -> str:
    if not plan.builds and not _operation(plan):
        return ""
    return render(
        "bash/sources.sh.j2",
        builds=bool(plan.builds),
        links=any(folder != "." for each in plan.builds for folder in each.homes.values()),
        scorep=plan.profile == "scorep",
    )


def render_text(script: Script) -> str:
    """Return the text of a template that an entry has filled in."""
    return render(script.template, **script.values)

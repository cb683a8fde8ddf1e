"""The build folder's files, and those of a smoke test: pure, from a lock to texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import data
from ..errors import UsageError
from ..model.places import Places
from ..model.plan import Lock, Modules, Pin, Plan, Proof
from ..model.proofs import mpi_of, proofs_of
from .conda import conda_specs
from .dialects import bash_action, bash_edit
from .launch import as_root, launch
from .quoting import Quoted
from .requirements import import_name, requirement_files
from .sources import STEP, builds_text, source_values
from .templates import program, render

PROGRAMS = (
    *("put_pip.py", "fetch.py", "missing.py", "install_wheels.py", "bytecode.py"),
    *("check.py", "build_wheel.py"),
)
# For what is built from its sources.
SOURCE_PROGRAMS = (
    *("wheel_cache.py", "wheel_key.py", "linking.py"),
    *("verify.py", "library_facts.py", "loading.py", "horovod_build.py"),
)

# What a site may bring for Python, by what Python imports.
PACKAGES = {
    "numpy": "numpy",
    "mpi4py": "mpi4py",
    "tensorflow": "tensorflow",
    "pytorch": "torch",
    "mxnet": "mxnet",
    "horovod": "horovod",
}


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
            sources=Quoted(_source_functions(lock)),
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
        activation=_ACTIVATION if lock.plan.backend == "conda" else (),
        modules=Quoted(_module_functions(modules)),
    )


# What `conda activate` does beside PATH: compilers and their flags are set there.
_ACTIVATION = tuple(
    Quoted(each)
    for each in (
        "# What the packages' own scripts set, the compilers' among them. They do not know these",
        "# options of bash.",
        "set +eu",
        'for script in "$PREFIX"/etc/conda/activate.d/*.sh; do',
        "  if [[ -r $script ]]; then",
        "    # shellcheck source=/dev/null",
        '    source "$script"',
        "  fi",
        "done",
        "set -eu",
    )
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
    if not lock.plan.builds and not lock.plan.verified:
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


def _source_functions(lock: Lock) -> str:
    if not lock.plan.builds:
        return ""
    builds = lock.plan.builds
    return render(
        "bash/sources.sh.j2",
        trees=any(each.tree for each in builds),
        links=any(folder != "." for each in builds for folder in each.homes.values()),
        scorep=lock.plan.profile == "scorep",
    )


# The step that makes the prefix.
_MAKERS = {"conda": "conda"}


def _step_values(lock: Lock) -> dict[str, Any]:
    plan = lock.plan
    python = plan.pin("python")
    return {
        "aliases": plan.runtime.aliases,
        "built": [each.component for each in plan.builds],
        "maker": Quoted(f"step_{_MAKERS.get(plan.backend, 'venv')}"),
        "made": Quoted("conda environment" if plan.backend == "conda" else "virtualenv"),
        "channels": [each.url for each in plan.channels],
        "specs": conda_specs(plan),
        "accepting": [
            {
                "name": name,
                "said": Quoted(f"${{{name}:-}}"),
                "value": value,
                "licence": each.licence or each.name,
            }
            for each in plan.channels
            for name, value in each.accept.items()
        ],
        "python": plan.python or "",
        # Wheels, and what is compiled, fit one series of Python: 3.11.
        "series": ".".join(python.version.split(".")[:2]) if python else "",
        "brought": _brought(plan),
        "venv_options": ("--system-site-packages",) if plan.system_site_packages else (),
        "package": plan.runtime.package,
        "runtime": import_name(plan.runtime),
    }


def _brought(plan: Plan) -> list[dict[str, str]]:
    """Return the Python packages that the site itself brings, by whom: no step installs them."""
    return [
        {"package": package, "label": f"{pin.component} {pin.version}", "by": _by(pin)}
        for component, package in PACKAGES.items()
        if (pin := plan.pin(component)) and pin.origin in ("module", "system")
    ]


def _by(pin: Pin) -> str:
    return f"module {pin.locator}" if pin.origin == "module" else pin.locator


def render_install(lock: Lock, placeholder: str, modulefile: str, job: str | None = None) -> str:
    """Return the script that builds a bundle; *placeholder* stands for its root in all files.

    *job*: the name of the job script in the bundle's build folder.
    """
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
        job=job,
        submit={"slurm": "sbatch", "lsf": "bsub <"}.get((job or "").rpartition(".")[2]),
        proofs=[
            {"title": f"{proof.api} over {proof.transport}", "script": f"smoke-{number}.sh"}
            for number, proof in enumerate(proofs_of(lock.plan), start=1)
        ],
    )

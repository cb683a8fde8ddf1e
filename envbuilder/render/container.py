"""Apptainer's (and Singularity's) definition file and the Dockerfile of a plan's image.

Both expect the build folder beside them as ``build/``, rendered for the places of IMAGE_PLACES, and
run its build.sh: what builds the image is what builds the environment anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import UsageError
from ..model.places import Places
from ..model.plan import Edit
from .dialects import edit_value
from .form_quoting import (
    LINE_BREAK,
    definition_word,
    dockerfile,
    has_control,
    line,
    needs_line_break,
)
from .image import Image
from .quoting import Quoted, comment
from .renderable import Renderable
from .templates import render

FOLDER = Path("/opt/envbuild")
# What the finished image does not need: downloads, and what was compiled from.
SCAFFOLDING = ("wheelhouse", "build-tools", "runtime-build", "sources")
# What starts ranks of the image's MPI from outside.
_HOST_MPI = {
    "openmpi": "Open MPI {major}.x",
    "mpich": "MPICH {major}.x, or an MPI of its ABI (Intel MPI, MVAPICH, Cray MPICH)",
}
# apt-get's options where a package must replace what the base image has.
_HELD = " --allow-change-held-packages --allow-downgrades"


def image_places(name: str) -> Places:
    """Return where an environment and its build folder lie inside its image."""
    return Places(prefix=FOLDER / name, build=FOLDER / f"{name}.build")


def render_definition(lock: Renderable, image: Image, notes: Sequence[str]) -> str:
    """Return the definition file; *notes* are further lines of its head."""
    places = image_places(lock.plan.recipe)
    return render(
        "container/definition.def.j2",
        **_common(lock, image, places, notes),
        base=comment(image.build_base),
        packages=sorted({*image.build_packages, *image.run_packages}),
        # Indented: no line of the text is the header of a section or of a further stage.
        help=[Quoted(f"    {line(each)}" if each else "") for each in _help(lock, image)],
        # A label's value ends with its line and is not quoted.
        labels=[(comment(key), line(value)) for key, value in _labels(lock, image.build_base)],
        environment=list(_exports(lock.plan.environment, places.prefix)),
    )


def render_dockerfile(lock: Renderable, image: Image, notes: Sequence[str]) -> str:
    """Return the Dockerfile: one stage that builds, and one that holds what was built.

    Raises UsageError for a variable whose value holds a control character.
    """
    places = image_places(lock.plan.recipe)
    return render(
        "container/Dockerfile.j2",
        **_common(lock, image, places, notes),
        folder=str(FOLDER),
        build_base=comment(image.build_base),
        run_base=comment(image.run_base),
        build_packages=sorted({*image.build_packages, *image.run_packages}),
        run_packages=image.run_packages,
        labels=[(comment(key), dockerfile(value)) for key, value in _labels(lock, image.run_base)],
        environment=list(_docker_edits(lock.plan.environment, places.prefix)),
    )


def _common(
    lock: Renderable, image: Image, places: Places, notes: Sequence[str]
) -> dict[str, object]:
    plan = lock.plan
    return {
        "name": plan.recipe,
        "title": line(f"{plan.recipe}: {plan.summary}"),
        "notes": [line(each) for each in notes],
        "prefix": str(places.prefix),
        "build": str(places.build),
        "scaffolding": SCAFFOLDING,
        # NVIDIA's images hold NCCL at their own version.
        "apt_options": _HELD if image.cuda else "",
    }


def _labels(lock: Renderable, base: str) -> Iterator[tuple[str, str]]:
    plan = lock.plan
    yield "org.opencontainers.image.title", plan.recipe
    yield "org.opencontainers.image.description", plan.summary
    yield "org.opencontainers.image.base.name", base
    yield "envbuild.arch", plan.arch
    yield "envbuild.environment", lock.id()
    yield "envbuild.lock.sha256", lock.sha256()
    waived = sorted(each.id for each in plan.findings if each.status == "waived")
    if waived:
        yield "envbuild.waived", ",".join(waived)


def _help(lock: Renderable, image: Image) -> Iterator[str]:
    plan = lock.plan
    yield f"{plan.recipe}: {plan.summary}"
    yield f"For {plan.arch}, on {image.build_base}. Environment {lock.id()}."
    yield from ("", "Components:")
    yield from (f"  {pin}" for pin in plan.pins)
    yield f"  {plan.runtime.package}@{plan.runtime.version} <- built in this image"
    for finding in plan.findings:
        if finding.status == "waived":
            yield f"Waived: {finding.id}: {finding.summary} ({finding.reason})"
    yield from ("", "Ranks on one machine, started inside the image:")
    yield f"  apptainer exec {plan.recipe}.sif mpiexec -n 2 python PROGRAM.py"
    yield "Ranks on several nodes, started by the MPI or scheduler of the host (hybrid model):"
    yield f"  mpiexec -n 8 apptainer exec {plan.recipe}.sif python PROGRAM.py"
    yield f"  srun --mpi=pmix -n 8 apptainer exec {plan.recipe}.sif python PROGRAM.py"
    yield from _hybrid(lock)
    if image.cuda:
        yield "With GPUs: apptainer exec --nv ...; the driver is the host's."


def _hybrid(lock: Renderable) -> Iterator[str]:
    """Say which MPI the host must have: both sides speak one PMI, and one protocol on the wire."""
    for pin in lock.plan.pins:
        if pin.component in _HOST_MPI:
            major = pin.version.split(".")[0]
            yield f"The image has {pin.component} {pin.version}. The host needs"
            yield f"{_HOST_MPI[pin.component].format(major=major)},"
            yield "or a Slurm with a --mpi= (srun --mpi=list) that the MPI of the image speaks."


def _exports(edits: Sequence[Edit], prefix: Path) -> Iterator[Quoted]:
    """Yield the edits as lines of %environment, which /bin/sh sources at every start."""
    if any(needs_line_break(edit_value(edit, prefix)) for edit in edits):
        yield Quoted(f"{LINE_BREAK}=$(printf '\\nx'); {LINE_BREAK}=${{{LINE_BREAK}%x}}")
    for edit in edits:
        name, value = edit.name, definition_word(edit_value(edit, prefix))
        lines = {
            "set": f"export {name}={value}",
            "unset": f"unset {name}",
            "prepend": f'export {name}={value}"${{{name}:+:${name}}}"',
            "append": f'export {name}="${{{name}:+${name}:}}"{value}',
        }
        yield Quoted(lines[edit.kind])


def _docker_edits(edits: Sequence[Edit], prefix: Path) -> Iterator[Quoted]:
    """Yield the edits as ENV lines; a base image sets none of what is unset."""
    for edit in edits:
        value = edit_value(edit, prefix)
        if has_control(value):
            raise UsageError(
                f"a Dockerfile cannot set {edit.name}: its value holds a line break or another "
                "control character",
                "the forms script, lua, tcl and def can",
            )
        word = dockerfile(value)[1:-1]
        name = edit.name
        lines = {
            "set": f'ENV {name}="{word}"',
            "unset": f"# {name} is not set in the base image.",
            "prepend": f'ENV {name}="{word}${{{name}:+:${name}}}"',
            "append": f'ENV {name}="${{{name}:+${name}:}}{word}"',
        }
        yield Quoted(lines[edit.kind])

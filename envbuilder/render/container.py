"""Apptainer's (and Singularity's) definition file and the Dockerfile of a plan's image.

Both expect the build folder beside them as ``build/``, rendered for the places of IMAGE_PLACES, and
run its build.sh: what builds the image is what builds the environment anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import UsageError
from ..model.base_image import Bind
from ..model.launch import StartCommand
from ..model.places import BuildFolders
from ..model.plan import Lock, Plan, is_mpi, mpi_from, proofs_of
from ..target_tools.root.publish import SCAFFOLDING
from .build import render_build
from .dialects import edit_line, edit_value
from .image import Image, bases
from .quoting import LINE_BREAK, Quoted, comment, dockerfile, has_control, line
from .subject import PlannedImage, Renderable, RenderInput
from .templates import render

FOLDER = Path("/opt/envbuild")
# The label of the folders of the site's modules.
_BINDS = "envbuild.binds"
# apt-get's options where a package must replace what the base image has.
_HELD = " --allow-change-held-packages --allow-downgrades"


def image_places(name: str) -> BuildFolders:
    """Return where an environment and its build folder lie inside its image."""
    return BuildFolders(prefix=FOLDER / name, build=FOLDER / f"{name}.build")


def render_image(
    subject: RenderInput, parts: PlannedImage, start: StartCommand | None = None
) -> dict[str, str]:
    """Return all files that an image is built from: definition, Dockerfile and ``build/...``.

    *start*: what starts its smoke test.

    The runtime's sources and target_tools/ are put into ``build/`` by whoever writes the folder.
    Raises UsageError for a plan without a lock, and where the image needs files that the lock
    lacks.
    """
    image = parts.image
    if not isinstance(subject.source, Lock):
        raise UsageError("lock.missing", "an image needs a lock", "make one with envbuild lock")
    if image.from_index:
        raise UsageError(
            "image.files-not-locked",
            f"the lock has no files for {', '.join(image.from_index)}: they come from modules at "
            f"{subject.plan.site}, but an image needs them from the index",
            "lock the recipe for a site without modules, of the same Python: --site local",
        )
    lock = Lock(plan=image.plan, artifacts=subject.source.artifacts)
    name = lock.plan.recipe
    files = render_build(lock, image_places(name), parts.prefix, subject.runtimes, start)
    return {
        f"{name}.def": render_definition(lock, image),
        "Dockerfile": render_dockerfile(lock, image),
        **{f"build/{file}": text for file, text in files.items()},
        "build/lock.json": lock.text(),
    }


def render_definition(lock: Renderable, image: Image, notes: Sequence[str] = ()) -> str:
    """Return the definition file; *notes* are further lines of its head."""
    return render(
        "container/definition.def.j2",
        **_common(lock, image, notes),
        base=comment(image.build_base),
        proof=_proof(lock.plan),
        # Indented: no line of the text is the header of a section or of a further stage.
        help=[
            Quoted(f"    {line(each)}" if each else "")
            for each in help_lines(lock, image.build_base, cuda=image.cuda)
        ],
        # A label's value ends with its line and is not quoted.
        labels=[(comment(key), line(value)) for key, value in labels(lock, image.build_base)],
        environment=list(exports(lock.plan, image_places(lock.plan.recipe).prefix)),
    )


def render_dockerfile(lock: Renderable, image: Image, notes: Sequence[str] = ()) -> str:
    """Return the Dockerfile: one stage that builds, and one that holds what was built.

    Raises UsageError for a variable whose value holds a control character.
    """
    return render(
        "container/Dockerfile.j2",
        **_common(lock, image, notes),
        folder=str(FOLDER),
        build_base=comment(image.build_base),
        run_base=comment(image.run_base),
        run_packages=image.run_packages,
        labels=[(comment(key), dockerfile(value)) for key, value in labels(lock, image.run_base)],
        environment=list(_docker_edits(lock.plan)),
    )


def _common(lock: Renderable, image: Image, notes: Sequence[str]) -> dict[str, object]:
    plan, places = lock.plan, image_places(lock.plan.recipe)
    return {
        "name": plan.recipe,
        "title": line(f"{plan.recipe}: {plan.summary}"),
        "notes": [line(each) for each in notes],
        "prefix": str(places.prefix),
        "build": str(places.build),
        # Nothing is built in an image again: the sources go too.
        "scaffolding": (*SCAFFOLDING, "sources"),
        "build_packages": sorted({*image.build_packages, *image.run_packages}),
        # NVIDIA's images hold NCCL at their own version.
        "apt_options": _HELD if image.cuda else "",
    }


def _proof(plan: Plan) -> Iterator[str]:
    """Yield what the test of an image proves: its smoke.sh starts the first proof of the plan."""
    first = proofs_of(plan)[0]
    yield from ("--api", first.api, "--transport", first.transport)
    where = mpi_from(plan)
    if where:
        yield from ("--mpi-from", where)


def labels(lock: Renderable, base: str, binds: Sequence[Bind] = ()) -> Iterator[tuple[str, str]]:
    plan = lock.plan
    yield "org.opencontainers.image.title", plan.recipe
    yield "org.opencontainers.image.description", plan.summary
    pinned = next((each for each in plan.inputs if each.kind == "base"), None)
    yield "org.opencontainers.image.base.name", pinned.name if pinned else base
    if pinned:
        yield "org.opencontainers.image.base.digest", f"sha256:{pinned.sha256}"
    yield "envbuild.arch", plan.arch
    yield "envbuild.environment", lock.id()
    yield "envbuild.lock.sha256", lock.sha256()
    if binds:
        yield _BINDS, ",".join(str(each.target) for each in binds)
    for pin in plan.pins:
        # What the host must fit: envbuild info IMAGE --site NAME.
        if is_mpi(pin) or pin.component == "cuda":
            yield f"envbuild.{'mpi' if is_mpi(pin) else 'cuda'}", f"{pin.component} {pin.version}"
    if plan.waived:
        yield "envbuild.waived", ",".join(sorted(each.id for each in plan.waived))


def binds_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders that an image takes from the machine, by its labels."""
    return tuple(filter(None, labels.get(_BINDS, "").split(",")))


def help_lines(
    lock: Renderable, base: str, *, cuda: bool, binds: Sequence[Bind] = ()
) -> Iterator[str]:
    """Yield what ``apptainer run-help`` says: what is in the image, and how ranks are started."""
    plan = lock.plan
    # What loads the modules of a host is the image's runscript.
    bound = "".join(f"--bind {each.target} " for each in binds)
    start = f"apptainer {'run' if binds else 'exec'} {bound}{plan.recipe}.sif"
    yield f"{plan.recipe}: {plan.summary}"
    yield f"For {plan.arch}, on {base}. Environment {lock.id()}."
    yield from ("", "Components:")
    yield from (f"  {pin}" for pin in plan.pins)
    yield f"  {plan.runtime.package}@{plan.runtime.version} <- built in this image"
    for each in plan.waived:
        yield f"Waived: {each.id}: {each.summary} ({each.reason})"
    yield from ("", "Ranks on one machine, started inside the image:")
    yield f"  {start} mpiexec -n 2 python PROGRAM.py"
    yield "Ranks on several nodes, started by the MPI or scheduler of the host (hybrid model):"
    yield f"  mpiexec -n 8 {start} python PROGRAM.py"
    yield f"  srun --mpi=pmix -n 8 {start} python PROGRAM.py"
    yield from _hybrid(lock)
    if cuda:
        yield "With GPUs: apptainer exec --nv ...; the driver is the host's."


def _hybrid(lock: Renderable) -> Iterator[str]:
    """Say which MPI the host must have: both sides speak one PMI, and one protocol on the wire."""
    for pin in lock.plan.pins:
        if host := bases().host_mpi.get(pin.component):
            yield f"The image has {pin.component} {pin.version}. The host needs"
            yield f"{host.called.format(major=pin.version.split('.')[0])},"
            yield "or a Slurm with a --mpi= (srun --mpi=list) that the MPI of the image supports."


def exports(plan: Plan, prefix: Path) -> Iterator[Quoted]:
    """Yield the edits as lines of %environment, which /bin/sh sources at every start."""
    if any("\n" in edit_value(edit, prefix) for edit in plan.environment):
        yield Quoted(f"{LINE_BREAK}=$(printf '\\nx'); {LINE_BREAK}=${{{LINE_BREAK}%x}}")
    yield from (edit_line("sh", edit, prefix) for edit in plan.environment)


def variables(plan: Plan, prefix: Path, of_base: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that an image has at every start, edits applied.

    *of_base*: those that its base sets, ``NAME=VALUE``; else they are a plain Debian's.
    """
    values = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    for name, _, value in (each.partition("=") for each in of_base):
        values[name] = value
    for edit in plan.environment:
        value, before = edit_value(edit, prefix), values.get(edit.name)
        if edit.kind == "unset":
            values.pop(edit.name, None)
        elif edit.kind == "prepend" and before:
            values[edit.name] = f"{value}:{before}"
        elif edit.kind == "append" and before:
            values[edit.name] = f"{before}:{value}"
        else:
            values[edit.name] = value
    return values


def _docker_edits(plan: Plan) -> Iterator[Quoted]:
    """Yield the edits as ENV lines; a base image sets none of what is unset."""
    prefix = image_places(plan.recipe).prefix
    for edit in plan.environment:
        if has_control(edit_value(edit, prefix)):
            raise UsageError(
                "variable.control-character",
                f"a Dockerfile cannot set {edit.name}: its value contains a line break or another "
                "control character",
                "use the form script, lua, tcl or def",
            )
        yield edit_line("env", edit, prefix)

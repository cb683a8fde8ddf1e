"""What create, bundle and lock achieved as text for people: pure functions, no printing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from ..model.evidence import Evidence
from ..model.outcome import BundleCheck, BundleResult, CreateResult, ImageResult, LockCheck
from ..model.places import REGISTRY, ImageFormat
from ..text import filled
from .layout import how, joined, size


def made(value: CreateResult | BundleResult | ImageResult) -> str:
    """Return what was made of a recipe."""
    if isinstance(value, BundleResult):
        return bundled(value)
    return image_built(value) if isinstance(value, ImageResult) else created(value)


@joined
def created(value: CreateResult) -> Iterator[str]:
    """Return what ``create`` achieved and how to use it; the last line says it in one."""
    yield from _proved(value)
    yield f"prefix: {value.prefix}"
    yield from ("", "to use it:")
    yield f"  module use '{value.modulefiles}'"
    yield f"  module load {value.environment}"
    yield f"  {shlex.join(value.launch)}"
    if value.loads:
        yield f"the module loads these modules of the site: {', '.join(value.loads)}"
    else:
        yield "without a module system:"
        yield f"  {value.enter}"
    yield from ("", f"{value.environment}/{value.number} is published and is the default")


def _tested(evidence: Evidence) -> str:
    done = evidence.result
    marks = how(evidence.execution, evidence.stand_ins, evidence.by)
    over = f" over {done.transport}" if done.transport else ""
    return f"{done.api}{over}: {done.tier} on {evidence.arch}{marks}"


def _proved(value: CreateResult | ImageResult) -> Iterator[str]:
    """Yield what was proved, how quickly, and what was waived."""
    every = value.proofs or (value.evidence,)
    for each in (one for one in every if one.result.verdict == "passed"):
        yield f"proved: {_tested(each)}; {len(each.result.checks)} checks passed"
    if timings := value.evidence.result.timings:
        latency = f"{timings[0].latency_us:.0f} us latency at {size(timings[0].bytes)}"
        bandwidth = f"{timings[-1].bus_bandwidth:.2f} GB/s at {size(timings[-1].bytes)}"
        yield f"speed: {latency}, {bandwidth}"
    if how(value.evidence.execution):
        yield f"the smoke test was emulated: the speed on {value.evidence.arch} is unknown"
    if value.evidence.stand_ins:
        yield from filled(
            "! stand-ins, so this does not prove the recipe: ", ", ".join(value.evidence.stand_ins)
        )
    waived = [each.id for each in value.evidence.findings if each.status == "waived"]
    if waived:
        yield from filled("waived advisories: ", ", ".join(waived))


_ENDS: Mapping[ImageFormat, str] = {
    "sif": "built and proved; the packed image was tested",
    "oci": "built and proved; the packed files were compared",
    "sandbox": "built and proved",
}


@joined
def image_built(value: ImageResult) -> Iterator[str]:
    """Return what an image is and how it is run; the last line says that it is there."""
    yield from _proved(value)
    for each in value.unproved:
        yield f"not proved: {_tested(each)}"
        yield from (f"  {line}" for line in each.result.failure_lines())
    yield f"on {value.base}, {value.arch}: {value.image} ({value.bytes / 1e6:.0f} MB)"
    yield f"lock, manifest and records: {value.beside}"
    yield from ("", "to use it:")
    program, file = "python PROGRAM.py", shlex.quote(PurePath(value.image).name)
    if value.modulefiles:
        yield f"  module use '{value.modulefiles}'"
        yield f"  module load {value.environment}/{value.number}"
        file = shlex.quote(value.image)
    if value.image.startswith(REGISTRY):
        yield f"  podman run {value.image.removeprefix(REGISTRY)} mpiexec -n 2 {program}"
    elif value.format == "oci":
        yield f"  skopeo copy oci:{file}:{value.id} docker://REGISTRY/{value.environment}:{value.id}"
        yield f"  podman run oci:{file}:{value.id} mpiexec -n 2 {program}"
    else:
        # What loads the modules is the image's runscript.
        verb = "run" if value.binds else "exec"
        words = "".join(f"--bind {shlex.quote(each)} " for each in value.binds)
        words += "--nv " if value.gpus else ""
        yield f"  apptainer {verb} {words}{file} mpiexec -n 2 {program}"
    yield ""
    if value.unproved:
        yield f"on a machine with GPUs: envbuild smoke {file} --site SITE"
        yield "built and tested, but not proved: the image is a candidate"
    elif value.modulefiles:
        yield f"{value.environment}/{value.number} is published and is the default"
    else:
        yield _ENDS[value.format]


@joined
def bundled(value: BundleResult) -> Iterator[str]:
    """Return what a bundle holds and how it is installed; the last line says its tier."""
    compiled = ", ".join(value.builds) or "nothing"
    yield f"{value.files} files for {value.arch}; the installer compiles: {compiled}"
    yield f"bundle: {value.folder}"
    yield f"packed: {value.archive} ({value.bytes / 1e6:.0f} MB)"
    yield ""
    yield f"to install it on a machine of {value.site} ({value.arch}), without network:"
    yield f"  tar -xzf '{PurePath(value.archive).name}'"
    yield f"  bash '{PurePath(value.folder).name}/install.sh' ROOT"
    if value.can_emulate:
        yield "to build and prove it on this machine in qemu: the same create with --emulate"
    yield ""
    yield f"bundle only: tier {value.tier}; nothing was built"


@joined
def bundle_check(value: BundleCheck) -> Iterator[str]:
    """Return whether a bundle is as it was packed, and what it is."""
    yield f"bundle {value.file}"
    if value.environment:
        yield f"  {value.environment} {value.id}, for {value.site} ({value.arch})"
    for said, lines in (
        (f"changed since packing: {len(value.changed)} of {value.files} files", value.changed),
        ("contradictions:", value.contradictions),
        ("not compared with the lock:", value.unchecked),
    ):
        if lines:
            yield said
            yield from (f"  {each}" for each in lines)
    if not value.changed and not value.contradictions:
        yield f"all {value.files} files are unchanged; nothing was unpacked or run"


@joined
def lock_check(value: LockCheck) -> Iterator[str]:
    """Return what has changed since a lock was made."""
    if value.changed:
        yield f"{value.file} ({value.id}): changed since the lock was made:"
        yield from (f"  {each}" for each in value.changed)
    else:
        yield f"{value.file} ({value.id}): nothing has changed since the lock was made"

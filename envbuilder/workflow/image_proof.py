"""``envbuild smoke IMAGE``: ranks that the host starts, each in a container of the image.

The smoke tests are the image's own and so is the judge; the launch line is that of ``launch``. The
records are kept beside the image, in the folder of those that it was built with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .. import process
from ..errors import SmokeError, UsageError
from ..model.evidence import SmokeReport
from ..model.plan import proofs_of
from ..render.build import render_image_smoke
from ..target_tools.proving.binding import BESIDE_RUNS, record_earlier
from ..target_tools.proving.evidence import prove as run_proofs
from .context import Context
from .hosts import find_smoke_hosts
from .image_contract import HostedImage, check_fits, hosted_image, records_beside
from .launch_requests import smoke_request, start_command
from .options import RootOptions
from .prove import Starts, evidence_of, proving_of


@dataclass(frozen=True)
class _Places:
    """Where the environment of an image is, as ``Home`` says it of one in a root."""

    image: HostedImage
    beside: Path
    group: None = None

    def prefix(self, _identity: str) -> Path:
        return self.image.prefix

    def build(self, _identity: str) -> Path:
        return self.beside / "build"

    def evidence(self, _identity: str) -> Path:
        return self.beside


def smoke_image(
    name: str, where: RootOptions, ranks: int | None, context: Context, *, host_mpi: bool
) -> SmokeReport:
    """Prove an image on this host and append the evidence to what lies beside the image.

    *host_mpi*: with the host's MPI in place of the image's. Raises SmokeError, UsageError where the
    two do not fit, DriftError or MissingToolError as ``launch`` does.
    """
    image = hosted_image(name, where.site, None, context, host_mpi=host_mpi)
    check_fits(image)
    file, identity = context.path(name), image.lock.id()
    facts = image.facts(context)
    starts = _starts(image, ranks, context)
    container = image.container(gpus=facts.gpus)
    proving = proving_of(image.lock, starts, identity, facts.partition)
    proving["about"]["site"] = image.chosen.site.name
    # The evidence in the image has the facts about its libraries.
    proving["components"] = []
    proving["mpi-from"] = "host" if image.mpi else "files" if image.mpi_files else None
    proving["mpi-files"] = [*map(str, image.mpi_files)]
    for described, (proof, request) in zip(proving["proofs"], starts, strict=True):
        start = start_command(request)
        script = render_image_smoke(image.prefix, container, file, start, proof)
        described["files"] = {"smoke.sh": script}
        described["launch"] = [*described["launch"], *container, str(file)]
    places = _Places(image, records_beside(file))
    is_new = not places.beside.exists()
    places.beside.mkdir(parents=True, exist_ok=True)
    record_earlier(places.beside, BESIDE_RUNS, is_new)
    with context.reporter.working(f"smoke test on {starts[0][1].ranks} ranks"):
        proved = run_proofs(proving, places, identity, dict(context.environ), process.start)
    evidence = evidence_of(proved, image.lock)
    if evidence[-1].result.verdict != "passed":
        raise SmokeError(
            "smoke.failed",
            f"{name} failed its smoke test on {image.chosen.site.name}:\n"
            + "\n".join(f"  {line}" for line in evidence[-1].result.failure_lines()),
            f"log and records of every rank: {places.beside / evidence[-1].log}",
        )
    return SmokeReport(evidence=evidence)


def _starts(image: HostedImage, ranks: int | None, context: Context) -> Starts:
    """Return the smoke tests that the host's launcher can start, with what starts their ranks."""
    facts = image.facts(context)
    hosts = find_smoke_hosts(facts.launch_node, context)
    own = image.plan.launcher.kind
    # By Gloo ranks are started in the image: it was proved in it.
    proofs = [each for each in proofs_of(image.plan) if each.launcher.kind == own]
    if image.launcher is None or not proofs:
        raise UsageError(
            "launcher.none-for-image",
            f"no launcher of this host can start the ranks of {image.file}",
        )
    there = [each.model_copy(update={"launcher": image.launcher}) for each in proofs]
    ranks = ranks or image.plan.smoke.ranks
    return [(each, smoke_request(facts, each, ranks, hosts)) for each in there]

"""Which smoke tests an environment must pass: one for each runtime and way of talking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..model.knowledge import HorovodPart, Knowledge
from ..model.plan import Api, Pin, Proof, SourceBuild, Transport
from ..model.recipe import Recipe
from ..model.site import Launcher

_HOROVOD = "horovod"

ApiLauncher = Callable[[Api], Launcher | None]


@dataclass(frozen=True)
class ProofRequest:
    """What the smoke tests follow from.

    ``api_launcher``: returns the launcher that the programs of an API bring along, where it can
    start the ranks: no scheduler stands between.
    """

    recipe: Recipe
    knowledge: Knowledge
    pins: Sequence[Pin]
    builds: Sequence[SourceBuild]
    launcher: Launcher
    api_launcher: ApiLauncher


def horovod_parts(
    flags: Mapping[str, str], pins: Sequence[Pin], knowledge: Knowledge
) -> tuple[HorovodPart, ...]:
    """Return the parts that Horovod is built with.

    That is what is there and not left out: what is asked for by HOROVOD_WITH_ and not there, the
    resolver has refused.
    """
    components = {pin.component for pin in pins}
    return tuple(
        each
        for component, each in knowledge.horovod_parts().items()
        if component in components and flags.get(f"HOROVOD_WITHOUT_{each.flag}") != "1"
    )


def proofs(request: ProofRequest) -> tuple[Proof, ...]:
    """Return the smoke tests in their order: the bundled runtime's, then those of the recipe's.

    A Horovod that a module brings is proved like one that is built. For TensorFlow's distribution
    strategies and IBM's DDL there is no test of their own: the bundled runtime's stands alone.
    """
    own = (Proof(api="numpy", transport="mpi", launcher=request.launcher),)
    if any(pin.component == _HOROVOD for pin in request.pins):
        flags = _flags(request.recipe, request.builds)
        parts = horovod_parts(flags, request.pins, request.knowledge)
        return (*own, *_of_horovod(parts, flags, request))
    bundled: Iterator[Proof] = iter(())
    if _HOROVOD in request.recipe.runtime.aliases:
        parts = horovod_parts({}, request.pins, request.knowledge)
        bundled = _of_horovod([each for each in parts if each.bundled], {}, request)
    return (*own, *bundled, *_of_collectives(request))


def _flags(recipe: Recipe, builds: Sequence[SourceBuild]) -> Mapping[str, str]:
    """Return what Horovod is built with; of a module's, what the recipe says of it."""
    built = next((each for each in builds if each.component == _HOROVOD), None)
    return recipe.runtime.flags if built is None else built.flags


def _of_collectives(request: ProofRequest) -> Iterator[Proof]:
    """Yield the proofs of frameworks' own collectives: over NCCL where the stack names it."""
    components = {pin.component for pin in request.pins}
    for component in sorted(components & request.knowledge.components.keys()):
        own = request.knowledge.components[component].collectives
        if own is None:
            continue
        launcher = request.api_launcher(own.proof)
        if launcher is None and request.recipe.runtime.package == own.package:
            launcher = request.launcher
        if launcher is not None:
            transport: Transport = "nccl" if "nccl" in components else "gloo"
            yield Proof(api=own.proof, transport=transport, launcher=launcher)


def _of_horovod(
    parts: Sequence[HorovodPart], flags: Mapping[str, str], request: ProofRequest
) -> Iterator[Proof]:
    for part in parts:
        if part.proof is None:
            continue
        if flags.get("HOROVOD_WITHOUT_MPI") != "1":
            yield Proof(api=part.proof, transport=_transport(flags), launcher=request.launcher)
        by_gloo = request.api_launcher(part.proof)
        if flags.get("HOROVOD_WITHOUT_GLOO") != "1" and by_gloo is not None:
            yield Proof(api=part.proof, transport="gloo", launcher=by_gloo)


def _transport(flags: Mapping[str, str]) -> Transport:
    operation = flags.get("HOROVOD_GPU_ALLREDUCE") or flags.get("HOROVOD_GPU_OPERATIONS")
    return "nccl" if operation == "NCCL" else "mpi"

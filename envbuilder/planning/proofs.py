"""Which smoke tests an environment must pass: one for each runtime and way of talking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..model.horovod import HOROVOD, by_nccl, has_part
from ..model.knowledge import Collectives, HorovodPart, Knowledge
from ..model.plan import Api, Pin, Proof, SourceBuild, Transport
from ..model.ranges import matches
from ..model.recipe import Recipe
from ..model.site import Launcher

ApiLauncher = Callable[[Api], Launcher | None]
"""Returns the launcher that the programs of an API bring along, where it can start the ranks: no
scheduler stands between."""


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
        if component in components and has_part(flags, each.flag)
    )


def proofs(
    recipe: Recipe,
    knowledge: Knowledge,
    pins: Sequence[Pin],
    builds: Sequence[SourceBuild],
    launcher: Launcher,
    api_launcher: ApiLauncher,
) -> Iterator[Proof]:
    """Yield the smoke tests in their order: the bundled runtime's, then those of the recipe's.

    A Horovod that a module brings is proved like one that is built. For TensorFlow's distribution
    strategies and IBM's DDL there is no test of their own: the bundled runtime's stands alone.
    """
    yield Proof(api="numpy", transport="mpi", launcher=launcher)
    components = {pin.component: pin.version for pin in pins}
    if HOROVOD in components:
        # Of a module's, what the recipe says of it.
        built = next((each.flags for each in builds if each.component == HOROVOD), None)
        flags = recipe.runtime.flags if built is None else built
        parts = horovod_parts(flags, pins, knowledge)
        yield from of_horovod(parts, flags, launcher, api_launcher)
        return
    if HOROVOD in recipe.runtime.aliases:
        bundled = [each for each in horovod_parts({}, pins, knowledge) if each.bundled]
        yield from of_horovod(bundled, {}, launcher, api_launcher)
    for component in sorted(components.keys() & knowledge.components.keys()):
        own = knowledge.components[component].collectives
        by = api_launcher(own.proof) if own else None
        if own and by and not has_launcher(own, components[component], components):
            by = launcher
        if own and by is None and recipe.runtime.package == own.package:
            by = launcher
        if own and by:
            # Over NCCL where the stack names it.
            transport: Transport = "nccl" if "nccl" in components else "gloo"
            yield Proof(api=own.proof, transport=transport, launcher=by)


def has_launcher(own: Collectives, version: str, components: Mapping[str, str]) -> bool:
    """Whether a release of a framework has a launcher that works beside these components."""
    return any(
        matches(version, each.range)
        and all(
            name not in components or matches(components[name], versions)
            for name, versions in each.beside.items()
        )
        for each in own.launched
    )


def of_horovod(
    parts: Sequence[HorovodPart],
    flags: Mapping[str, str],
    launcher: Launcher,
    api_launcher: ApiLauncher,
) -> Iterator[Proof]:
    """Yield the smoke tests of a Horovod with these parts, built with these flags."""
    for part in parts:
        if part.proof is None:
            continue
        if has_part(flags, "MPI"):
            transport: Transport = "nccl" if by_nccl(flags) else "mpi"
            yield Proof(api=part.proof, transport=transport, launcher=launcher)
        by_gloo = api_launcher(part.proof)
        if has_part(flags, "GLOO") and by_gloo is not None:
            yield Proof(api=part.proof, transport="gloo", launcher=by_gloo)

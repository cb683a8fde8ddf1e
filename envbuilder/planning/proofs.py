"""Which smoke tests an environment must pass: one for each runtime and way of talking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..model.plan import Api, Pin, Proof, SourceBuild, Transport
from ..model.recipe import Recipe
from ..model.site import Launcher

# The framework of each of Horovod's build variables: HOROVOD_WITHOUT_PYTORCH=1 leaves it out.
FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "TENSORFLOW": ("tensorflow", "tensorflow"),
    "PYTORCH": ("pytorch", "torch"),
    "MXNET": ("mxnet", "mxnet"),
}

_HOROVOD: Mapping[str, Api] = {"tensorflow": "horovod.tensorflow", "torch": "horovod.torch"}


def frameworks(flags: Mapping[str, str], components: Sequence[str]) -> tuple[str, ...]:
    """Return what Horovod is built for, by the name of its part: torch, tensorflow, mxnet.

    That is what is there and not left out: what is asked for by HOROVOD_WITH_ and not there, the
    resolver has refused.
    """
    return tuple(
        part
        for name, (component, part) in FRAMEWORKS.items()
        if component in components and flags.get(f"HOROVOD_WITHOUT_{name}") != "1"
    )


def proofs(
    recipe: Recipe,
    pins: Sequence[Pin],
    builds: Sequence[SourceBuild],
    launcher: Launcher,
    *,
    alone: bool,
) -> tuple[Proof, ...]:
    """Return the smoke tests in their order: the bundled runtime's, then those of the recipe's.

    A Horovod that a module brings is proved like one that is built. For TensorFlow's distribution
    strategies and IBM's DDL there is no test of their own: the bundled runtime's stands alone.

    *alone*: no scheduler stands between, so that the runtime's own launcher can start the ranks.
    """
    components = [pin.component for pin in pins]
    own = [Proof(api="numpy", transport="mpi", launcher=launcher)]
    if "horovod" in components:
        flags = _flags(recipe, builds)
        return (*own, *_of_horovod(flags, components, launcher, alone=alone))
    if "horovod" in recipe.runtime.aliases:
        own += _of_horovod({"HOROVOD_WITHOUT_TENSORFLOW": "1"}, components, launcher, alone=alone)
    if "pytorch" in components and (alone or recipe.runtime.package == "torch-distributed"):
        own.append(_of_torch(components, launcher, alone=alone))
    return tuple(own)


def _flags(recipe: Recipe, builds: Sequence[SourceBuild]) -> Mapping[str, str]:
    """Return what Horovod is built with; of a module's, what the recipe says of it."""
    built = next((each for each in builds if each.component == "horovod"), None)
    return recipe.runtime.flags if built is None else built.flags


def _of_torch(components: Sequence[str], launcher: Launcher, *, alone: bool) -> Proof:
    """Return the proof of torch.distributed: over NCCL where the stack names it."""
    torchrun = Launcher(kind="torchrun", command=("torchrun",))
    return Proof(
        api="torch.distributed",
        transport="nccl" if "nccl" in components else "gloo",
        launcher=torchrun if alone else launcher,
    )


def _of_horovod(
    flags: Mapping[str, str], components: Sequence[str], launcher: Launcher, *, alone: bool
) -> Iterator[Proof]:
    for part in frameworks(flags, components):
        if part not in _HOROVOD:
            continue  # MXNet is retired; what is built for it is verified, not started
        api = _HOROVOD[part]
        if flags.get("HOROVOD_WITHOUT_MPI") != "1":
            yield Proof(api=api, transport=_transport(flags), launcher=launcher)
        if flags.get("HOROVOD_WITHOUT_GLOO") != "1" and alone:
            horovodrun = Launcher(kind="horovodrun", command=("horovodrun",))
            yield Proof(api=api, transport="gloo", launcher=horovodrun)


def _transport(flags: Mapping[str, str]) -> Transport:
    operation = flags.get("HOROVOD_GPU_ALLREDUCE") or flags.get("HOROVOD_GPU_OPERATIONS")
    return "nccl" if operation == "NCCL" else "mpi"

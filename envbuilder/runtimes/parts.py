"""What runtimes have in common: those without build variables, and parts of a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..knowledge.components import Collectives, Component, HorovodPart
from ..knowledge.ranges import matches
from ..model.plan import Proof
from ..model.runtime import BuildTraces, FlagMeaning, ProofInputs


def no_flags(_flags: Mapping[str, str], _release: str | None) -> FlagMeaning:
    """Return the meaning for a runtime without build variables."""
    return FlagMeaning()


def no_bindings(_known: Mapping[str, Component]) -> Mapping[str, HorovodPart]:
    """Return the bindings of a runtime that is not built for frameworks."""
    return {}


def no_traces(
    _start: str, _libraries: Sequence[str], _holds: Callable[[str, bytes], bool]
) -> BuildTraces | None:
    """Return the traces of a runtime whose native libraries show no build variable."""
    return None


def framework_proofs(package: str) -> Callable[[ProofInputs], Iterator[Proof]]:
    """Return what proves the collectives that frameworks state for the runtime *package*.

    The framework's own launcher starts the ranks where its release has one and no scheduler does;
    the launcher of the MPI does if the recipe names the runtime.
    """

    def proofs(inputs: ProofInputs) -> Iterator[Proof]:
        for component in sorted(inputs.components.keys() & inputs.known.keys()):
            own = inputs.known[component].collectives
            if own is None or own.package != package:
                continue
            launcher = inputs.api_launcher(own.proof)
            fits = has_launcher(own, component, inputs.components)
            if not (fits if launcher else package != inputs.package):
                launcher = inputs.launcher
            for transport in inputs.transports if launcher else ():
                yield Proof(api=own.proof, transport=transport, launcher=launcher)

    return proofs


def has_launcher(own: Collectives, component: str, components: Mapping[str, str]) -> bool:
    """Whether a release of a framework has a launcher that works beside these components."""
    return any(
        matches(components[component], each.range)
        and all(
            name not in components or matches(components[name], versions)
            for name, versions in each.beside.items()
        )
        for each in own.launched
    )

"""What the stages know of a runtime: what an entry of ``runtimes/`` states and answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..knowledge.terms import Api, Transport
from .plan import Proof, SourceBuild
from .site import SiteLauncher

if TYPE_CHECKING:
    from ..knowledge.components import Component, HorovodPart

ApiLauncher = Callable[[Api], SiteLauncher | None]
"""Returns the launcher that the programs of an API bring along, where it can start the ranks: no
scheduler stands between."""


class RuntimeTraits(NamedTuple):
    """What is particular about a runtime.

    ``summary``: one line for users. ``bundled``: every environment has it; ``package`` is what
    Python then imports it as, ``needs`` the components that it needs to run, and ``build_needs``
    those that it is built with, each with a range. ``holder``: the component that it is a part of,
    which the stack must name; its programs are started in a way of their own. ``from_module``: the
    site's module can provide it. ``instrumented``: a profile can measure its build. ``aliases``:
    the runtimes whose programs find this one under their own names. ``launcher``: the launcher
    that it brings, the only one for a part of a holder. ``apis``: the APIs whose smoke tests that
    launcher starts where no scheduler does. ``gloo_with``: the component with which that launcher
    starts programs over Gloo. ``tf_config``: its programs read TF_CONFIG.
    """

    summary: str
    bundled: bool = False
    package: str = ""
    needs: Mapping[str, str] = MappingProxyType({})
    build_needs: Mapping[str, str] = MappingProxyType({})
    holder: str | None = None
    from_module: bool = False
    instrumented: bool = False
    aliases: tuple[str, ...] = ()
    launcher: str | None = None
    apis: tuple[Api, ...] = ()
    gloo_with: str | None = None
    tf_config: bool = False

    @property
    def is_component(self) -> bool:
        """Whether it is a component of its own, of the same name: one that is built or loaded."""
        return self.holder is None and not self.bundled


class FlagMeaning(NamedTuple):
    """What build variables mean to one release of a runtime.

    ``parts``: whether the build contains mpi, gloo, nccl and so on; the build itself decides about
    a part that is not named. ``stated``: the parts that the variables speak of. ``operations``: the
    library of each operation on GPUs that has one. ``left_out``: the frameworks that are left out,
    by their names in the variables. ``cpu_operations``: the default library of operations on CPUs;
    None: the release's own choice.
    """

    parts: Mapping[str, bool] = MappingProxyType({})
    stated: Set[str] = frozenset()
    operations: Mapping[str, str] = MappingProxyType({})
    left_out: Set[str] = frozenset()
    cpu_operations: str | None = None


class BuildTraces(NamedTuple):
    """What the native libraries of an installed runtime show of its build.

    ``flags``: the variables that ask for what is compiled in. ``unset``: what is shown of other
    variables. ``unknown``: what no library shows.
    """

    flags: Mapping[str, str]
    unset: Mapping[str, str]
    unknown: tuple[str, ...]


class ProofInputs(NamedTuple):
    """What the proofs of an environment depend on.

    ``components``: those of the environment, each with its version; ``known``: all that are known.
    ``builds``: the runtimes that are components of their own. ``package`` and ``aliases``: the
    runtime that the recipe names, and the names that the bundled one gets. ``launcher``: that of
    the MPI; None: none is known. ``transports``: what carries the collectives of frameworks.
    """

    components: Mapping[str, str]
    known: Mapping[str, Component]
    builds: Sequence[SourceBuild]
    launcher: SiteLauncher | None
    api_launcher: ApiLauncher
    package: str = ""
    aliases: tuple[str, ...] = ()
    transports: tuple[Transport, ...] = ("gloo",)


class CollectiveRuntime(Protocol):
    """One runtime: a module of ``runtimes/`` with these names."""

    TRAITS: RuntimeTraits

    def meaning(self, flags: Mapping[str, str], release: str | None) -> FlagMeaning:
        """Return what build variables mean to a release; None: one that reads all of them."""

    def bindings(self, known: Mapping[str, Component]) -> Mapping[str, HorovodPart]:
        """Return the parts that can be built for frameworks, by component, sorted by their names.

        *known*: all components.
        """

    def proofs(self, inputs: ProofInputs) -> Iterator[Proof]:
        """Yield the smoke tests that prove it in an environment, in their order."""

    def traces(
        self, start: str, libraries: Sequence[str], holds: Callable[[str, bytes], bool]
    ) -> BuildTraces | None:
        """Return what native libraries show of a build; None: there is no library of it.

        *start*: the folder of packages. *holds*: whether a file contains some bytes.
        """


Runtimes = Mapping[str, CollectiveRuntime]
"""Runtimes by the names that recipes use; a component of its own has the same name."""


def frameworks(
    runtimes: Runtimes,
    build: SourceBuild,
    components: Collection[str],
    known: Mapping[str, Component],
) -> tuple[str, ...]:
    """Return the frameworks of a stack that a runtime is built for.

    If a flag asks for another one, the resolver has refused it.
    """
    runtime = runtimes[build.component]
    left_out = runtime.meaning(build.flags, build.version).left_out
    parts = runtime.bindings(known).items()
    return tuple(
        part.name for name, part in parts if name in components and part.flag not in left_out
    )


def own_component(runtimes: Runtimes, components: Collection[str]) -> str | None:
    """Return the runtime that is among some components as one of its own; None: there is none."""
    names = (name for name, each in runtimes.items() if each.TRAITS.is_component)
    return next((name for name in names if name in components), None)


def all_proofs(runtimes: Runtimes, inputs: ProofInputs) -> Iterator[Proof]:
    """Yield the proofs of an environment, those of the bundled runtime first.

    A runtime that is a component of its own is proved instead of the parts of frameworks.
    """
    for each in runtimes.values():
        if each.TRAITS.holder is None or not inputs.builds:
            yield from each.proofs(inputs)

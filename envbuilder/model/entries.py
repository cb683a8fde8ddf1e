"""Which entries the variation points have: what documents may name.

Models do not know them. Who reads a document hands an ``Entries`` to pydantic as the context; then
names, and what depends on them, are checked like any other value. Without it they are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticKnownError

if TYPE_CHECKING:
    from .backend import BackendTraits

# In a JSON schema, in place of the names, until who writes the schema knows them.
ENTRIES_OF = "x-entries-of"


@dataclass(frozen=True)
class Entries:
    """The names of all entries, with what a document must agree with.

    ``launch_programs``: what the launchers' programs are called.
    """

    backends: Mapping[str, BackendTraits] = field(default_factory=dict)
    launchers: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    launch_programs: tuple[str, ...] = ()

    def with_channels(self) -> tuple[str, ...]:
        """Return the backends whose packages come from conda channels."""
        return tuple(name for name, each in self.backends.items() if each.channels)

    def names(self, point: str) -> Collection[str]:
        """Return the names of one variation point: ``backends``."""
        names: Collection[str] = getattr(self, point)
        return names


def entries_of(info: ValidationInfo) -> Entries | None:
    """Return the entries that the reader of a document handed over, or None."""
    return info.context if isinstance(info.context, Entries) else None


def _check(point: str) -> Callable[[Any, ValidationInfo], Any]:
    def check(name: Any, info: ValidationInfo) -> Any:
        entries = entries_of(info)
        if entries is not None and name not in [*entries.names(point)]:
            listing = " or ".join(f"'{each}'" for each in entries.names(point))
            raise PydanticKnownError("literal_error", {"expected": listing})
        return name

    return check


BackendName = Annotated[
    str,
    BeforeValidator(_check("backends")),
    WithJsonSchema({"type": "string", ENTRIES_OF: "backends"}),
]
"""The name of an entry of ``backends/``."""

LauncherName = Annotated[
    str,
    BeforeValidator(_check("launchers")),
    WithJsonSchema({"type": "string", ENTRIES_OF: "launchers"}),
]
"""The name of an entry of ``launchers/``."""

SchedulerName = Annotated[
    str,
    BeforeValidator(_check("schedulers")),
    WithJsonSchema({"type": "string", ENTRIES_OF: "schedulers"}),
]
"""The name of an entry of ``schedulers/``, or NO_SCHEDULER."""

NO_SCHEDULER = "none"
"""What a site says that has none."""

"""Which entries the variation points have: what documents may name.

Models do not know them. Who reads a document hands an ``Entries`` to pydantic as the context; then
names, and what depends on them, are checked like any other value. Without it they are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import AfterValidator, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import with_info_before_validator_function

from ..base import Line
from ..errors import UsageError
from ..text import shown, unknown

if TYPE_CHECKING:
    from ..model.backend import BackendTraits
    from ..model.runtime import RuntimeTraits

# In a JSON schema, in place of the names, until who writes the schema knows them.
ENTRIES_OF = "x-entries-of"


class Entries(NamedTuple):
    """The names of all entries, with what a document must agree with.

    ``launch_programs``: what the launchers' programs are called. ``launch_options``: the options
    of each launcher that a document may state, see ``LineTraits``.
    """

    backends: Mapping[str, BackendTraits] = MappingProxyType({})
    launchers: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    launch_programs: tuple[str, ...] = ()
    launch_options: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    runtimes: Mapping[str, RuntimeTraits] = MappingProxyType({})

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names that programs may find the bundled runtime under."""
        return tuple(alias for each in self.runtimes.values() for alias in each.aliases)

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


def check_choice(what: str, word: str | None, choices: Collection[str]) -> None:
    """Raise UsageError for a word that is none of the *choices*; None is no word."""
    if word is not None and word not in choices:
        raise UsageError(
            "option.unknown-value", unknown(what, word, choices), f"valid: {', '.join(choices)}"
        )


_OPTION = re.compile(r"(--?[A-Za-z][A-Za-z0-9_-]*)(.*)")


def option_name(option: str) -> str:
    """Return the name of a launch option: --mca of ``--mca btl_tcp_if_include ib0``."""
    match = _OPTION.fullmatch(option)
    return match[1] if match else option


def option_fault(option: str, forms: Mapping[str, str]) -> str | None:
    """Return what is wrong with a launch option; *forms*: see ``LineTraits.options``."""
    name = option_name(option)
    if name not in forms:
        listing = ", ".join(sorted(forms)) or "none"
        return f"{unknown('option', name, forms)}; valid: {listing}"
    if not re.fullmatch(forms[name], option.removeprefix(name)):
        return f"'{shown(option)}' does not have the form {name}{forms[name]}"
    return None


def _known_options(
    stated: dict[str, tuple[str, ...]], info: ValidationInfo
) -> dict[str, tuple[str, ...]]:
    entries = entries_of(info)
    for launcher, options in stated.items() if entries else ():
        forms = entries.launch_options.get(launcher, {}) if entries else {}
        for option in options:
            fault = option_fault(option, forms)
            if fault:
                raise ValueError(f"{launcher}: {fault}")
    return stated


@dataclass(frozen=True)
class _EntryOf:
    """Marks text that must be the name of an entry of a variation point."""

    point: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return with_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", ENTRIES_OF: self.point}

    def _check(self, name: Any, info: ValidationInfo) -> Any:
        entries = entries_of(info)
        if entries is not None and name not in [*entries.names(self.point)]:
            listing = " or ".join(f"'{each}'" for each in entries.names(self.point))
            raise PydanticKnownError("literal_error", {"expected": listing})
        return name


BackendName = Annotated[str, _EntryOf("backends")]
LauncherName = Annotated[str, _EntryOf("launchers")]
LaunchOptions = Annotated[dict[LauncherName, tuple[Line, ...]], AfterValidator(_known_options)]
"""Options of launch lines by launcher, each as one text: ``--mca btl_tcp_if_include ib0``."""

SchedulerName = Annotated[str, _EntryOf("schedulers")]
"""The name of an entry of ``schedulers/``, or NO_SCHEDULER."""

RuntimeName = Annotated[str, _EntryOf("runtimes")]
AliasName = Annotated[str, _EntryOf("aliases")]
"""The name of a runtime whose programs find the bundled one under it."""

NO_SCHEDULER = "none"
"""What a site says that has none."""

"""Whether a fact that somebody states is one that conditions ask for, and its value one they read.

A condition takes any text that is not empty for true. So a value that was misspelt would lift an
error without a word; a fact that was misspelt is asked for by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from ..base import fits
from ..text import shown, unknown
from .conditions import FACTS
from .rows import Knowledge
from .terms import Arch, PeerMemory, PlainVersion, Use

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "arch": get_args(Arch),
    "peer_memory": get_args(PeerMemory),
    "uses": get_args(Use),
}


def provider_fact_fault(name: str, value: str | bool, knowledge: Knowledge) -> str | None:
    """Return what is wrong with a fact of a provider; None: nothing. *name*: ``cuda_aware``."""
    known = knowledge.provider_facts
    if name not in known:
        return unknown("fact", name, known)
    if known[name] == "bool" and value in ("true", "false"):
        return f"'{name}' must be {value} without quotes"
    if known[name] == "bool" and not isinstance(value, bool):
        return f"'{name}' must be true or false, not '{shown(value)}'"
    if known[name] == "text" and isinstance(value, bool):
        return f"'{name}' must be text, not {str(value).lower()}"
    return None


def fact_fault(name: str, word: str, knowledge: Knowledge) -> tuple[str, ...] | None:
    """Return what is wrong with the value of a fact of recipe or site, and hints; None: nothing.

    *word*: its text; of a set, such as network, one of its members.
    """
    if FACTS[name].type == "version" and not fits(PlainVersion, word):
        return (f"'{name}' must be a version, not '{shown(word)}'", f"write {name}=2.28")
    choices = knowledge.networks if name == "network" else _CHOICES.get(name, (word,))
    if word in choices:
        return None
    more = f"; {_NO_NETWORK}" if name == "network" else ""
    return unknown(name, word, choices), f"valid: {', '.join(choices)}{more}"


def unread_gpus(gpus: Iterable[str], knowledge: Knowledge) -> list[str]:
    """Return the GPUs that no row asks for and no wheel is recorded to have code for, sorted.

    Looks for their names in the texts of conditions: to parse all of them takes 30 ms.
    """
    recorded = {gpu for builds in knowledge.builds.values() for each in builds for gpu in each.gpus}
    rows = (*knowledge.advisories, *knowledge.couplings, *knowledge.flag_rules)
    return sorted(
        gpu for gpu in {*gpus} - recorded if not any(f"'{gpu}'" in row.when for row in rows)
    )


def nothing_known(gpu: str) -> str:
    """Return the message about a GPU that no row reads."""
    return f"nothing is known about {gpu}: no advisory and no recorded wheel names this GPU"


_NO_NETWORK = "a site that has only another network has none of these"

"""Whether a fact that somebody states is one that conditions ask for, and its value one they read.

A condition takes any text that is not empty for true. So a value that was misspelt would lift an
error without a word; a fact that was misspelt is asked for by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from ..base import fits
from ..text import shown, unknown
from .conditions import FACTS, Condition
from .matching import rows
from .rows import Knowledge
from .terms import Arch, PeerMemory, PlainVersion, Use

ProviderFactType = Literal["bool", "text"]

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "arch": get_args(Arch),
    "peer_memory": get_args(PeerMemory),
    "uses": get_args(Use),
}


def provider_facts(knowledge: Knowledge) -> Mapping[str, ProviderFactType]:
    """Return what conditions ask of providers, by name: ``cuda_aware``; text: what they compare."""
    found: dict[str, ProviderFactType] = {}
    for each in _conditions(knowledge):
        for full in each.names():
            owner, dot, name = full.partition(".")
            if dot and owner not in ("flags", "ops"):
                text = bool(each.compared_with(full)) or found.get(name) == "text"
                found[name] = "text" if text else "bool"
    return found


def provider_fact_fault(name: str, value: str | bool, knowledge: Knowledge) -> str | None:
    """Return what is wrong with a fact of a provider; None: nothing. *name*: ``cuda_aware``."""
    known = provider_facts(knowledge)
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
    choices = networks(knowledge) if name == "network" else _CHOICES.get(name, (word,))
    if word in choices:
        return None
    more = f"; {_NO_NETWORK}" if name == "network" else ""
    return unknown(name, word, choices), f"valid: {', '.join(choices)}{more}"


_NO_NETWORK = "a site that has only another network has none of these"
# Sites have these, and no condition asks for them.
_OTHER_NETWORKS = frozenset({"ethernet", "slingshot"})


def networks(knowledge: Knowledge) -> tuple[str, ...]:
    """Return the networks that conditions ask for, and others that sites have; sorted."""
    those = (each.compared_with("network") for each in _conditions(knowledge))
    return tuple(sorted(_OTHER_NETWORKS.union(*those)))


def _conditions(knowledge: Knowledge) -> Iterator[Condition]:
    for row in rows(knowledge):
        yield Condition(row.when)
        yield from (Condition(each.when) for each in row.remedies if each.when)
    yield from (Condition(flag.derived) for flag in knowledge.flags.values() if flag.derived)

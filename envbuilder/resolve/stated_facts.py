"""What a user states of a stack on the command line: versions, facts, flags, origins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast, get_args

from ..errors import UsageError
from ..knowledge.conditions import FACTS, OPERATION_LIBRARIES, OPERATIONS, Value
from ..knowledge.entries import check_choice
from ..knowledge.fact_values import fact_fault, provider_fact_fault
from ..knowledge.names import package_names
from ..knowledge.ranges import version
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Origin
from ..machine.modules.names import provided_by_name, stems
from ..model.runtime import Runtimes
from ..target_tools.names import normalize
from ..text import shown, unknown
from .facts import Facts

_VERSION = re.compile(r"[0-9][A-Za-z0-9.+_-]*")


def check_component(name: str, knowledge: Knowledge) -> None:
    """Raise UsageError, with the nearest name, for what is no component and no virtual."""
    virtuals = {each for known in knowledge.components.values() for each in known.fulfils}
    if name not in knowledge.components and name not in virtuals:
        raise UsageError(
            "component.unknown",
            unknown("component", name, {*knowledge.components, *virtuals}),
        )


def stated_versions(words: Sequence[str], knowledge: Knowledge) -> dict[str, str]:
    """Return the versions of ``COMPONENT==VERSION`` words and of names of modules.

    A component may be named as packages name it: ``torch==2.5.1``. Raises UsageError for anything
    else.
    """
    packages = package_names(knowledge.components)
    versions: dict[str, str] = {}
    for word in words:
        component, asked = _stated_version(word, packages, knowledge)
        if versions.setdefault(component, asked) != asked:
            raise UsageError(
                "component.two-versions",
                f"two versions of {component}: {versions[component]} and {asked}",
                "a stack has one version: check the other one in a separate call",
            )
    return versions


def _stated_version(
    word: str, packages: Mapping[str, str], knowledge: Knowledge
) -> tuple[str, str]:
    name, equals, asked = word.partition("==")
    if not equals and "/" in word:
        provided = provided_by_name(word, stems(knowledge.components))
        if not provided:
            raise UsageError(
                "component.invalid-version",
                f"the module name '{shown(word)}' does not state a release of a component",
                "write openmpi==3.1.3",
            )
        return next(iter(provided.items()))
    if not equals or not _VERSION.fullmatch(asked) or len(asked) > 64:
        raise UsageError(
            "component.invalid-version",
            f"'{shown(word)}' is not COMPONENT==VERSION",
            "write openmpi==3.1.3",
        )
    component = packages.get(name) or packages.get(normalize(name))
    if component is None:
        raise UsageError("component.unknown", unknown("component", name, packages))
    return component, asked


def stated_distributions(words: Sequence[str], knowledge: Knowledge) -> dict[str, str]:
    """Return the names of distributions among the words, by component: nvidia-nccl-cu13."""
    packages = package_names(knowledge.components)
    names = (normalize(word.partition("==")[0]) for word in words)
    return {packages[name]: name for name in names if packages.get(name, name) != name}


def unknown_release(component: str, asked: str, knowledge: Knowledge) -> str | None:
    """Say that a version is no release of a component; None: it is one, or not all are recorded."""
    existing = knowledge.existing.get(component)
    known = [
        *(existing.versions if existing else ()),
        *(each.version for each in knowledge.releases.get(component, ())),
    ]
    parsed = sorted(each for each in map(version, known) if each is not None)
    # 2.13.0+cpu is a build of release 2.13.0.
    if parsed and version(asked.partition("+")[0]) not in parsed:
        return f"{component} has no known release {asked}; the newest is {parsed[-1]}"
    return None


def stated_facts(
    arch: str | None,
    words: Sequence[str],
    knowledge: Knowledge,
    runtimes: Runtimes,
    versions: Mapping[str, str],
) -> tuple[Facts, dict[str, Origin]]:
    """Return what ``NAME=VALUE`` words state of a stack with these versions: facts and origins.

    Raises UsageError, with the nearest name, also for a value that no condition reads. A name is a
    fact (``network``), ``flags.FLAG``, ``ops.OPERATION``, ``COMPONENT.FACT`` or
    ``COMPONENT.origin``. Flags are unknown until one is stated; then the others are not set.
    """
    facts: dict[str, Value] = {} if arch is None else {"arch": arch}
    flags: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(
                "fact.invalid-syntax",
                f"'{shown(word)}' is not NAME=VALUE",
                "write network=infiniband",
            )
        owner, _, rest = name.partition(".")
        if owner == "flags":
            _check_flag(rest, knowledge)
            flags[rest] = text
        elif rest == "origin":
            check_component(owner, knowledge)
            check_choice("origin", text, get_args(Origin))
            origins[owner] = cast("Origin", text)
        elif text or name != "driver":  # driver= states that there is none
            facts[name] = _value(name, text, knowledge)
    owner = next((knowledge.flags[name].runtime for name in flags), "")
    return Facts(facts, flags or None, runtimes.get(owner), versions.get(owner)), origins


def _check_flag(name: str, knowledge: Knowledge) -> None:
    if name not in knowledge.flags:
        raise UsageError("flag.unknown", unknown("flag", name, knowledge.flags))


def _value(name: str, text: str, knowledge: Knowledge) -> Value:
    owner, dot, rest = name.partition(".")
    if dot and owner == "ops":
        check_choice("operation", rest, OPERATIONS)
        # The case does not matter on the command line, unlike in a flag's value.
        library = text.upper()
        check_choice(
            "library", library if library in OPERATION_LIBRARIES else text, OPERATION_LIBRARIES
        )
        return library
    if dot:
        check_component(owner, knowledge)
        value = _BOOLS.get(text, text)
        fault = provider_fact_fault(rest, value, knowledge)
        if fault:
            raise UsageError("fact.not-recognised", f"fact of {owner}: {fault}")
        return value
    if name not in FACTS:
        hint = "COMPONENT.FACT, such as mpi.cuda_aware, and flags.NAME are also valid"
        raise UsageError("fact.unknown", unknown("fact", name, FACTS), hint)
    return _fact(name, text, knowledge)


def _fact(name: str, text: str, knowledge: Knowledge) -> Value:
    if FACTS[name].type == "bool":
        if text not in _BOOLS:
            raise UsageError(
                "fact.not-recognised", f"'{name}' must be true or false, not '{shown(text)}'"
            )
        return _BOOLS[text]
    several = FACTS[name].type == "set"
    words = frozenset(filter(None, text.split(","))) if several else frozenset({text})
    for word in sorted(words):
        fault = fact_fault(name, word, knowledge)
        if fault:
            raise UsageError("fact.not-recognised", *fault)
    return words if several else text


_BOOLS = {"true": True, "false": False}

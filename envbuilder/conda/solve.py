"""Which packages of the channels make a plan's prefix: every one of them, each with its hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ..base import Name, fits
from ..errors import BuildError, NoSolutionError
from ..knowledge.artifacts import CondaArchive
from ..knowledge.channels import (
    CHANNEL_ORIGINS,
    NOARCH,
    SUBDIRS,
    VirtualPackage,
    package_name,
    spec_name,
)
from ..knowledge.components import Component
from ..model.plan import Pin, Plan
from ..target_tools.names import normalize
from .engine import Engine, EngineError

# What an environment needs beside the plan's own: pip installs the rest.
WITH_EVERY_PYTHON = ("pip",)


class ChannelRefusal(Exception):  # noqa: N818 - an answer that the resolver works with
    """The channels offer no set of packages with one of the pins, and would offer one without."""

    def __init__(self, pin: Pin, reason: str) -> None:
        super().__init__(reason)
        self.component = pin.component
        self.version = pin.version


def conda_pins(plan: Plan) -> tuple[Pin, ...]:
    """Return the pins whose packages come from the channels."""
    pins = (*plan.pins, *plan.build_pins)
    return tuple(pin for pin in pins if pin.origin in CHANNEL_ORIGINS)


def solve(
    plan: Plan,
    virtual: Sequence[VirtualPackage],
    components: Mapping[str, Component],
    engine: Engine,
) -> tuple[CondaArchive, ...]:
    """Return the packages of a plan's prefix, by name.

    Raises ChannelRefusal for a pin in whose place another version would do, NoSolutionError where
    no other version of one does, BuildError for a channel that cannot be read.
    """
    pins = conda_pins(plan)
    try:
        records = _records(plan, pins, virtual, engine)
    except EngineError as error:
        if error.kind != "unsolvable":
            raise BuildError(
                "channel.unreadable", f"cannot read the conda channels: {error}"
            ) from error
        raise _refusal(plan, pins, virtual, engine, str(error)) from error
    return archives(plan, records, components)


def archives(
    plan: Plan, records: Iterable[Mapping[str, Any]], components: Mapping[str, Component]
) -> tuple[CondaArchive, ...]:
    """Return records of channels as the files of a plan's lock, by name."""
    by_name = {package_name(pin.locator): components.get(pin.component) for pin in conda_pins(plan)}
    found = (_archive(each, by_name.get(each["name"])) for each in records)
    return tuple(sorted(found, key=lambda each: each.name))


def _records(
    plan: Plan,
    constrained: Sequence[Pin],
    virtual: Sequence[VirtualPackage],
    engine: Engine,
    without: Pin | None = None,
) -> list[dict[str, Any]]:
    pins = (pin for pin in conda_pins(plan) if pin is not without)
    specs = {spec_name(each) for each in plan.conda_specs}
    names = sorted({package_name(pin.locator) for pin in pins} | specs | {*WITH_EVERY_PYTHON})
    pinned = [f"{package_name(pin.locator)} =={pin.version}" for pin in constrained]
    return engine.records(
        {
            "do": "solve",
            "channels": [each.url for each in plan.channels],
            "platforms": [SUBDIRS[plan.arch], NOARCH],
            "names": names,
            "constraints": [*pinned, *plan.conda_specs],
            "virtual": [list(each) for each in virtual],
        }
    )


def _refusal(
    plan: Plan,
    pins: Sequence[Pin],
    virtual: Sequence[VirtualPackage],
    engine: Engine,
    reason: str,
) -> ChannelRefusal | NoSolutionError:
    """Return which pin is in the way: the last one, in the recipe's order, that alone is.

    Where no other version of anything helps, name the package without which there is an answer.
    """

    def solvable_without(pin: Pin, *, at_all: bool) -> bool:
        others = [each for each in pins if each is not pin]
        try:
            _records(plan, others, virtual, engine, pin if at_all else None)
        except EngineError:
            return False
        return True

    later_first = pins[::-1]
    for pin in later_first:
        if solvable_without(pin, at_all=False):
            return ChannelRefusal(pin, reason)
    culprit = next((each for each in later_first if solvable_without(each, at_all=True)), None)
    channels = ", ".join(each.name for each in plan.channels)
    lines = (line for line in reason.splitlines() if line.strip())
    rest = ", ".join(f"{pin.component} {pin.version}" for pin in pins if pin is not culprit)
    none = f"no {culprit.component} compatible with" if culprit else "no compatible packages:"
    return NoSolutionError(
        "channel.no-solution",
        f"the conda channels {channels} have {none} {rest} on {plan.arch}",
        *(f"py-rattler said: {line.rstrip()[:300]}" for line in lines),
        *_of_target(reason, virtual),
    )


# How a site states what a package asks of its machines.
_STATED = {
    "__cuda": "driver-cuda: '12.2', the newest CUDA that its driver runs, as nvidia-smi reports",
    "__glibc": "glibc: '2.28', as ldd --version reports on the target",
    "__linux": "kernel: '4.18', as uname -r reports on the target",
}


def _of_target(reason: str, virtual: Sequence[VirtualPackage]) -> Iterator[str]:
    """Yield what packages ask of the target, and what of that is known of it."""
    known = {name: version for name, version, _ in virtual}
    for name, how in _STATED.items():
        if name not in reason:
            continue
        if name in known:
            yield f"the target's {name} is {known[name]}; the site file can state facts: {how}"
        else:
            yield f"the target has no {name}: state it in the site file, facts: {how}"


def _archive(record: Mapping[str, Any], known: Component | None) -> CondaArchive:
    if "sha256" not in record:
        raise BuildError(
            "channel.no-sha256",
            f"the channel has no sha256 for {record['url']}",
            "index the channel with conda-index or rattler-index, which record it",
        )
    own = normalize(known.pip) if known and known.pip else None
    try:
        return _as_artifact(record, known, own)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
        )
        raise BuildError(
            "channel.not-lockable",
            f"cannot lock {record['url']}: its record in the channel is wrong: {faults}",
            "use another build or version: state a tighter version in the stack",
        ) from error


def _as_artifact(
    record: Mapping[str, Any], known: Component | None, own: str | None
) -> CondaArchive:
    return CondaArchive(
        name=record["name"],
        version=record["version"],
        build=record["build"],
        url=record["url"],
        sha256=record["sha256"],
        md5=record.get("md5"),
        size=record.get("size"),
        channel=record["channel"],
        subdir=record["subdir"],
        depends=tuple(record.get("depends", ())),
        constrains=tuple(record.get("constrains", ())),
        distribution=own or _distribution(record),
        imports=known.python_import if known and own else None,
    )


def _distribution(record: Mapping[str, Any]) -> str | None:
    """Return the name of a Python package; most are called as on the Python package index."""
    needs_python = any(each.split(" ")[0] == "python" for each in record.get("depends", ()))
    name = normalize(record["name"])
    # A name such as _license is none of Python's.
    return name if needs_python and fits(Name, name) else None

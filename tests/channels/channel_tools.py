"""Small channels of made-up packages, and what is asked of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from render_cases import make_plan

from envbuilder.channels.engine import Engine
from envbuilder.model.plan import Pin, Plan, PlanChannel
from tests.conda_channel import File, Package

GLIBC = (("__unix", "0", "0"), ("__glibc", "2.28", "0"))


def package(name: str, version: str, *depends: str, build: str = "0", **more: object) -> Package:
    """Return a package with one file that says which it is."""
    text = f"{name} {version} {build}\n".encode()
    return Package(
        name=name,
        version=version,
        build=build,
        depends=depends,
        files={f"share/{name}": File(text)},
        **more,  # type: ignore[arg-type]
    )


def python(version: str, build: str = "0_cpython") -> Package:
    return package("python", version, build=build)


def pip() -> Package:
    return package("pip", "24.0", "python >=3.8", build="pyh0", subdir="noarch", noarch="python")


def engine(folder: Path) -> Engine:
    return Engine(dict(os.environ), folder / "cache")


def plan(channels: Sequence[Path | str], **pins: str) -> Plan:
    """Return a plan for conda with these pins, in that order, and python."""
    named = tuple(
        PlanChannel(name=f"c{number}", url=each if isinstance(each, str) else each.as_uri())
        for number, each in enumerate(channels)
    )
    return make_plan(
        backend="conda",
        python=None,
        channels=named,
        pins=tuple(
            Pin(component=name, version=version, origin="conda", locator=f"c0/{name}", why="test")
            for name, version in pins.items()
        ),
    )

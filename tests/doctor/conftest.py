from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from envbuilder.machine.host import LocalMachine
from envbuilder.machine.item_values import Item, Section

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Machine:
    """A search path of scripts, a home, and a folder in the place of /etc, /proc and /sys."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.bin), "HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")}

    def tool(self, name: str, script: str, folder: str = "bin") -> Path:
        """Put a shell script on the search path."""
        path = self.folder / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def says(self, name: str, recorded: str, folder: str = "bin") -> Path:
        """Put a program on the search path that prints a recorded answer."""
        text = DATA / "versions" / f"{recorded}.txt"
        return self.tool(name, f"/bin/cat '{text}'", folder)

    def file(self, path: str, text: str) -> Path:
        """Write a file of the recorded machine."""
        place = self.files / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place


def host(machine: Machine, **environ: str) -> LocalMachine:
    """Look at *machine* with further variables set."""
    return LocalMachine({**machine.environ, **environ}, files=machine.files)


def item(section: Section, item_id: str) -> Item:
    """Return one item of a section."""
    return next(item for item in section.items if item.id == item_id)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in ("bin", "home", "files", "tmp"):
        (tmp_path / name).mkdir()
    return Machine(tmp_path)


@pytest.fixture
def recorded() -> Callable[[str], str]:
    def read(name: str) -> str:
        return (DATA / "versions" / f"{name}.txt").read_text()

    return read


@pytest.fixture(scope="session")
def base_python() -> str:
    """The interpreter behind the virtualenv that runs the tests."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))

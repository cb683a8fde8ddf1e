"""Channels are read: what they hold becomes the rows that are otherwise recorded."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from channel_tools import engine, package, pip, python

from envbuilder.channels.contents import read_channels
from envbuilder.errors import BuildError
from envbuilder.model.channels import Channel, CondaPackage
from envbuilder.model.knowledge import Component
from tests.conda_channel import write_channel
from tests.serving import serving_by

KNOWN = {
    "python": Component(summary="Python", conda="python"),
    "numpy": Component(summary="Arrays", conda="numpy", pip="numpy"),
    "six": Component(summary="Six", conda="six", pip="six"),
    "cuda": Component(summary="CUDA", conda="cuda-toolkit"),
    "cmake": Component(summary="CMake"),
}


def channel(url: str, **packages: tuple[CondaPackage, ...]) -> Channel:
    return Channel(url=url, recorded="2026-11-01", sources=("a test",), packages=packages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_channel(
        tmp_path_factory.mktemp("channel"),
        [
            python("3.6.9"),
            python("3.11.7"),
            package("numpy", "1.19", "python >=3.6,<3.7.0a0", build="py36_0"),
            package("numpy", "1.26", "python >=3.11,<3.12.0a0", build="py311_0"),
            package("numpy", "1.26", "python 3.6.*|3.7.*", build="py36_0"),
            package("numpy", "2.0", "python >=3.12", build="py312_0"),
            package("numpy", "9.9", subdir="linux-ppc64le"),
            package("six", "1.16", "python", subdir="noarch", noarch="python"),
            package("cudatoolkit-dev", "10.2.89"),
            package("cuda-toolkit", "1!12.4"),
            pip(),
        ],
    )


@pytest.fixture(params=["folder", "http"])
def url(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "folder":
        yield folder.as_uri()
        return
    handler = functools.partial(Quiet, directory=str(folder))
    with serving_by(handler) as address:  # type: ignore[arg-type]
        yield address


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def rows(read: Channel, component: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(each.version, each.arch, each.pythons) for each in read.packages.get(component, ())]


def test_versions_pythons_and_architectures_are_read(url: str, tmp_path: Path) -> None:
    # A slash at its end makes no other channel of it.
    asked = {"mine": channel(f"{url}/")}
    read = read_channels(asked, "x86_64", KNOWN, engine(tmp_path))["mine"]
    assert rows(read, "python") == [("3.11.7", ("x86_64",), ()), ("3.6.9", ("x86_64",), ())]
    assert rows(read, "numpy") == [
        ("1.19", ("x86_64",), ("3.6",)),
        ("1.26", ("x86_64",), ("3.11", "3.6")),
        ("2.0", ("x86_64",), ()),
    ]
    assert rows(read, "six") == [("1.16", (), ("3.11", "3.6"))]
    # Nothing of ours can ask for a version with an epoch.
    assert rows(read, "cuda") == []
    assert read.url == f"{url}/"


def test_another_architecture_has_packages_of_its_own(folder: Path, tmp_path: Path) -> None:
    asked = {"mine": channel(folder.as_uri())}
    read = read_channels(asked, "ppc64le", KNOWN, engine(tmp_path))["mine"]
    assert rows(read, "numpy") == [("9.9", ("ppc64le",), ())]
    assert rows(read, "python") == []


def test_a_name_that_only_this_channel_uses_is_taken_from_what_is_recorded(
    folder: Path, tmp_path: Path
) -> None:
    own = (CondaPackage(version="10.1", name="cudatoolkit-dev"),)
    asked = {"mine": channel(folder.as_uri(), cuda=own), "other": channel(folder.as_uri())}
    read = read_channels(asked, "x86_64", KNOWN, engine(tmp_path))
    assert rows(read["mine"], "cuda") == [("10.2.89", ("x86_64",), ())]
    assert rows(read["other"], "cuda") == []


@pytest.mark.parametrize("what", ["folder", "server"])
def test_a_channel_that_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    url = (tmp_path / "gone").as_uri() if what == "folder" else "http://user:secret@127.0.0.1:9/c"
    with pytest.raises(BuildError) as caught:
        read_channels({"mine": channel_of(url)}, "x86_64", KNOWN, engine(tmp_path))
    text = str(caught.value)
    assert "the conda channel mine cannot be read" in text
    assert "secret" not in text


def channel_of(url: str) -> Channel:
    """Return a channel whatever its URL, as a site may have brought one with a password."""
    return channel("file:///x").model_copy(update={"url": url})

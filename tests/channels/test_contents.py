"""Channels are read: what they hold becomes the rows that are otherwise recorded."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from channel_tools import engine, package, pip, python

from envbuilder.conda.cache import ChannelCache
from envbuilder.conda.contents import Cached, read_channels
from envbuilder.errors import BuildError
from envbuilder.knowledge.channels import Channel, CondaPackage, VirtualPackage, Withdrawal
from envbuilder.knowledge.components import Component
from tests.conda_channel import change_record, write_channel
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


class Answer(BaseHTTPRequestHandler):
    """Answers everything with one status, and with half a file where that is 200."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "14")
        self.end_headers()
        self.wfile.write(b'{"packages": {')

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


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
    assert read.url == url


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


def test_builds_that_need_what_the_target_lacks_are_no_candidates(tmp_path: Path) -> None:
    cuda12, cuda11 = (f"__cuda >={each}" for each in (12, 11))
    folder = write_channel(
        tmp_path / "channel",
        [
            package("numpy", "1.0"),
            package("numpy", "2.0", cuda12),
            package("numpy", "3.0", cuda12, build="gpu"),
            package("numpy", "3.0", "__glibc >=2.17", build="cpu"),
            package("numpy", "4.0", "__glibc >=2.28,<3"),
            # Of this one there is no other: it is the solver that says what is missing.
            package("six", "1.0", cuda11),
        ],
    )

    def versions(*virtual: VirtualPackage) -> tuple[list[str], list[str]]:
        asked = {"mine": channel(folder.as_uri())}
        read = read_channels(asked, "x86_64", KNOWN, engine(tmp_path), None, virtual)["mine"]
        numpy, six = (rows(read, each) for each in ("numpy", "six"))
        return [each[0] for each in numpy], [each[0] for each in six]

    old, new = ("__glibc", "2.17", "0"), ("__glibc", "2.36", "0")
    assert versions(old) == (["1.0", "3.0"], ["1.0"])
    assert versions(new, ("__cuda", "11.8", "0")) == (["1.0", "3.0", "4.0"], ["1.0"])
    assert versions(old, ("__cuda", "12.2", "0")) == (["1.0", "2.0", "3.0"], ["1.0"])


@pytest.mark.parametrize("need", ["__glibc >=>=2.17", "python [bad", "python >=3.9,,"])
def test_a_build_with_needs_that_nobody_can_read_is_no_candidate(tmp_path: Path, need: str) -> None:
    """One old build with a slip does not close the channel: the solver leaves it out as well."""
    packages = [package("numpy", "1.26"), package("numpy", "1.25")]
    folder = write_channel(tmp_path / "channel", packages)
    change_record(folder, "numpy-1.25-0.conda", depends=[need])
    asked = {"mine": channel(folder.as_uri())}
    virtual = [("__glibc", "2.36", "0")]
    read = read_channels(asked, "x86_64", KNOWN, engine(tmp_path), None, virtual)["mine"]
    assert "1.26" in [each[0] for each in rows(read, "numpy")]


@pytest.mark.parametrize("what", ["folder", "server"])
def test_a_channel_that_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    url = (tmp_path / "gone").as_uri() if what == "folder" else "http://user:secret@127.0.0.1:9/c"
    with pytest.raises(BuildError) as caught:
        read_channels({"mine": channel_of(url)}, "x86_64", KNOWN, engine(tmp_path))
    text = str(caught.value)
    assert caught.value.id == "channel.unreadable"
    assert "channel mine" in text
    assert "secret" not in text


def channel_of(url: str) -> Channel:
    """Return a channel whatever its URL, as a site may have brought one with a password."""
    return channel("file:///x").model_copy(update={"url": url})


@pytest.mark.parametrize("status", [200, 401, 403, 404, 500])
def test_a_server_that_answers_otherwise_is_no_empty_channel(tmp_path: Path, status: int) -> None:
    handler = type("Handler", (Answer,), {"status": status})
    with serving_by(handler) as url, pytest.raises(BuildError) as caught:
        read_channels({"mine": channel(url)}, "x86_64", KNOWN, engine(tmp_path))
    text = str(caught.value)
    assert caught.value.id == "channel.unreadable"
    assert "channel mine" in text
    assert status == 200 or str(status) in text


GONE = Withdrawal(since="2023-11-18", sources=("a test",))


def test_a_channel_that_is_reported_gone_is_so_until_it_is_read(tmp_path: Path) -> None:
    lost = channel("http://127.0.0.1:9/c").model_copy(update={"withdrawal": GONE})
    with pytest.raises(BuildError) as caught:
        read_channels({"mine": lost}, "x86_64", KNOWN, engine(tmp_path))
    assert caught.value.id == "channel.unreadable"
    assert "mine, gone since 2023-11-18: " in str(caught.value)
    copy = write_channel(tmp_path / "copy", [package("six", "1.0")])
    copies = {"mine": [copy.as_uri()]}
    read = read_channels({"mine": lost}, "x86_64", KNOWN, engine(tmp_path), copies=copies)["mine"]
    assert (read.withdrawal, read.url) == (None, copy.as_uri())
    empty = {"mine": [write_channel(tmp_path / "empty", []).as_uri()]}
    read = read_channels({"mine": lost}, "x86_64", KNOWN, engine(tmp_path), copies=empty)["mine"]
    assert read.withdrawal == GONE


def test_build_strings_and_pins_say_what_a_package_is_for(tmp_path: Path) -> None:
    pinned = "cudatoolkit 10.2.89.*"
    folder = write_channel(
        tmp_path / "channel",
        [
            package("numpy", "1.0", build="cuda10.1_514.g36d39b0"),
            package("numpy", "2.0", pinned, "nccl =2.5", build="py36_1364.ged89432"),
            # Of two builds for different releases neither is what the package is for.
            package("numpy", "3.0", build="cuda112py36_0"),
            package("numpy", "3.0", build="cuda120py36_0"),
            package("numpy", "4.0", "cudatoolkit >=10.1", build="py3.8_cuda11.6_cudnn8.3.2_0"),
            # Its builds do not say it: it is recorded.
            package("six", "1.0"),
            package("six", "2.0"),
        ],
    )
    recorded = CondaPackage(version="1.0", facts={"cuda": "10.1"})
    asked = {"mine": channel(folder.as_uri(), six=(recorded,))}
    read = read_channels(asked, "x86_64", KNOWN, engine(tmp_path))["mine"]
    facts = {
        f"{name} {each.version}": each.facts
        for name in ("numpy", "six")
        for each in read.packages[name]
    }
    assert facts == {
        "numpy 1.0": {"cuda": "10.1"},
        "numpy 2.0": {"cuda": "10.2", "nccl": "2.5"},
        "numpy 3.0": {},
        "numpy 4.0": {"cuda": "11.6", "cudnn": "8.3"},
        "six 1.0": {"cuda": "10.1"},
        "six 2.0": {},
    }


HOUR = timedelta(hours=1)


class Told:
    """Reads one channel with a cache, at some time; keeps what was said."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.lines = folder, url, list[str]()

    def read(self, hours: float = 0, *, anew: bool = False) -> Channel:
        cache = ChannelCache(self.folder / "kept", datetime.now(timezone.utc) + hours * HOUR)
        cached = Cached(cache, self.lines.append, self.lines.append, anew)
        asked = {"mine": channel(self.url)}
        return read_channels(asked, "x86_64", KNOWN, engine(self.folder), cached)["mine"]


def test_what_was_read_is_taken_for_an_hour_and_while_the_channel_is_gone(tmp_path: Path) -> None:
    folder = write_channel(tmp_path / "channel", [python("3.11.7"), pip()])
    with serving_by(functools.partial(Quiet, directory=str(folder))) as url:  # type: ignore[arg-type]
        told = Told(tmp_path, url)
        first = told.read()
        assert told.lines == []
        write_channel(folder, [python("3.12.1")])
        # A server tells times in seconds: what is written within one would be "not modified".
        for file in folder.rglob("repodata*"):
            os.utime(file, (time.time() + 2,) * 2)
        assert told.read(0.5) == first
        (line,) = told.lines
        assert "channels mine" in line
        assert line.endswith(" read 30 min ago")
        assert [each[0] for each in rows(told.read(anew=True), "python")] == ["3.11.7", "3.12.1"]
        assert told.read(2) != first
    told.lines.clear()
    later = told.read(5)
    assert [each[0] for each in rows(later, "python")] == ["3.11.7", "3.12.1"]
    (line,) = told.lines
    assert "channel mine" in line
    assert line.endswith(" read 5 h ago")


def test_a_kept_answer_that_is_damaged_or_others_may_write_is_read_anew(tmp_path: Path) -> None:
    folder = write_channel(tmp_path / "channel", [python("3.11.7"), pip()])
    with serving_by(functools.partial(Quiet, directory=str(folder))) as url:  # type: ignore[arg-type]
        told = Told(tmp_path, url)
        first = told.read()
        (kept,) = (tmp_path / "kept").iterdir()
        whole = kept.read_text()
        kept.write_text(whole[:-9])
        assert told.read() == first
        assert kept.read_text() == whole
        kept.write_text(whole.replace("3.11.7", "3.11.8"))
        kept.chmod(0o666)
        assert told.read() == first
    assert told.lines == []


def test_a_folder_is_read_each_time(folder: Path, tmp_path: Path) -> None:
    told = Told(tmp_path, folder.as_uri())
    assert told.read() == told.read(0.1)
    assert told.lines == []

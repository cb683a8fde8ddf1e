"""Packages are solved for the target: pins hold, a channel hides those behind it, and refusals."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from channel_tools import GLIBC, engine, package, pip, plan, python

from envbuilder import data, process
from envbuilder.conda.engine import Engine
from envbuilder.conda.solve import ChannelRefusal, solve
from envbuilder.errors import BuildError, NoSolutionError
from envbuilder.files import write_atomically
from envbuilder.knowledge.components import Component
from tests.conda_channel import change_record, write_channel

KNOWN = {
    "python": Component(summary="Python", conda="python"),
    "numpy": Component(summary="Arrays", conda="numpy", pip="numpy", **{"import": "numpy"}),
    "pytorch": Component(summary="Torch", conda="pytorch", pip="torch", **{"import": "torch"}),
}


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two channels; the second has newer ones of what the first has, and more."""
    py = "python >=3.11,<3.12.0a0"
    return (
        write_channel(
            tmp_path_factory.mktemp("first"),
            [
                python("3.11.7"),
                python("3.12.1"),
                package("numpy", "1.26.4", py, "libblas", build="py311_0"),
                package("libblas", "3.9", "_libgcc_mutex"),
                package("_libgcc_mutex", "0.1"),
                pip(),
            ],
        ),
        write_channel(
            tmp_path_factory.mktemp("second"),
            [
                package("numpy", "2.1.0", py, build="py311_0"),
                package("pytorch", "2.4", py, "numpy >=2", build="py311_0"),
                package("pytorch", "2.3", py, "numpy", "__glibc >=2.28", build="py311_0"),
                package("pytorch", "2.2", py, "__cuda >=12", build="py311_0"),
            ],
        ),
    )


def test_every_package_is_known_by_channel_build_size_and_hashes(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = plan(channels, python="3.11.7", numpy="1.26.4")
    found = solve(asked, GLIBC, KNOWN, engine(tmp_path))
    names = [each.name for each in found]
    assert names == ["_libgcc_mutex", "libblas", "numpy", "pip", "python"]
    (numpy,) = (each for each in found if each.name == "numpy")
    file = channels[0] / "linux-64" / "numpy-1.26.4-py311_0.conda"
    assert numpy.url == file.as_uri()
    assert numpy.channel == channels[0].as_uri()
    assert (numpy.subdir, numpy.build, numpy.size) == ("linux-64", "py311_0", file.stat().st_size)
    assert numpy.depends == ("python >=3.11,<3.12.0a0", "libblas")
    assert (numpy.distribution, numpy.imports) == ("numpy", "numpy")
    assert len(numpy.md5 or "") == 32
    libblas = next(each for each in found if each.name == "libblas")
    assert libblas.distribution is None


def test_a_name_that_is_none_of_pythons_is_locked(tmp_path: Path) -> None:
    packages = [python("3.11.7"), package("_license", "1.1", "python"), pip()]
    channel = write_channel(tmp_path / "channel", [*packages, package("numpy", "1.0", "_license")])
    found = solve(plan([channel], python="3.11.7", numpy="1.0"), GLIBC, {}, engine(tmp_path))
    assert {each.name: each.distribution for each in found}["_license"] is None


@pytest.mark.parametrize(
    ("key", "value"), [("depends", ["python", "p" * 501]), ("depends", ["python\n"])]
)
def test_a_record_that_no_lock_can_hold_is_named(tmp_path: Path, key: str, value: object) -> None:
    channel = write_channel(tmp_path / "channel", [python("3.11.7"), package("odd", "1.0"), pip()])
    change_record(channel, "odd-1.0-0.conda", **{key: value})
    asked = plan([channel], python="3.11.7", odd="1.0")
    with pytest.raises((BuildError, NoSolutionError)) as raised:
        solve(asked, GLIBC, {}, engine(tmp_path))
    assert "odd" in str(raised.value)


def test_a_channel_hides_newer_packages_of_those_behind_it(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    # With a version in the request rattler takes numpy of the second channel: see conda_engine.
    asked = plan(channels, python="3.11.7", pytorch="2.3")
    found = {each.name: each for each in solve(asked, GLIBC, KNOWN, engine(tmp_path))}
    assert (found["numpy"].version, found["pytorch"].version) == ("1.26.4", "2.3")
    assert (found["pytorch"].distribution, found["pytorch"].imports) == ("torch", "torch")
    # And what is hidden is refused, though it is there.
    with pytest.raises(ChannelRefusal) as caught:
        solve(plan(channels, python="3.11.7", numpy="2.1.0"), GLIBC, KNOWN, engine(tmp_path))
    assert (caught.value.component, caught.value.version) == ("numpy", "2.1.0")


def test_the_virtual_packages_are_those_of_the_target_and_never_those_of_this_machine(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = plan(channels, python="3.11.7", pytorch="2.3")
    with pytest.raises(NoSolutionError) as caught:
        solve(asked, (("__glibc", "2.17", "0"),), KNOWN, engine(tmp_path))
    assert caught.value.id == "channel.no-solution"
    message = str(caught.value)
    assert all(each in message for each in ("c0, c1", "pytorch", "python 3.11.7", "x86_64"))
    with pytest.raises(ChannelRefusal) as refused:
        solve(plan(channels, python="3.11.7", pytorch="2.2"), GLIBC, KNOWN, engine(tmp_path))
    assert (refused.value.component, refused.value.version) == ("pytorch", "2.2")
    cuda = (*GLIBC, ("__cuda", "12.2", "0"))
    assert solve(plan(channels, python="3.11.7", pytorch="2.2"), cuda, KNOWN, engine(tmp_path))


def test_the_pin_that_is_in_the_way_is_refused_and_the_reason_kept(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(ChannelRefusal) as caught:
        solve(plan(channels, python="3.12.1", numpy="1.26.4"), GLIBC, KNOWN, engine(tmp_path))
    # With another Python there is an answer, and with another numpy there is none.
    assert (caught.value.component, caught.value.version) == ("python", "3.12.1")
    assert "numpy" in str(caught.value)


def test_what_no_pin_alone_is_to_blame_for_is_no_solution(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = plan(channels, python="3.12.1", numpy="7", pytorch="8")
    with pytest.raises(NoSolutionError) as caught:
        solve(asked, GLIBC, KNOWN, engine(tmp_path))
    (problem,) = caught.value.problems
    assert problem.id == "channel.no-solution"
    assert "c0, c1" in problem.message
    assert problem.message.endswith(": python 3.12.1, numpy 7, pytorch 8 on x86_64")
    assert any(hint.startswith("py-rattler said: ") for hint in problem.hints)


def test_a_channel_that_is_gone_is_an_error_and_no_refusal(tmp_path: Path) -> None:
    asked = plan([tmp_path / "gone"], python="3.11.7")
    with pytest.raises(BuildError) as raised:
        solve(asked, GLIBC, KNOWN, engine(tmp_path))
    assert raised.value.id == "channel.unreadable"


def test_the_engine_ends_well_each_time(channels: tuple[Path, Path], tmp_path: Path) -> None:
    # rattler's interpreter crashes at its end in up to half of all runs.
    url = channels[0].as_uri()
    request = (
        f'{{"do": "solve", "channels": ["{url}"], "platforms": ["linux-64", "noarch"],'
        f' "names": ["python"], "constraints": [], "virtual": [], "cache": "{tmp_path}/c"}}'
    )
    words = [sys.executable, "-I", str(data.TARGET_TOOLS), "conda-engine", "answer"]
    for _ in range(4):
        asked = process.Answering(words, os.environ)
        assert '"name": "python"' in asked.ask(request, 60.0).stdout
        assert asked.end() == 0


def test_what_was_read_of_a_channel_is_not_read_again_until_it_is_closed(
    channels: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(channels[0], tmp_path / "channel")
    live = Engine(os.environ, tmp_path / "cache")
    asked = plan([folder], python="3.11.7")
    first = solve(asked, GLIBC, KNOWN, live)
    (before,) = (each.sha256 for each in first if each.name == "python")
    index = folder / "linux-64" / "repodata.json"
    write_atomically(index, index.read_text().replace(str(before), "5" * 64))
    # A plan and its lock are of one moment, whatever its channel does meanwhile.
    assert solve(asked, GLIBC, KNOWN, live) == first
    live.close()
    assert "5" * 64 in [each.sha256 for each in solve(asked, GLIBC, KNOWN, live)]
    live.close()

"""What makes one question to pip another."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from locking_tools import plan

from envbuilder.knowledge.channels import VirtualPackage
from envbuilder.locking.fingerprint import request_fingerprint
from envbuilder.model.plan import Plan, PlanChannel
from envbuilder.process import Finished

# What every step's environment sets.
MARK = ":env:.user='0'\n"
INDEX = MARK + "global.index-url='https://mirror.example/simple'\n"


def ask(
    config: str,
    asked: Plan | None = None,
    glibc: str = "2.36",
    code: int = 0,
    virtual: Sequence[VirtualPackage] = (),
) -> str | None:
    """Return the question where ``pip config list`` prints this."""

    def inside(command: Sequence[str]) -> Finished:
        assert list(command) == [sys.executable, "-m", "pip", "config", "list"]
        return Finished(tuple(command), code, config, "")

    return request_fingerprint(asked or plan(), glibc, inside, virtual)


def test_it_is_a_hash_that_does_not_depend_on_the_order_of_lines() -> None:
    asked = ask(INDEX + ":env:.timeout='15'\n")
    assert asked == ask(":env:.timeout='15'\n" + INDEX)
    assert asked
    assert len(asked) == 64


@pytest.mark.parametrize(
    "other",
    [
        ask(INDEX, plan(packages=("pandas",))),
        ask(INDEX, plan(python="/usr/bin/python3.12")),
        ask(INDEX, plan(pip_indexes=("https://other.example/simple",))),
        ask(INDEX, glibc="2.28"),
        ask(INDEX.replace("mirror", "other")),
        ask(INDEX + ":env:.pre='1'\n"),
    ],
    ids=["packages", "python", "plan's index", "glibc", "index", "another option"],
)
def test_what_the_answer_depends_on_is_in_it(other: str | None) -> None:
    assert None not in (ask(INDEX), other)
    assert other != ask(INDEX)


@pytest.mark.parametrize(
    "config",
    [
        "",
        INDEX.replace(MARK, ""),
        INDEX + "install.constraint='/site/constraints.txt'\n",
        INDEX + "global.requirement='/site/requirements.txt'\n",
        INDEX + "global.find-links='file:///a%00b'\n",
        INDEX + "global.find-links='~nobody-of-that-name/wheels'\n",
        INDEX + "global.extra-index-url='https://[bad/'\n",
        INDEX + "global.timeout='soon'\n",
        INDEX + "global.find-links='/r\udce9sum\udce9'\n",
    ],
    ids=[
        *("quiet", "isolated", "constraints", "requirements", "NUL", "no such user", "bad address"),
        *("no number", "not UTF-8"),
    ],
)
def test_a_configuration_that_hides_or_names_more_than_it_says_is_none(config: str) -> None:
    assert ask(config) is None


@pytest.mark.parametrize("section", ["global", "install", ":env:"])
def test_a_site_s_constraints_are_part_of_the_request(tmp_path: Path, section: str) -> None:
    file, other = tmp_path / "constraints.txt", tmp_path / "more.txt"
    file.write_text("torch<=2.14.1\n# why\n")
    other.write_text("numpy<3\n")
    config = INDEX + f"{section}.constraint='{file} {other}'\n"
    first = _asked(config)
    assert first not in (_asked(INDEX), None)
    assert first == _asked(config)
    other.write_text("numpy<2.5\n")
    assert first != _asked(config)
    # They may name further files, whose contents are not known.
    for text in ("-c further.txt\n", "a\n  --constraint further.txt\n"):
        other.write_text(text)
        assert ask(config) is None
    other.unlink()
    assert ask(config) is None
    assert ask(INDEX + f"{section}.constraint='https://site.example/constraints.txt'\n") is None


def test_without_pip_there_is_none() -> None:
    assert ask(INDEX, code=1) is None


def test_a_configuration_of_envbuild_s_own_python_is_not_the_environment_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert ask(INDEX)
    (tmp_path / "pip.conf").touch()
    assert ask(INDEX) is None


def test_packages_of_the_site_cannot_be_known() -> None:
    assert ask(INDEX, plan(system_site_packages=True)) is None


def _link(folder: Path) -> str:
    return MARK + f"global.find-links='{folder.as_uri()}'\n"


def _asked(config: str) -> str:
    asked = ask(config)
    assert asked
    return asked


def test_a_folder_of_wheels_counts_with_what_lies_there(tmp_path: Path) -> None:
    absent = _asked(_link(tmp_path / "wheels"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    empty = _asked(_link(wheels))
    wheel = wheels / "a-1-py3-none-any.whl"
    wheel.write_text("one")
    one = _asked(_link(wheels))
    assert _asked(_link(wheels)) == one
    wheel.write_text("three")
    rewritten = _asked(_link(wheels))
    # As long as before, but later.
    os.utime(wheel, (1, 1))
    touched = _asked(_link(wheels))
    assert len({absent, empty, one, rewritten, touched}) == 5


def test_pages_of_a_local_index_count(tmp_path: Path) -> None:
    page = tmp_path / "numpy" / "index.html"
    page.parent.mkdir()
    page.write_text("<a href='numpy-1-py3-none-any.whl'>1</a>")
    config = MARK + f"global.index-url='{tmp_path.as_uri()}'\n"
    before = _asked(config)
    page.write_text("<a href='numpy-11-py3-none-any.whl'>1</a>")
    assert _asked(config) != before


def test_a_page_of_links_counts(tmp_path: Path) -> None:
    page = tmp_path / "links.html"
    page.write_text("one")
    before = _asked(_link(page))
    page.write_text("three")
    assert _asked(_link(page)) != before


def test_a_folder_that_cannot_be_read_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, who may read everything.
    monkeypatch.setattr(os, "scandir", refuse)
    assert ask(_link(tmp_path)) is None


def test_a_folder_too_large_to_be_looked_at_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (tmp_path / f"a-{number}-py3-none-any.whl").touch()
    monkeypatch.setattr("envbuilder.locking.fingerprint._MOST_FILES", 3)
    assert ask(_link(tmp_path))
    (tmp_path / "a-3-py3-none-any.whl").touch()
    assert ask(_link(tmp_path)) is None


def test_a_channel_of_conda_counts_as_it_is_and_as_the_target_is(tmp_path: Path) -> None:
    subdir = tmp_path / "linux-64"
    subdir.mkdir()
    channel = PlanChannel(name="own", url=tmp_path.as_uri())
    of_conda = plan(backend="conda", python=None, channels=(channel,))
    glibc = (("__glibc", "2.36", "0"),)
    asked = [
        ask(INDEX, of_conda),
        ask(INDEX, of_conda, virtual=glibc),
        ask(INDEX, of_conda, virtual=(*glibc, ("__cuda", "12.2", "0"))),
    ]
    (subdir / "repodata.json").write_text("{}")
    asked.append(ask(INDEX, of_conda))
    assert None not in asked
    assert len({*asked}) == 4
    assert ask(INDEX, of_conda) == asked[-1]

"""What makes one question to pip another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from locking_tools import plan

from envbuilder.locking import question

INDEX = "global.index-url='https://mirror.example/simple'\n"


def test_the_same_question_in_other_words_is_the_same() -> None:
    config = INDEX + ":env:.timeout='15'\n"
    other = ":env:.timeout='15'\n" + INDEX
    assert question(plan(), "2.36", config) == question(plan(), "2.36", other)


@pytest.mark.parametrize(
    "other",
    [
        (plan(packages=("pandas",)), "2.36", INDEX),
        (plan(python="/usr/bin/python3.12"), "2.36", INDEX),
        (plan(pip_indexes=("https://other.example/simple",)), "2.36", INDEX),
        (plan(), "2.28", INDEX),
        (plan(), "2.36", INDEX.replace("mirror", "other")),
        (plan(), "2.36", INDEX + ":env:.pre='1'\n"),
    ],
    ids=["packages", "python", "plan's index", "glibc", "index", "another option"],
)
def test_what_the_answer_depends_on_is_in_it(other: tuple[object, str, str]) -> None:
    asked = question(plan(), "2.36", INDEX)
    assert asked
    assert question(*other) != asked  # type: ignore[arg-type]


def test_packages_of_the_site_cannot_be_known() -> None:
    assert question(plan(system_site_packages=True), "2.36", INDEX) is None


def _link(folder: Path) -> str:
    return f"global.find-links='{folder.as_uri()}'\n"


def _asked(config: str) -> str:
    asked = question(plan(), "2.36", config)
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
    config = f"global.index-url='{tmp_path.as_uri()}'\n"
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
    assert question(plan(), "2.36", _link(tmp_path)) is None

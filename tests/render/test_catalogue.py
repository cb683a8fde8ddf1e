"""The catalogue of a root: what is on the page, that it is HTML, that nothing in it runs."""

from __future__ import annotations

import re
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from render_cases import CASES, make_evidence
from typer.testing import CliRunner

from envbuilder.catalogue.page import Catalogue, plot, render_catalogue, speeds
from envbuilder.cli import app
from envbuilder.model.evidence import Evidence, Timing
from envbuilder.model.outcome import Info
from tests.cli.published import planned, publish_plan

LOCK = CASES[0].lock
# Elements of HTML that have no end, and those of SVG that are ended at once.
_VOID = {"meta", "br", "link", "img"}
_SVG = {"line", "polyline", "circle", "rect"}


class Page(HTMLParser):
    """A page read: its text, its tags with their attributes; every element must be ended."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _SVG
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def proof(time: str, speed: float, **changes: object) -> Evidence:
    timing = Timing(bytes=2**26, latency_us=1.0, bus_bandwidth=speed, repetitions=3)
    made = make_evidence(LOCK)
    result = made.result.model_copy(update={"timings": (timing,), **changes})
    return made.model_copy(update={"time": time, "result": result})


def info(*evidence: Evidence, number: int = 1, default: bool = True, summary: str = "") -> Info:
    lock = LOCK
    if summary:
        lock = lock.model_copy(update={"plan": lock.plan.model_copy(update={"summary": summary})})
    return Info(
        environment="allreduce",
        number=number,
        default=default,
        id=lock.id(),
        prefix="/root/allreduce/x",
        modulefile="/root/modulefiles/allreduce/1.lua",
        lock=lock,
        evidence=evidence,
    )


def page(*infos: Info) -> str:
    stacks = {"allreduce": infos}
    return render_catalogue(Catalogue("/root", "here", "x86_64", "/root/modulefiles", stacks))


FIRST = proof("2026-01-02T03:04:05Z", 1.5)
LATER = proof("2026-03-04T05:06:07Z", 3.5)


def test_it_says_what_was_proved_and_how_to_load_it() -> None:
    text = page(info(FIRST, default=False), info(FIRST, LATER, number=2))
    said = " ".join(Page(text).text.split())
    for part in (
        "Environments at here, x86_64",
        "Newest smoke test: 2026-03-04 05:06 UTC",
        "module use /root/modulefiles",
        "module load allreduce",
        "proved: several ranks, 2026-03-04 05:06 UTC",
        "What was proved of allreduce/2",
        "allreduce/2 (default)",
        "allreduce/1",
        *(pin.version for pin in LOCK.plan.pins),
    ):
        assert part in said
    assert text == page(info(FIRST, default=False), info(FIRST, LATER, number=2))


def test_nothing_in_it_runs_or_is_fetched() -> None:
    tags = Page(page(info(FIRST))).tags
    assert {"script", "link", "img", "iframe", "object", "form"} & {tag for tag, _ in tags} == set()
    for _, attributes in tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        link = attributes.get("href") or "#"
        assert link.startswith(("#", "https://"))
    assert "url(" not in page(info(FIRST))


def test_what_a_recipe_says_is_text() -> None:
    hostile = "<script>alert('1')</script> & \"quoted\" {{ name }}"
    read = Page(page(info(FIRST, summary=hostile)))
    assert hostile in read.text
    assert "script" not in {tag for tag, _ in read.tags}


def test_a_test_that_failed_and_one_that_is_not_there() -> None:
    failed = proof("2026-04-01T00:00:00Z", 1.0, verdict="failed")
    said = Page(page(info(FIRST, failed))).text
    assert "2026-04-01 00:00 UTC" in said
    assert "failed" in said
    assert "no evidence" in Page(page(info())).text
    assert "<svg" not in page(info())


def test_speeds_are_those_that_can_be_compared() -> None:
    four = proof("2026-02-01T00:00:00Z", 9.0, ranks=4)
    failed = proof("2026-02-02T00:00:00Z", 7.0, verdict="failed")
    found = speeds([LATER, four, FIRST, failed])
    ranks = FIRST.result.ranks
    label = next(iter(found))
    assert f"{ranks} ranks, 64 MiB" in label
    assert found[label] == [
        (datetime(2026, 1, 2, 3, 4, 5), 1.5),
        (datetime(2026, 3, 4, 5, 6, 7), 3.5),
    ]
    assert [[speed for _, speed in points] for points in found.values()] == [[1.5, 3.5], [9.0]]


@pytest.mark.parametrize(
    ("speed", "ticks"),
    [(0.3, ["0", "0.25", "0.5"]), (1.0, ["0", "0.5", "1"]), (72.0, ["0", "50", "100"])],
)
def test_the_axis_is_of_round_numbers(speed: float, ticks: list[str]) -> None:
    drawn = plot({"a": [(datetime(2026, 1, 1), speed)]})
    assert [each["text"] for each in drawn["ticks"]] == ticks  # type: ignore[attr-defined]


def test_points_lie_in_the_plot_and_in_order() -> None:
    text = page(info(FIRST, LATER))
    line = re.search(r'points="([^"]+)"', text)
    assert line
    (x1, y1), (x2, y2) = (map(float, each.split(",")) for each in line[1].split())
    assert (x1, x2) == (76.0, 624.0)
    # 1.5 and 3.5 of 5, between the axis at 186 and the top at 14.
    assert (y1, y2) == (pytest.approx(134.4), pytest.approx(65.6))


def test_the_verb_reads_a_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    publish_plan(root, planned("allreduce", "--site", "local"))
    words = ["catalogue", "--root", str(root)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert "module load allreduce" in Page(done.stdout).text
    file = tmp_path / "index.html"
    assert CliRunner().invoke(app, [*words, "-o", str(file)]).exit_code == 0
    assert file.read_text(encoding="utf-8") == done.stdout

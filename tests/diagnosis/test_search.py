"""Logs of any size and with any bytes; what several ranks say, told apart."""

from __future__ import annotations

import io
import resource

import pytest
from corpus import LOGS, diagnosed, signs
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuilder.diagnosis import search as searching
from envbuilder.diagnosis.reading import LONGEST, LogLines
from envbuilder.diagnosis.search import COUNTED, search
from envbuilder.diagnosis.signs import Sign
from tests.golden_texts import Golden

MISSING = (
    b"python: error while loading shared libraries: libnccl.so.2: cannot open shared object file"
)
CLOSED = b"RuntimeError: Connection closed by peer [192.0.2.1]:1234"
FULL = b"OSError: [Errno 28] No space left on device"


class Endless(io.RawIOBase):
    """A log of so many lines that is nowhere kept."""

    def __init__(self, line: bytes, number: int, last: bytes) -> None:
        self.line, self.left, self.last = line, number, last

    def read(self, size: int = -1, /) -> bytes:
        number = min(self.left, size // len(self.line))
        self.left -= number
        return (
            self.line * number if self.left or not number else self.line * (number - 1) + self.last
        )


def test_memory_does_not_grow_with_the_log() -> None:
    line = b"epoch 1: loss=0.1, nothing of interest in this line at all\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = search(Endless(line, 120_000, MISSING), [Sign("lib", "cannot open shared object")])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert found.lines == 120_000
    assert [hit.line for hit in found.hits["lib"]] == [120_000]
    # kB: 7 MB went through.
    assert grown < 6_000


def test_a_message_over_the_border_of_two_batches_is_found_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100))
    text += b"begin of it\n  goes on\nend of it\n" + b"after\n" * 100
    whole = search(io.BytesIO(text), [Sign("it", "begin of it\n.*\nend of it")])
    for size in (1, 7, 50, 333, 811, 820, 830):
        monkeypatch.setattr(searching, "_BATCH", size)
        found = search(io.BytesIO(text), [Sign("it", "begin of it\n.*\nend of it")])
        assert found.counts == {"it": 1}
        assert found.hits["it"][0].line == whole.hits["it"][0].line == 101
        assert found.hits["it"][0].text == ("begin of it", "  goes on", "end of it")


def test_what_is_found_over_and_over_is_counted_to_a_limit() -> None:
    found = search(io.BytesIO((FULL + b"\n") * (COUNTED + 500)), signs())
    assert found.counts["file-system-full"] == COUNTED
    assert len(found.hits["file-system-full"]) == 3


def test_repeated_lines_hide_no_other_line() -> None:
    step = b"[1,3]<stdout>:step %d: loss 0.%d\n"
    text = b"".join(step % (number, number) for number in range(30_000))
    text += FULL + b"\n" + b"".join(step % (number, number) for number in range(20_000))
    log = LogLines(io.BytesIO(text))
    read = list(log.read())
    assert log.count == text.count(b"\n")
    assert [each.number for each in read if "Errno" in each.text] == [30_001]
    assert len(read) < 15_000
    assert read[-1].number == log.count
    assert {each.rank for each in read} == {3, None}
    assert all(
        each.text in (FULL.decode(), f"step {n}: loss 0.{n}")
        for each in read
        for n in [(each.number - 1) if each.number <= 30_000 else each.number - 30_002]
    )


def test_a_line_without_an_end_is_read_in_pieces_of_one_line() -> None:
    pieces = list(LogLines(io.BytesIO(b"x" * (3 * LONGEST) + b"\nnext\n")).read())
    assert [each.number for each in pieces if each.text] == [1, 1, 1, 2]
    assert max(len(each.text) for each in pieces) <= LONGEST


def test_terminal_codes_and_progress_bars_hide_nothing() -> None:
    text = (
        b"\x1b[01m\x1b[K 10%\r 20%\r\x1b[31mOSError: [Errno 28] No space\x1b[0m left on device\r\n"
    )
    (finding,) = diagnosed(text).findings
    assert finding.id == "file-system-full"
    assert finding.places[0].text == ("OSError: [Errno 28] No space left on device",)


def test_what_is_shown_is_printable_and_holds_no_password() -> None:
    url = b"https://me:s3cret@index.example/simple"
    text = b"\x00\xff\x1b]0;title\x07 \xe2\x80\xae " + url + b" NewConnectionError: no\n"
    (finding,) = diagnosed(text).findings
    shown = finding.places[0].text[0]
    assert shown.isprintable()
    assert "s3cret" not in shown
    assert "index.example" in shown


@given(st.binary(max_size=3000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_can_be_a_log(data: bytes) -> None:
    diagnosed(data, data[::-1])


@pytest.mark.parametrize(
    "begin",
    [b"[1,%d]<stderr>:", b"[1,%d]<stderr>: ", b"[%d]<stdout>:", b"[rank%d]: ", b"[%d] ", b"%d: "],
    ids=["ompi4", "ompi5", "horovodrun", "torchrun", "hydra", "srun"],
)
def test_the_rank_of_a_line_is_read_as_each_launcher_writes_it(begin: bytes) -> None:
    text = b"".join(begin % rank + b"starts\n" for rank in range(3))
    text += begin % 2 + MISSING + b"\n"
    found = diagnosed(text)
    assert [(each.rank, each.id) for each in found.ranks] == [
        ("rank 0", None),
        ("rank 1", None),
        ("rank 2", "library-not-found"),
    ]
    assert found.findings[0].places[0].rank == 2


def test_a_traceback_of_one_rank_between_the_lines_of_another() -> None:
    text = b"""[0] Traceback (most recent call last):
[1] all is well
[0]   File "train.py", line 1, in <module>
[1] still
[0] ValueError: a shape that does not fit
"""
    (finding,) = diagnosed(text).findings
    last = text.decode().splitlines()[-1].removeprefix("[0] ")
    assert (finding.id, finding.places[0].text[-1]) == ("unexplained", last)
    assert finding.cause.endswith(last)


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param([CLOSED, FULL, CLOSED], id="first"),
        pytest.param([b"fine", FULL], id="alone"),
        pytest.param([FULL, FULL], id="same"),
        pytest.param([FULL, FULL, MISSING, FULL], id="odd"),
        pytest.param([FULL, MISSING], id="different"),
        pytest.param([CLOSED, b"nothing", CLOSED], id="silent"),
        pytest.param([CLOSED, CLOSED], id="lost"),
        pytest.param(
            [b"2026-11-01 10:00:05 " + FULL, b"2026-11-01 10:00:02 " + FULL], id="earlier"
        ),
    ],
)
def test_ranks_that_differ_are_told_apart(logs: list[bytes], golden: Golden) -> None:
    golden(diagnosed(*logs).ranks_differ or "")


def test_logs_without_an_error_say_nothing_of_ranks() -> None:
    assert diagnosed(b"fine", b"too").ranks_differ is None


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["out/rank.0/stderr", "out/rank.10/stderr"], ["rank 0", "rank 10"]),
        (["slurm-77_0.out", "slurm-77_1.out"], ["rank 0", "rank 1"]),
        (["a.log", "b.log"], ["a.log", "b.log"]),
        (["n1-r0.log", "n2-r1.log"], ["n1-r0.log", "n2-r1.log"]),
    ],
)
def test_a_log_is_named_by_its_rank_where_the_names_tell_it(
    names: list[str], labels: list[str]
) -> None:
    assert [each.rank for each in diagnosed(FULL, b"", names=names).ranks] == labels


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("gloo-raise", "rank 1 "),
        ("gloo-size", "rank 0 "),
        ("gloo-die", "rank 1 "),
        ("gloo-hang", "rank 1 "),
    ],
)
def test_logs_of_real_ranks(name: str, first: str, golden: Golden) -> None:
    """PyTorch over Gloo: rank 1 raises, has another size, ends by os._exit, sleeps."""
    logs = [(LOGS / "ranks" / f"{name}.{rank}.log").read_bytes() for rank in (0, 1)]
    said = diagnosed(*logs).ranks_differ or ""
    assert said.startswith(first)
    golden(said)

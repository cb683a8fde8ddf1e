"""Trees that somebody made to harm: no crash, no wait, nothing of them on the terminal as it is."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import Made, Validate

from envbuilder.inspect.observation import seen
from envbuilder.inspect.reading import read_environment
from envbuilder.validate.checks import run

pytestmark = pytest.mark.thorough

ESCAPES = "\x1b[2J\x1b]0;title\x07\n\r\u202e"


def fifo(name: str) -> Callable[[Made], None]:
    def make(made: Made) -> None:
        path = made.prefix / name if "/" not in name else made.packages / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    return make


def metadata_fifo(made: Made) -> None:
    for name in ("METADATA", "RECORD", "WHEEL"):
        (made.metadata("idna") / name).unlink()
        os.mkfifo(made.metadata("idna") / name)


def loops(made: Made) -> None:
    (made.packages / "loop").symlink_to(".")
    (made.packages / "loop.so").symlink_to("loop.so")
    (made.packages / "loop-1.dist-info").symlink_to("loop-1.dist-info")
    shutil.rmtree(made.metadata("idna"))
    (made.packages / "idna-1.dist-info").symlink_to("..")


def python_loop(made: Made) -> None:
    for path in (made.prefix / "bin").glob("python*"):
        path.unlink()
    (made.prefix / "bin" / "python").symlink_to("python")


def sockets(made: Made) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        # Its address is short, a path need not be.
        os.chdir(made.packages)
        try:
            one.bind("socket.so")
        finally:
            os.chdir(here)


def deep(made: Made) -> None:
    """Make folders deeper than libraries are looked for."""
    folder = made.packages.joinpath(*["d"] * 100)
    folder.mkdir(parents=True)
    (folder / "end.so").write_bytes(b"\x7fELF")


def names(made: Made) -> None:
    made.write(made.packages / f"a{ESCAPES}.so", b"\x7fELF")
    made.write(made.packages / os.fsdecode(b"\xff\xfe.so"), b"\x7fELF")
    made.install("odd", "1", f"Requires-Dist: no\x1b[2Jwhere{ESCAPES[:4]}")
    folder = made.packages / f"b{ESCAPES}-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Name: b\x1b[2J\nVersion: 1\x07\nRequires-Dist: c{'c' * 3000}\n"
    )


RECORDS = [
    b"/dev/zero,sha256=AAAA,5",
    b"/proc/self/mem,sha256=AAAA,",
    b"../../../../etc/shadow,sha256=A,1",
    b"a\0b,sha256=AAAA,1",
    b"x" * 5000 + b",sha256=AAAA,1",
    b'"a\nb",sha256=AAAA,1',
    b"a,b,c,d,e",
    b"f,nohash=AAAA," + b"9" * 5000,
    b"\xff,sha256=AAAA,1",
]
REQUIREMENTS = [
    "(" * 5000,
    "a; " + "(" * 900 + "extra == 'x'" + ")" * 900,
    "a" * 100_000,
    ";" * 50_000,
    "a; extra == 'b' or python_version < 'x'",
    "a; nothing == 'x'",
    "a ===$HOME'x'`b`",
    "idna==" + "9" * 1900,
    "a; python_version > '" + "9" * 1500 + "'",
    "a[" + "b," * 500 + "b]",
]


def records(made: Made) -> None:
    made.install("records", "1")
    (made.packages / "records-1.dist-info" / "RECORD").write_bytes(b"\n".join(RECORDS))


def requirements(made: Made) -> None:
    made.install("requires", "1", *(f"Requires-Dist: {text}" for text in REQUIREMENTS))
    made.install("python", "1", f"Requires-Python: {'>=3,' * 5000}>=3")
    text = (made.metadata("idna") / "METADATA").read_text()
    made.say("idna", "METADATA", text.replace("Version: 3", f"Version: {'9' * 5000}"))


def configuration(made: Made) -> None:
    made.write(
        made.prefix / "pyvenv.cfg",
        "home = /a\0b\ninclude-system-site-packages = true\nversion = " + "9" * 9999 + "\n=\n===\n",
    )


HOSTILE: dict[str, Callable[[Made], object]] = {
    "a FIFO for an extension": fifo("yaml/one.so"),
    "a FIFO for pyvenv.cfg": fifo("pyvenv.cfg"),
    "FIFOs for metadata": metadata_fifo,
    "links in circles": loops,
    "Python in a circle": python_loop,
    "a socket": sockets,
    "folders without end": deep,
    "names": names,
    "RECORD": records,
    "requirements": requirements,
    "pyvenv.cfg": configuration,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_trees(name: str, made: Made, check: Validate) -> None:
    HOSTILE[name](made)
    value = check(made, hashes=True)
    assert value.plain()
    for each in value.findings:
        text = [each.summary, each.fix, *(f"{i.file}{i.field}{i.value}" for i in each.evidence)]
        assert "".join(text).isprintable()
        "".join(text).encode()
    # Nothing of them made it look at the rest otherwise.
    (made.packages / "yaml" / "loader.py").unlink()
    assert "package.gone" in {each.id for each in check(made).findings}


def test_a_line_to_copy_is_quoted(made: Made, check: Validate) -> None:
    requirements(made)
    fixes = {each.fix for each in check(made).findings}
    assert """pip install 'a===$HOME'"'"'x'"'"'`b`'""" in fixes


def test_what_goes_while_it_is_looked_at(
    made: Made, monkeypatch: pytest.MonkeyPatch, check: Validate
) -> None:
    """Every file that was listed is gone when it is opened."""
    listed = read_environment(made.prefix, {})
    shutil.rmtree(made.packages)
    assert {each.id for each in run(listed, hashes=True).findings} == {"package.gone"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return an environment with nothing but one distribution."""
    made = Made(tmp_path_factory.mktemp("bare"))
    (made.prefix / "bin").mkdir()
    (made.prefix / "bin" / "python").symlink_to("/usr/bin/env")
    made.install("one", "1")
    return made


PIECES = """Name: one
|Version: |1.0
|Requires-Dist: |a|[b]|; extra == 'b'|>=1|
|Requires-Python: |one/x,sha256=A,1
|"|,|{cr}|{nul}| or |python_version < '3'|(|)|Tag: cp-cp-
| @ file:///x""".format(cr="\r", nul="\0").split("|")
TEXT = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from(PIECES), max_size=20).map(lambda each: "".join(each).encode()),
)


@given(metadata=TEXT, record=TEXT, wheel=TEXT)
@settings(max_examples=60)
def test_whatever_metadata_says(bare: Made, metadata: bytes, record: bytes, wheel: bytes) -> None:
    folder = bare.metadata("one")
    for name, data in (("METADATA", metadata), ("RECORD", record), ("WHEEL", wheel)):
        (folder / name).write_bytes(data)
    for each in run(read_environment(bare.prefix, {}), hashes=True).findings:
        assert each.plain()


@given(st.text())
def test_whatever_was_seen_is_printable(text: str) -> None:
    found = seen(text, text, text)
    assert f"{found.file}{found.field}{found.value}".isprintable()

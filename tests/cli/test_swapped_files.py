"""``--key`` while somebody else puts an unsigned file in the place of the signed one.

Whatever happens between check and use, a verb refuses, or does what it does with the signed file.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from envbuilder.base import sha256_text
from envbuilder.cli import app
from envbuilder.images.oci import OciConfig, pack_layout
from envbuilder.model.plan import Plan
from tests.cli.bundles import create_bundle, write_bundle
from tests.cli.published import planned, publish_plan
from tests.cli.test_signed_files import manifest, openssl
from tests.images.image_files import sif, squashfs
from tests.made_up_files import locked

pytest.importorskip("cryptography")
# Nothing in it depends on the Python.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on PATH"),
]

SITE = ("--site", "local")
# The exit code of what is not signed with the key.
REFUSED = 8


class Files(NamedTuple):
    """What is signed and what is not: a lock, a bundle's archive, a SIF file, a layout."""

    lock: Path
    archive: Path
    sif: Path
    oci: Path


class Made(NamedTuple):
    key: Path
    signed: Files
    unsigned: Files


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    private, public = folder / "private", folder / "public"
    openssl("genpkey", "-algorithm", "ED25519", "-out", str(private))
    public.write_bytes(openssl("pkey", "-in", str(private), "-pubout"))
    plan = planned("allreduce", *SITE)
    signed = make_files(folder / "signed", plan)
    unsigned = make_files(folder / "unsigned", planned("collective-torch-cpu", *SITE))
    unsigned.lock.write_text(other_lock(plan), encoding="utf-8")
    for file in (*signed[:3], signed.oci):
        text = manifest(file) if file.is_dir() else file
        words = ["-sign", "-inkey", str(private), "-rawin", "-in", str(text)]
        signature = base64.b64encode(openssl("pkeyutl", *words))
        file.with_name(f"{file.name}.sig").write_bytes(signature)
    return Made(public, signed, unsigned)


def make_files(folder: Path, plan: dict[str, Any]) -> Files:
    folder.mkdir()
    _, archive = write_bundle(folder, plan)
    system = folder / "system"
    root = system / "opt" / "envbuild"
    publish_plan(root, plan, {"pyvenv.cfg": "home = /usr/bin\n"}, attested=True)
    pack_layout(system, folder / "image.oci", OciConfig("x86_64", "tag", (), {}))
    image = sif(folder / "image.sif", squashfs(system, folder / "squashfs"))
    return Files(folder / "lock.json", archive, image, folder / "image.oci")


def other_lock(plan: dict[str, Any]) -> str:
    """Return a lock of the plan with other files."""
    lock = locked(Plan.model_validate_json(json.dumps(plan)))
    files = [
        each.model_copy(update={"sha256": sha256_text(each.sha256)}) for each in lock.artifacts
    ]
    text: str = lock.model_copy(update={"artifacts": tuple(files)}).text()
    return text


class Swap(NamedTuple):
    """A name under which the signed or the unsigned file lies, and a verb that takes it."""

    file: Path
    signed: Path
    unsigned: Path
    key: Path
    run: Callable[[Sequence[str]], Result]

    @property
    def swapped(self) -> Path:
        """Of a layout its index, which names the image."""
        return self.file / "index.json" if self.file.is_dir() else self.file

    def text_of(self, source: Path) -> bytes:
        """Return what has to lie under the name, so that it is a file or layout."""
        return (source / "index.json" if source.is_dir() else source).read_bytes()

    def put(self, source: Path) -> None:
        """Replace the file at once, as ``mv`` does."""
        copy = self.swapped.with_name(".copy")
        copy.write_bytes(self.text_of(source))
        os.replace(copy, self.swapped)  # noqa: PTH105 - names no path of pathlib's in its event

    def write(self, source: Path) -> None:
        """Write into the file itself, which then changes while it is open."""
        self.swapped.write_bytes(self.text_of(source))

    def result(self, *words: str) -> tuple[int, str]:
        done = self.run([str(self.file), "--key", str(self.key), *words])
        assert "Traceback" not in done.output
        return done.exit_code, done.stdout


def invoke(*before: str) -> Callable[[Sequence[str]], Result]:
    return lambda words: CliRunner().invoke(app, [*before, *words])


def bundling(words: Sequence[str]) -> Result:
    """Make a bundle of a lock, and no second time in the same folder."""
    out = Path(words[0]).with_name("out")
    shutil.rmtree(out, ignore_errors=True)
    output = ("--output", str(out), "--json")
    return create_bundle("allreduce", *SITE, "--locked", *words, *output)


VERBS = {
    "create": ("lock", bundling),
    "lock": ("lock", invoke("lock", "allreduce", *SITE, "--json", "--check")),
    "render": ("lock", invoke("render", "allreduce", *SITE, "--as", "requirements", "--locked")),
    "bundle": ("archive", invoke("bundle", "verify", "--json")),
    "sif": ("sif", invoke("info", "--json")),
    "oci": ("oci", invoke("info", "--json")),
}


@pytest.fixture(params=VERBS)
def swap(request: pytest.FixtureRequest, made: Made, tmp_path: Path) -> Swap:
    kind, run = VERBS[request.param]
    signed, unsigned = getattr(made.signed, kind), getattr(made.unsigned, kind)
    file = tmp_path / signed.name
    if signed.is_dir():
        # The parts of both: only the index says which image it is.
        for source in (unsigned, signed):
            shutil.copytree(source, file, dirs_exist_ok=True)
    else:
        shutil.copy(signed, file)
    shutil.copy(f"{signed}.sig", f"{file}.sig")
    return Swap(file, signed, unsigned, made.key, run)


# What is called at each event of the interpreter. A hook that was added stays.
watching: list[Callable[[str, tuple[object, ...]], None]] = []
sys.addaudithook(lambda event, arguments: [each(event, arguments) for each in watching] and None)


@contextmanager
def at_event(is_due: Callable[[str, object], bool], act: Callable[[], object]) -> Iterator[None]:
    """Act once, at the first event after one that *is_due* holds for; it gets name and argument."""
    state = ["waiting"]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if state[0] == "waiting" and is_due(event, arguments[:1]):
            state[0] = "due"
        elif state[0] == "due" and not is_due(event, arguments[:1]):
            state[0] = "done"
            act()

    watching.append(watch)
    try:
        yield
    finally:
        watching.remove(watch)
    assert state[0] == "done"


def opens(path: Path) -> Callable[[str, object], bool]:
    """What holds for the events of opening a file, of which the last one comes before it is so."""
    return lambda event, argument: event == "open" and argument == (str(path),)


def test_what_is_used_is_what_was_verified(swap: Swap) -> None:
    expected = swap.result()
    assert expected[0] == 0
    with at_event(opens(swap.swapped), lambda: swap.put(swap.unsigned)):
        assert swap.result() == expected
    assert swap.result()[0] == REFUSED


@contextmanager
def swapping(swap: Swap, put: Callable[[Path], object]) -> Iterator[list[int]]:
    """Put one file and the other again and again; the list holds how often."""
    ended, counts = threading.Event(), [0]

    def run() -> None:
        while not ended.wait(0.015):
            put(swap.unsigned)
            ended.wait(0.015)
            put(swap.signed)
            counts[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()


@pytest.mark.long
@pytest.mark.parametrize("in_place", [False, True])
def test_of_a_hundred_swaps_none_takes_effect(swap: Swap, *, in_place: bool) -> None:
    expected = swap.result()
    with swapping(swap, swap.write if in_place else swap.put) as counts:
        while counts[0] < 100:
            result = swap.result()
            assert result == expected or result[0] == REFUSED
    assert swap.result() == expected


def test_a_folder_in_the_place_of_an_archive_is_no_archive(made: Made, tmp_path: Path) -> None:
    """What is decided of a path, a file or a folder, is decided once."""
    file, folder = tmp_path / "bundle.tar.gz", tmp_path / "folder"
    shutil.copy(made.signed.archive, file)
    shutil.copy(f"{made.signed.archive}.sig", f"{file}.sig")
    shutil.copytree(
        made.unsigned.archive.with_name(made.unsigned.archive.name[: -len(".tar.gz")]), folder
    )
    words = ["bundle", "verify", str(file), "--key", str(made.key), "--json"]
    expected = CliRunner().invoke(app, words)
    assert expected.exit_code == 0, expected.stderr
    with at_event(opens(file), lambda: (file.rename(tmp_path / "moved"), folder.rename(file))):
        done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (0, expected.stdout)

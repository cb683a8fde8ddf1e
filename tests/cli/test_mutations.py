"""What somebody, or a disk, may have changed is refused or named; none of it is run, and what is
told of an environment is what it is.

Cases are drawn. A hundred of each kind take a second, as nothing is built; ``-m long`` draws more.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envbuilder.base import canonical_json
from envbuilder.commands.bundle import verify
from envbuilder.commands.environments import info, list_all
from envbuilder.errors import EnvbuildError
from envbuilder.record import read_all
from envbuilder.reporter import problems_text
from envbuilder.root.environment_lock import read_lock
from envbuilder.target_tools.bundle import read_facts
from envbuilder.target_tools.root import layout, publish, store
from envbuilder.views import building
from envbuilder.views import environments as views
from envbuilder.workflow.context import Context
from envbuilder.workflow.image_contents import OpenedRoot
from envbuilder.workflow.options import SignatureOptions
from tests.cli.bundles import write_bundle
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

UNSIGNED = SignatureOptions()
DRAWS = [
    pytest.param(14, 100, id="some"),
    pytest.param(15, 1500, id="many", marks=pytest.mark.long),
]
drawn = pytest.mark.parametrize(("seed", "cases"), DRAWS)

VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 7, 2**70, 1e400, 0.5, "", "x", "lua", "tcl"]
VALUES += [
    "../../etc",
    "/etc/passwd",
    "a" * 12,
    "\u202e\x1b[2J",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
]
VALUES += ["1;touch pwned", "$(touch pwned)", {"number": 1}, "passed", "several nodes", "9" * 30]


@pytest.fixture(autouse=True)
def _nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **options: object) -> None:
        raise AssertionError(f"started: {words}")

    monkeypatch.setattr(subprocess, "Popen", refuse)


def bytes_changed(data: bytes, draw: random.Random) -> bytes:
    """Change, cut off, or put in some bytes."""
    at = draw.randrange(len(data))
    kind = draw.randrange(4)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + draw.randbytes(draw.choice([1, 1, 8])) + data[at:]
    if kind == 2:
        return b"[" * 50_000 if draw.random() < 0.2 else data[:at] + data[at + 1 :]
    return data[:at] + draw.randbytes(1) + data[at + 1 :]


def value_changed(value: Any, draw: random.Random) -> None:
    """Change a value somewhere in lists and objects, take it, or put another beside it."""
    inside = value
    while True:
        keys: list[Any] = sorted(inside) if isinstance(inside, dict) else [*range(len(inside))]
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(inside[key], dict | list) and inside[key] and draw.random() < 0.8:
            inside = inside[key]
            continue
        kind = draw.random()
        if kind < 0.15:
            del inside[key]
        elif kind < 0.25 and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[key]))
        elif kind < 0.25:
            inside["more"] = draw.choice(VALUES)
        else:
            inside[key] = copy.deepcopy(draw.choice(VALUES))
        return


def changed(data: bytes, draw: random.Random) -> bytes:
    """Return JSON with something changed: its values, or its bytes."""
    if draw.random() < 0.3:
        return bytes_changed(data, draw)
    value = json.loads(data)
    for _ in range(draw.choice([1, 1, 2])):
        value_changed(value, draw)
    return json.dumps(value).encode()


def told(run: Callable[[], Any], text: Callable[[Any], str]) -> Any:
    """Return what a verb hands back, which can be shown; None where it refuses."""
    try:
        value = run()
    except EnvbuildError as error:
        problems_text(error.problems).encode("utf-8", "backslashreplace")
        return None
    (text(value) + canonical_json(value.plain())).encode("utf-8", "backslashreplace")
    return value


# Of bundle.json: what its lock does not say, as the scripts.
OWN = {"placed", "modulefile", "placeholder", "dialect", "job", "submit"}


def stated(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what the lock says too."""
    names = ("schema", "name", "id", "site", "arch", "proving")
    found = copy.deepcopy({name: facts[name] for name in names})
    for proof in found["proving"]["proofs"]:
        ranks = proof["request"]["ranks"]
        for name in set(proof) - {"api", "transport"}:
            del proof[name]
        proof["ranks"] = ranks
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_bundle(tmp_path_factory.mktemp("made"))


@drawn
def test_every_changed_file_is_named(
    made: tuple[Path, Path], tmp_path: Path, context: Context, seed: int, cases: int
) -> None:
    """With its sums as they were; or, of JSON, with sums that fit."""
    draw = random.Random(seed)
    bundle = Path(shutil.copytree(made[0], tmp_path / "bundle"))
    sums = bundle / "SHA256SUMS"
    lines = sums.read_text()
    names = [line[66:] for line in lines.splitlines()]
    agree = 0
    for _ in range(cases):
        sealed = draw.random() < 0.7
        one = draw.choice(["bundle.json", "build/lock.json"] if sealed else names)
        path = bundle / one
        good = path.read_bytes()
        if one.endswith(".json"):
            path.write_bytes(changed(good, draw))
        else:
            path.write_bytes(bytes_changed(good or b"\n", draw))
        if sealed:
            sums.write_text(with_sum(lines, one, path))
        value = told(lambda: verify(bundle, UNSIGNED, context), building.bundle_check)
        if path.read_bytes() == good or value is None:
            assert path.read_bytes() == good, one
        elif not sealed:
            assert [line.partition(": ")[0] for line in value.changed] == [one]
        elif not value.contradictions and one == "bundle.json":
            agree += 1
            assert stated(read_facts(path.read_bytes())) == stated(read_facts(good))
        elif not value.contradictions:
            agree += 1
            # Such as the title of a step: it decides nothing.
            assert bundle.joinpath("bundle.json").is_file()
            assert value.id == json.loads((bundle / "bundle.json").read_text())["id"]
        path.write_bytes(good)
        sums.write_text(lines)
    assert agree < cases / 2


@drawn
def test_every_changed_archive_is_refused_or_holds_what_was_packed(
    made: tuple[Path, Path], tmp_path: Path, context: Context, seed: int, cases: int
) -> None:
    draw = random.Random(seed)
    whole = gzip.decompress(made[1].read_bytes())
    archive = tmp_path / "changed.tar.gz"
    good = verify(made[1], UNSIGNED, context)
    refused = 0
    for _ in range(cases // 4):
        data = bytearray(whole)
        # Headers lie at multiples of 512 bytes.
        for _ in range(draw.choice([1, 1, 3])):
            at = draw.randrange(len(data) // 512) * 512
            data[at + draw.randrange(400)] = draw.randrange(256)
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        compressor = zlib.compressobj(level=1, wbits=31)
        archive.write_bytes(compressor.compress(bytes(data)) + compressor.flush())
        value = told(lambda: verify(archive, UNSIGNED, context), building.bundle_check)
        if value is None or value.changed:
            refused += 1
        else:
            assert value.model_copy(update={"file": good.file}) == good
    assert refused > cases // 8
    assert sorted(tmp_path.iterdir()) == [archive]


def with_sum(lines: str, name: str, path: Path) -> str:
    """Return the sums with that of one file as it is now."""
    import hashlib

    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return "".join(
        f"{sha256}  {name}\n" if line[66:] == name else f"{line}\n" for line in lines.splitlines()
    )


@pytest.fixture
def context(tmp_path: Path) -> Context:
    from datetime import datetime, timezone
    from io import StringIO

    from envbuilder.reporter import Report

    return Context(
        environ={},
        cwd=tmp_path,
        clock=lambda: datetime.now(timezone.utc),
        reporter=Report(StringIO(), StringIO()),
    )


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return planned("allreduce", "--site", "local")


@pytest.fixture
def home(tmp_path: Path, plan: dict[str, Any]) -> layout.Home:
    """Three numbers of one environment, the first with a proof."""
    root = tmp_path / "root"
    for number in range(1, 4):
        one = {**plan, "summary": f"Number {number}"}
        one["smoke"] = {**plan["smoke"], "max_bytes": 2 ** (10 + number)}
        one["smoke"].pop("max-bytes", None)
        version = publish_plan(root, one, {"lib/module.py": "VALUE = 1\n", "lib/data": "x"})
        assert version.number == number
    home = layout.Home(root, "allreduce")
    version = publish.published(home)[0]
    proved(home.evidence(version.id), subject(home, version))
    return home


@drawn
def test_whatever_a_registry_says_a_number_is_what_its_modulefile_loads(
    home: layout.Home, context: Context, seed: int, cases: int
) -> None:
    draw = random.Random(seed)
    root = store.read_root(home.root)
    published = {each.number: each.id for each in publish.published(home)}
    assert len(set(published.values())) == 3
    registry, default = home.registry_file, home.modulefiles / ".modulerc.lua"
    good = {path: path.read_bytes() for path in (registry, default)}
    highest = 3
    for number in range(cases):
        path, edit = (registry, changed) if draw.random() < 0.8 else (default, bytes_changed)
        path.write_bytes(edit(good[path], draw))
        value = told(lambda: list_all(root, context), views.listing)
        assert {each.number: each.id for each in value.environments} == published
        one = draw.choice(sorted(published))
        found = told(lambda one=one: info(OpenedRoot(root, f"allreduce/{one}")), views.info)
        assert (found.id, found.lock.id()) == (published[one], published[one])
        assert publish.named(home) == set(published.values())
        given = publish.reserve(home, f"{number:012x}", "lua").number
        assert given > highest
        highest = given if given < 10**6 else highest
        if given >= 10**6:
            home.last_number_file.write_text(f"{highest}\n")
        for each, data in good.items():
            each.write_bytes(data)


@drawn
def test_whatever_a_record_says_what_counts_is_what_the_ranks_recorded(
    home: layout.Home, context: Context, seed: int, cases: int
) -> None:
    draw = random.Random(seed)
    root = store.read_root(home.root)
    folder = home.evidence(publish.published(home)[0].id)
    paths = [folder / "0001" / "evidence.json", *sorted(folder.glob("0001/ranks/*"))]
    version = publish.published(home)[0]
    [good] = read_all(home, version, read_lock(home, version)).evidence
    counted = 0
    for _ in range(cases):
        path = draw.choice([paths[0], *paths])
        data = path.read_bytes()
        if path == paths[0]:
            path.write_bytes(changed(data, draw))
        else:
            lines = data.splitlines()
            at = draw.randrange(len(lines))
            lines[at] = changed(lines[at], draw)
            path.write_bytes(b"\n".join(lines) + b"\n")
        value = told(lambda: list_all(root, context), views.listing)
        found = told(lambda: info(OpenedRoot(root, "allreduce/1")), views.info)
        assert len(value.environments) == 3
        assert len(found.evidence) + len(found.damaged) + len(found.claimed) == 1
        # list says what info says, of every record.
        [listed] = [each for each in value.environments if each.number == 1]
        passed = [each.result for each in found.evidence if each.result.verdict == "passed"]
        assert [listed.tier] == ([each.tier for each in passed] or [None])
        assert (listed.damaged, listed.claimed) == (found.damaged, found.claimed)
        for each in found.evidence:
            counted += 1
            if each.result.verdict != "passed":
                continue
            for name in ("tier", "nodes", "timings", "mpi", "runtime"):
                assert getattr(each.result, name) == getattr(good.result, name)
            for ours, theirs in zip(each.result.checks, good.result.checks, strict=True):
                assert (ours.name, ours.bytes, ours.passed) == (
                    theirs.name,
                    theirs.bytes,
                    theirs.passed,
                )
        path.write_bytes(data)
    assert 0 < counted < cases


@drawn
def test_whatever_a_manifest_says_a_changed_file_is_named(
    home: layout.Home, context: Context, seed: int, cases: int
) -> None:
    """The manifest is changed, or the prefix; nothing of that is run to find out."""
    draw = random.Random(seed)
    root = store.read_root(home.root)
    version = publish.published(home)[0]
    manifest, module = home.manifest(version.id), home.prefix(version.id) / "lib" / "module.py"
    good, text = manifest.read_bytes(), module.read_bytes()
    whole = json.loads(good)["files"]
    for _ in range(cases):
        if draw.random() < 0.8:
            path = manifest
            path.write_bytes(changed(good, draw))
        else:
            path = module
            path.chmod(0o644)
            path.write_bytes(bytes_changed(text, draw))
            path.chmod(0o444)
        value = told(lambda: info(OpenedRoot(root, "allreduce/1"), verify=True), views.info)
        if value and not value.changed:
            assert module.read_bytes() == text
            files = json.loads(manifest.read_bytes())["files"]
            assert {name: each.get("sha256") for name, each in files.items()} == {
                name: each.get("sha256") for name, each in whole.items()
            }
        module.chmod(0o644)
        module.write_bytes(text)
        module.chmod(0o444)
        manifest.write_bytes(good)

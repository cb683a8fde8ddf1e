"""What is no regular file, or too large, in the place of a file of a root: told, never waited for.

Verbs run in a process of their own, whose memory and time are limited: one that opens a FIFO would
wait for ever, and one that reads /dev/zero would fill the memory.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from envbuilder.target_tools.root.layout import Home
from tests.cli.published import planned, publish_plan
from tests.record.proofs import proved, subject
from tests.smoke.smoke_ranks import FRESH, Rank
from tests.verbs import SCRIPT, Answer, answers

# Files and their kinds are the kernel's, whatever the Python.
pytestmark = pytest.mark.thorough


def run(lines: Sequence[Sequence[str | Path]], folder: Path, timeout: float = 300) -> list[Answer]:
    """Run verbs, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(json.dumps(list(map(str, line))) for line in lines)],
        env={**os.environ, "COLUMNS": "300", "HOME": str(folder), "PIP_NO_INDEX": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return answers(done.stdout)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # It is bound to a short path: the kernel takes no more than 107 bytes.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as one:
        one.bind(f"{folder}/socket")
        shutil.move(f"{folder}/socket", path)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 * 2**30)


def make_endless_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_circle(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = {
    "fifo": make_fifo,
    "link to /dev/zero": make_endless_link,
    "large": make_large,
    "socket": make_socket,
    "device": make_device,
    "folder": Path.mkdir,
    "link to itself": make_circle,
}
# The first two are those that were waited for, or read without end.
EVERY_KIND = [
    pytest.param(kind, marks=[pytest.mark.long] if number > 1 else [], id=kind)
    for number, kind in enumerate(KINDS)
]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with two environments, each with a proof and the records of its ranks."""
    root = tmp_path_factory.mktemp("original") / "root"
    plan = planned("allreduce", "--site", "local")
    for name in ("allreduce", "other"):
        version = publish_plan(root, {**plan, "recipe": name}, attested=True)
        home = Home(root, name)
        proved(home.evidence(version.id), subject(home, version))
    return root


@pytest.fixture
def put(original: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Return what puts something else in the place of a file, in a copy of the root."""

    def place(pattern: str, kind: str) -> Path:
        root = tmp_path / f"root{len(list(tmp_path.iterdir()))}"
        shutil.copytree(original, root)
        # The modulefiles name the prefix by the end of its path: they hold in the copy, too.
        folder, _, name = pattern.rpartition("/")
        path = next(iter(root.glob(folder)), root / folder) / name if folder else root / name
        path = next(iter(path.parent.glob(path.name)), path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        KINDS[kind](path)
        return root

    return place


# Where, and what of list's answer says so.
REPORTED = {
    "other/.envbuild.json": "damaged",
    "other/*.build/lock.json": "row",
    "other/*.evidence/0001/evidence.json": "row",
    "other/*.evidence/0001/ranks/rank-node1-100.jsonl": "row",
    "modulefiles/other/.modulerc.lua": "damaged",
    "modulefiles/other/.version": "damaged",
    "modulefiles/other/.last-number": "damaged",
    "modulefiles/other/1.lua": "damaged",
    "modulefiles/other/2.lua": "damaged",
    ".external/one.json": "damaged",
}
# What list does not read, or what counts for nothing.
UNREAD = [
    ".envbuild.evidence.json",
    "other/lock.json",
    "other/in-use.lock",
    "other/default.lock",
    "other/*.build/.envbuild.json",
    "other/*.evidence/manifest.json",
    "other/*.evidence/sbom.cdx.json",
    "other/*.evidence/0001/ranks/rank-another.jsonl",
    "other/*.evidence/0001/ranks/stack-node1-100.txt",
    "other/*.evidence/0001/smoke.log",
]
# In the place of a folder.
FOLDERS = ["modulefiles/other", ".external", "other/*.evidence", "other/*.evidence/0001", "third"]


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.sample(1)
def test_list_reports_what_is_no_file_and_keeps_all_other_rows(
    put: Callable[[str, str], Path], tmp_path: Path, kind: str
) -> None:
    places = [*REPORTED, *UNREAD, *FOLDERS]
    roots = [put(place, kind) for place in places]
    answers = run([["list", "--json", "--root", root] for root in roots], tmp_path)
    for place, (code, out, err) in zip(places, answers, strict=True):
        assert code == 0, (place, err)
        listing = json.loads(out)
        rows: dict[str, Any] = {each["environment"]: each for each in listing["environments"]}
        assert rows["allreduce"]["tier"] == "several ranks", place
        if place in UNREAD:
            assert rows["other"]["tier"] == "several ranks", place
        elif REPORTED.get(place) == "row":
            assert rows["other"]["damaged"] + rows["other"]["claimed"] != [], place
        elif place in REPORTED and kind == "folder" and place.endswith("2.lua"):
            assert listing["damaged"] != [], place
        elif place in REPORTED:
            assert any(place.rpartition("/")[2] in each for each in listing["damaged"]), place


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_stamp_that_is_no_file_is_a_wrong_root(
    put: Callable[[str, str], Path], tmp_path: Path, kind: str
) -> None:
    root = put(".envbuild.json", kind)
    verbs = (["list"], ["remove", "other"])
    for code, _, err in run([[*verb, "--root", root] for verb in verbs], tmp_path):
        assert code == 2
        assert f"{root / '.envbuild.json'} is damaged" in " ".join(err.split())


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.sample(1)
def test_verbs_that_read_one_end_and_name_it(
    put: Callable[[str, str], Path], tmp_path: Path, kind: str
) -> None:
    lines: dict[str, tuple[list[str], int]] = {
        "other/*.build/lock.json": (["info", "other/1"], 5),
        "other/*.evidence/manifest.json": (["info", "other/1", "--verify"], 8),
        "other/*.evidence/provenance.intoto.json": (["info", "other/1", "--as", "provenance"], 8),
        "other/default.lock": (["rollback", "other", "--to", "1"], 5),
        "other/in-use.lock": (["remove", "other", "--all"], 5),
        "allreduce/in-use.lock": (["create", "allreduce", "--site", "local"], 5),
    }
    roots = [put(place, kind) for place in lines]
    words = [[*verb, "--root", root] for (verb, _), root in zip(lines.values(), roots, strict=True)]
    for (place, (_, expected)), (code, _, err) in zip(
        lines.items(), run(words, tmp_path), strict=True
    ):
        assert code == expected, (place, err)
        assert place.rpartition("/")[2] in err, (place, err)


@pytest.mark.parametrize("kind", ["fifo", "large", "link to /dev/zero"])
def test_what_lies_in_the_place_of_the_default_or_registry_is_replaced(
    put: Callable[[str, str], Path], tmp_path: Path, kind: str
) -> None:
    default, registry = (put(f"{each}", kind) for each in (DEFAULT, "other/.envbuild.json"))
    (code, _, err), (removed, _, said) = run(
        [
            ["rollback", "other", "--to", "1", "--root", default],
            ["remove", "other", "--all", "--root", registry],
        ],
        tmp_path,
    )
    assert (code, removed) == (0, 0), err + said
    assert (default / DEFAULT).is_file()
    assert json.loads((registry / "other/.envbuild.json").read_text())["versions"][0]["removed"]


DEFAULT = "modulefiles/other/.modulerc.lua"


def test_bytecode_that_is_no_file_is_another_kind_of_file(
    put: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """The environment's own Python, which would read it, is given a minute; it is not started."""
    root = put("nothing", "fifo")
    home = Home(root, "other")
    [manifest] = root.glob("other/*.evidence/manifest.json")
    prefix = home.prefix(manifest.parent.name.partition(".")[0])
    source = prefix / "one.py"
    prefix.chmod(0o755)
    source.write_text("", encoding="utf-8")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    recorded = [sys.executable, "-m", "envbuilder.target_tools", "manifest", "record"]
    subprocess.run([*recorded, prefix, manifest], check=True)
    (prefix / "__pycache__").mkdir()
    os.mkfifo(prefix / "__pycache__" / "one.cpython-311.pyc")
    [(code, out, err)] = run([["info", "other/1", "--verify", "--root", root]], tmp_path, 50)
    assert code == 8, out + err
    assert "__pycache__/one.cpython-311.pyc" in out + err


COPY = f"""{FRESH}
import json, os
nonce, out, *records = sys.argv[1:]
for record in records:
    with open(record) as lines, open(os.path.join(out, os.path.basename(record)), "w") as copy:
        for line in fresh([json.loads(line) for line in lines], nonce):
            copy.write(json.dumps(line) + "\\n")
"""
PROVE = """
while [[ $1 != --out ]]; do shift; done
out=$2 nonce=$4
python3 "$HERE/ranks.py" "$nonce" "$out" "$HERE"/rank-*.jsonl
mkfifo "$out/rank-fifo.jsonl" "$out/stack-node1-100.txt" mpi.txt
ln -s /dev/zero "$out/rank-link.jsonl"
truncate -s 20G "$out/rank-large.jsonl" "$out/stack-node1-101.txt"
yes | head -c 12000000 >"$out/rank-lines.jsonl"
rm smoke.log
mkfifo smoke.log
eval "$END"
"""


@pytest.mark.parametrize(("end", "passed"), [("true", True), ("exec sleep 300", False)])
def test_what_ranks_leave_as_records_does_not_hold_up_their_smoke_test(
    tmp_path: Path, end: str, passed: bool
) -> None:
    """The ranks that are judged are a script's; the judge and what waits for them are real."""
    for number in range(2):
        Rank(number, libraries=["/prefix/lib/libmpi.so.12"]).write(tmp_path)
    build = tmp_path / "build"
    build.mkdir()
    (build / "environment.sh").touch()
    (tmp_path / "ranks.py").write_text(COPY, encoding="utf-8")
    (build / "smoke.sh").write_text(PROVE, encoding="utf-8")
    words = ["--prefix", "/prefix", "--api", "numpy", "--ranks", "2", "--timeout", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "envbuilder.target_tools", "prove", *words, build, tmp_path / "out"],
        env={**os.environ, "HERE": str(tmp_path), "END": end},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=limit_memory,
    )
    assert done.returncode == (0 if passed else 6), done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["result"]
    assert result["verdict"] == ("passed" if passed else "failed")
    if not passed:
        told = " ".join(result["reasons"])
        assert all(f"rank-{name}.jsonl" in told for name in ("fifo", "link", "large", "lines"))


def limit_memory() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

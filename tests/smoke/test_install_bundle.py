"""install.sh and what it hands over to, with ranks that are records written by hand."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from smoke_ranks import FRESH, LIBMPI, Rank
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.build import sources
from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.files import remove_tree
from envbuilder.model.backend import Script
from envbuilder.model.plan import Lock, Plan
from envbuilder.record import EnvironmentRecords
from envbuilder.render.build import render_text
from envbuilder.target_tools import proc
from envbuilder.target_tools.root.layout import Home
from envbuilder.target_tools.root.registry import default_number
from envbuilder.target_tools.root.store import open_root, read_root
from tests.cli.published import planned, publish_plan
from tests.made_up_files import locked
from tests.pythons import find_python
from tests.record.proofs import read
from tests.users import TEAM, Users, make_users

pytestmark = pytest.mark.thorough

HOLDER = "/root-of-the-bundle"
IDS = ("0123456789ab", "ba9876543210")
# What the launcher does: it writes the records that the test has made, with the nonce of the run.
RANKS = f"""{FRESH}
import json, pathlib
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for path in sorted(pathlib.Path(__file__).parent.glob("rank-*.json")):
    lines = fresh(json.loads(path.read_text()), options["--nonce"])
    text = "".join(json.dumps(line) + "\\n" for line in lines)
    (pathlib.Path(options["--out"]) / (path.name + "l")).write_text(text)
"""
ENVIRONMENT = """
say() { printf '%s\\n' "$*" >&2; }
clean_environment() { :; }
load_modules() { :; }
"""
BUILD = f"""\
mkdir -p {HOLDER}/demo/ID/bin state
echo tool >{HOLDER}/demo/ID/bin/tool
touch state/"$1".done
"""
MODULEFILE = f"""-- {HOLDER}/demo/ID
help(table.concat({{
  "demo/@NUMBER@: a bundle",
  "@PROVED@",
}}, "\\n"))
whatis("Proved: @SUMMARY@")
"""


@dataclass(frozen=True)
class Bundle:
    """A bundle whose build makes one file, and whose ranks are these records."""

    folder: Path
    identity: str

    def write(self, *ranks: Rank, python: str = sys.executable, lock: Lock | None = None) -> Bundle:
        site, sha256 = (lock.plan.site, lock.sha256()) if lock else ("local", "0" * 64)
        build = self.folder / "build"
        sources.copy(data.TARGET_TOOLS, build / "target_tools")
        beside = self.folder.parent / "ranks"
        beside.mkdir(exist_ok=True)
        (beside / "ranks.py").write_text(RANKS)
        for rank in ranks:
            name = rank.source.removesuffix("l")
            (beside / name).write_text(json.dumps(rank.lines()))
        facts: dict[str, Any] = {
            "schema": 1,
            "name": "demo",
            "id": self.identity,
            "site": site,
            "arch": platform.machine(),
            "dialect": "lua",
            "modulefile": "modulefile.lua",
            "placeholder": HOLDER,
            "placed": ["build.sh"],
            "job": None,
            "submit": None,
            "steps": ["make", "check"],
            "proving": proving(self.identity, site, sha256),
        }
        texts = {
            "build/environment.sh": ENVIRONMENT,
            "build/build.sh": BUILD.replace("ID", self.identity),
            "build/smoke-1.sh": f'exec {sys.executable} {beside}/ranks.py "$@"\n',
            "bundle.json": json.dumps(facts),
            "modulefile.lua": MODULEFILE.replace("ID", self.identity),
            "install.sh": render_text(Script("bundle/install.sh.j2", install_values(python))),
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text)
        self.seal()
        return self

    def seal(self) -> None:
        """Write the sums of what is there now."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        sums = "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(self.folder)}\n"
            for path in files
            if path.name != "SHA256SUMS"
        )
        (self.folder / "SHA256SUMS").write_text(sums)

    def install(
        self, root: Path, *options: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        words = ["bash", str(self.folder / "install.sh"), *options, str(root)]
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **variables}
        return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def proving(identity: str, site: str, sha256: str = "0" * 64) -> dict[str, Any]:
    about = {"schema": 1, "environment": "demo", "id": identity, "lock-sha256": sha256}
    about.update(site=site, arch=platform.machine(), findings=[])
    request = {"launcher": "hydra", "ranks": 2, "nodes": 1}
    proof = {"api": "numpy", "transport": "mpi", "launch": ["mpiexec", "-n", "2"]}
    proof.update(request=request, smoke="smoke-1.sh")
    facts: dict[str, Any] = {"about": about, "components": [], "timeout": 60, "max-bytes": 4096}
    return {**facts, "mpi-from": "prefix", "proofs": [proof]}


def records(root: Path, identity: str = IDS[0]) -> EnvironmentRecords:
    """Return what is recorded of what was installed from a bundle without a lock."""
    return read(Home(root, "demo").evidence(identity), proving(identity, "local")["about"])


def install_values(python: str) -> dict[str, Any]:
    values = {"name": "demo", "id": IDS[0], "site": "local", "arch": platform.machine()}
    return {**values, "ranks": "2", "python": python}


def ranks(root: Path, identity: str = IDS[0], **changes: Any) -> tuple[Rank, Rank]:
    """Return records of two ranks that talked; the second differs by *changes*."""
    good = {
        "libraries": [LIBMPI.replace("/prefix", str(root / "demo" / identity))],
        "claims": [("allreduce", "mpi", "mpi4py calls MPICH 5.0.2")],
    }
    return Rank(0, **good), Rank(1, **{**good, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    remove_tree(tmp_path)


def bundle(folder: Path, identity: str = IDS[0]) -> Bundle:
    (folder / identity / "bundle" / "build").mkdir(parents=True)
    return Bundle(folder / identity / "bundle", identity)


@pytest.mark.parametrize(
    "python",
    [*filter(None, [sys.executable, find_python("3.6")])],
    ids=lambda path: Path(path).name,
)
@pytest.mark.sample(1)
def test_what_was_proved_is_published_with_its_proof(python: Path | str, folder: Path) -> None:
    root = folder / "root"
    for number, identity in enumerate(IDS, start=1):
        one = bundle(folder, identity).write(*ranks(root, identity), python=str(python))
        done = one.install(root)
        assert done.returncode == 0, done.stderr
        assert f"module load demo/{number}" in done.stderr
    home = Home(root, "demo")
    assert default_number(home) == 2
    found = read_root(root)
    assert (found.site, found.arch) == ("local", platform.machine())
    for number, identity in enumerate(IDS, start=1):
        [proof] = records(root, identity).evidence
        assert (proof.result.tier, proof.result.reasons) == ("several ranks", ())
        assert (proof.execution, proof.request and proof.request.launcher) == ("native", "hydra")
        assert (root / "modulefiles" / "demo" / f"{number}.lua").read_text() == "".join(
            [
                f"-- {root}/demo/{identity}\nhelp(table.concat({{\n",
                f'  "demo/{number}: a bundle",\n  "Proved: several ranks, native, {proof.time}",\n',
                *(line + "\n" for line in told_lines(root, identity, proof.result.seconds)),
                '}, "\\n"))\n',
                f'whatis("Proved: several ranks, {proof.time}")\n',
            ]
        )
        assert not os.access(home.prefix(identity) / "bin", os.W_OK) or os.geteuid() == 0
        assert (home.prefix(identity) / "bin").stat().st_mode & 0o222 == 0
    # The first one again: it is there, and is what is meant now.
    again = Bundle(folder / IDS[0] / "bundle", IDS[0]).install(root)
    assert (again.returncode, default_number(home)) == (0, 1), again.stderr
    assert "demo/1 already has" in again.stderr


def test_what_lost_its_evidence_is_not_made_the_default(folder: Path) -> None:
    root = folder / "root"
    for identity in IDS:
        done = bundle(folder, identity).write(*ranks(root, identity)).install(root)
        assert done.returncode == 0, done.stderr
    home = Home(root, "demo")
    remove_tree(home.evidence(IDS[0]))
    again = Bundle(folder / IDS[0] / "bundle", IDS[0]).install(root)
    assert (again.returncode, default_number(home)) == (0, 2), again.stderr
    assert "demo/1 is a candidate" in again.stderr
    assert "demo/1 has no manifest" in again.stderr


def told_lines(root: Path, identity: str, seconds: float) -> Iterator[str]:
    yield f'  "  smoke test passed: 2 ranks in {seconds:.1f} s",'
    yield f'  "  site local, {platform.machine()}, nodes: node1",'
    yield '  "  MPI: MPICH 5.0.2",'
    yield f'  "  libmpi: {root}/demo/{identity}/lib/libmpi.so.12 (from prefix)",'
    for name in ("import", "init", "hello", "world"):
        yield f'  "  {name}: 1 of 1 checks passed",'
    yield '  "  allreduce: 2 of 2 checks passed",'
    for name in ("barrier", "timing", "shutdown"):
        yield f'  "  {name}: 1 of 1 checks passed",'


LIES: list[tuple[dict[str, Any], str]] = [
    ({"libraries": ["/usr/lib/libmpi.so.40"]}, "the ranks loaded /usr/lib/libmpi.so.40 (system)"),
    ({"size": 3}, "states 3 ranks"),
    ({"claims": [("allreduce", "gloo", "its own answer")]}, "the allreduce was carried by gloo"),
    ({"stop_after": ("allreduce", "int32", 4)}, "rank 1 after allreduce"),
    ({"problems": {("allreduce", "int32", 4): "3 numbers differ"}}, "rank 1: allreduce int32"),
    ({"api": "mpi4py"}, "ranks used mpi4py"),
]


@pytest.mark.parametrize(("changes", "reason"), LIES)
@pytest.mark.sample(2)
def test_a_rank_that_shows_something_else_publishes_nothing(
    folder: Path, changes: dict[str, Any], reason: str
) -> None:
    root = folder / "root"
    done = bundle(folder).write(*ranks(root, **changes)).install(root)
    assert done.returncode == 6, done.stderr
    assert "error: the smoke test" in done.stderr
    assert reason in done.stderr
    assert list((root / "modulefiles").iterdir()) == []
    [proof] = records(root).evidence
    assert proof.result.verdict == "failed"


def test_a_launcher_that_starts_nothing_publishes_nothing(folder: Path) -> None:
    root = folder / "root"
    one = bundle(folder).write()
    done = one.install(root)
    assert done.returncode == 6, done.stderr
    assert "none of 2 reported" in done.stderr
    assert list((root / "modulefiles").iterdir()) == []
    # Not asked for a proof, it builds; and publishes nothing either.
    done = one.install(root, "--skip-smoke")
    assert done.returncode == 0, done.stderr
    assert "not published" in done.stderr
    assert list((root / "modulefiles").iterdir()) == []


def test_a_build_that_fails_publishes_nothing_and_is_repaired(folder: Path) -> None:
    root = folder / "root"
    one = bundle(folder).write(*ranks(root))
    script = one.folder / "build" / "build.sh"
    good = script.read_text()
    script.write_text("exit 3\n")
    done = one.install(root)
    assert done.returncode == 2, done.stderr
    assert "packed: build/build.sh\n" in done.stderr
    assert not root.exists()
    one.seal()
    done = one.install(root)
    assert done.returncode == 5, done.stderr
    assert "step make ended" in done.stderr
    assert "exit code 3" in done.stderr
    assert list((root / "modulefiles").iterdir()) == []
    script.write_text(good)
    one.seal()
    done = one.install(root)
    assert done.returncode == 0, done.stderr


def test_a_step_that_never_ends_is_ended_and_named(folder: Path) -> None:
    root, script = (
        folder / "root",
        "if [[ $1 == check ]]; then sleep 600 & echo $! >pid; wait; fi\n",
    )
    one = bundle(folder).write(*ranks(root))
    build = one.folder / "build" / "build.sh"
    build.write_text(script + build.read_text())
    one.seal()
    done = one.install(root, ENVBUILD_STEP_SECONDS="0.5")
    assert done.returncode == 5, done.stderr
    assert "step check did" in done.stderr
    assert "within 0.5 s" in done.stderr
    assert "hint: ENVBUILD_STEP_SECONDS=SECONDS" in done.stderr
    [pid] = root.glob("demo/*.build/pid")
    assert proc.birth(int(pid.read_text())) is None, "what it started is ended too"
    assert list((root / "modulefiles").iterdir()) == []
    done = one.install(root, ENVBUILD_STEP_SECONDS="soon")
    assert (done.returncode, "ENVBUILD_STEP_SECONDS='soon'" in done.stderr) == (2, True)


def test_a_root_of_another_architecture_is_refused(folder: Path) -> None:
    root = folder / "root"
    root.mkdir()
    stamp = {"schema": 1, "site": "local", "arch": "sparc"}
    (root / ".envbuild.json").write_text(json.dumps(stamp))
    done = bundle(folder).write(*ranks(root)).install(root)
    assert done.returncode == 2, done.stderr
    assert f"{root} is for sparc, " in done.stderr
    assert [path.name for path in root.iterdir()] == [".envbuild.json"]


def lock_of(site: str) -> Lock:
    """Return the lock of an environment that is called as these bundles are."""
    plan = {**planned("allreduce", "--site", "local"), "recipe": "demo", "site": site}
    return locked(Plan.model_validate_json(json.dumps(plan)))


def envbuild(root: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*words, "--root", str(root), "--json"])
    assert done.exit_code == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_bundles_of_two_sites_share_a_root(folder: Path) -> None:
    root, sites = folder / "root", ("here", "there")
    for site in sites:
        lock = lock_of(site)
        one = bundle(folder, lock.id()).write(*ranks(root, lock.id()), lock=lock)
        (one.folder / "build" / "lock.json").write_text(lock.text())
        one.seal()
        done = one.install(root)
        assert done.returncode == 0, done.stderr
    told = envbuild(root, "list")
    assert told["site"] == "here"
    rows = [(each["number"], each["site"], each["tier"]) for each in told["environments"]]
    assert rows == [(1, "here", "several ranks"), (2, "there", "several ranks")]
    text = CliRunner().invoke(app, ["list", "--root", str(root)]).stdout
    assert "of site there\n" in text
    assert "of site here" not in text
    for number, site in enumerate(sites, start=1):
        assert envbuild(root, "info", f"demo/{number}")["lock"]["plan"]["site"] == site
    # What create makes is of the root's own site.
    with pytest.raises(UsageError) as raised:
        open_root(root, "there", platform.machine())
    assert raised.value.id == "root.other-site"


def test_a_root_that_create_manages_takes_a_bundle_as_its_next_version(folder: Path) -> None:
    root = folder / "root"
    plan = lock_of("local").plan.model_dump(mode="json", by_alias=True)
    before = publish_plan(root, plan, {"bin/tool": "made by create"})
    done = bundle(folder).write(*ranks(root)).install(root)
    assert done.returncode == 0, done.stderr
    home = Home(root, "demo")
    rows = [(each["number"], each["id"]) for each in envbuild(root, "list")["environments"]]
    assert rows == [(1, before.id), (2, IDS[0])]
    assert default_number(home) == 2
    envbuild(root, "rollback", "demo")
    assert default_number(home) == 1
    assert (home.prefix(before.id) / "bin" / "tool").read_text() == "made by create"


def earlier(folder: Path) -> tuple[Path, str]:
    """Install a bundle by the install.sh of the release that had no judge; return root and id."""
    lock, root, packed = lock_of("there"), folder / "root", folder / "earlier"
    (packed / "build").mkdir(parents=True)
    build = (
        f"mkdir -p {HOLDER}/demo/{lock.id()}/bin\necho tool >{HOLDER}/demo/{lock.id()}/bin/tool\n"
    )
    script = Path(__file__).with_name("earlier_install.sh").read_text()
    texts = {
        "build/build.sh": build,
        # A launcher that starts nothing: that release published it.
        "build/smoke-1.sh": "exit 0\n",
        "build/lock.json": lock.text(),
        "placed.txt": "build.sh\n",
        "1.lua": f'prepend_path("PATH", "{HOLDER}/demo/{lock.id()}/bin")\n',
        "install.sh": script.replace("@ID@", lock.id()),
    }
    for name, text in texts.items():
        (packed / name).write_text(text)
    done = subprocess.run(
        ["bash", packed / "install.sh", root], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return root, lock.id()


def test_a_root_of_an_earlier_bundle_is_taken_over_as_unproved(folder: Path) -> None:
    root, identity = earlier(folder)
    before = sorted(root.rglob("*"))
    assert not (root / ".envbuild.json").exists()
    told = envbuild(root, "list")
    assert (told["site"], told["arch"]) == ("there", platform.machine())
    [row] = told["environments"]
    assert (row["number"], row["id"], row["tier"], row["damaged"]) == (1, identity, None, [])
    info = envbuild(root, "info", "demo/1", "--verify")
    assert (info["evidence"], info.get("manifest")) == ([], None)
    # Verbs that only look never write.
    assert sorted(root.rglob("*")) == before
    lock = lock_of("local")
    one = bundle(folder, lock.id()).write(*ranks(root, lock.id()), lock=lock)
    (one.folder / "build" / "lock.json").write_text(lock.text())
    one.seal()
    done = one.install(root)
    assert done.returncode == 0, done.stderr
    assert "module load demo/2" in done.stderr
    assert (read_root(root).site, default_number(Home(root, "demo"))) == ("there", 2)
    rows = [(each["number"], each["tier"]) for each in envbuild(root, "list")["environments"]]
    assert rows == [(1, None), (2, "several ranks")]
    envbuild(root, "rollback", "demo", "--to", "1")
    envbuild(root, "remove", "demo/2")
    assert [each["number"] for each in envbuild(root, "list")["environments"]] == [1]


def test_what_an_earlier_bundle_published_is_said_to_be_unproved_when_installed_again(
    folder: Path,
) -> None:
    root, identity = earlier(folder)
    done = bundle(folder, identity).write(*ranks(root, identity)).install(root)
    assert done.returncode == 0, done.stderr
    assert "demo/1 already has" in done.stderr
    assert "envbuild smoke demo/1 " in done.stderr
    assert [each["tier"] for each in envbuild(root, "list")["environments"]] == [None]


def test_a_bundle_json_that_can_be_none_is_refused(folder: Path) -> None:
    one = bundle(folder).write()
    facts = json.loads((one.folder / "bundle.json").read_text())
    (one.folder / "bundle.json").write_text(json.dumps({**facts, "id": "../../elsewhere"}))
    one.seal()
    done = one.install(folder / "root")
    assert done.returncode == 2, done.stderr
    assert "is damaged: id" in done.stderr
    assert '"../../elsewhere"\n' in done.stderr
    assert not (folder / "root").exists()


def test_the_script_is_bash_that_shellcheck_has_nothing_against(folder: Path) -> None:
    script = bundle(folder).write().folder / "install.sh"
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    for words in (["bash", "-n"], [program] if program else []):
        if words:
            done = subprocess.run([*words, script], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_however_many_files_were_added_the_first_is_named(folder: Path) -> None:
    one = bundle(folder).write()
    for number in range(2000):
        (one.folder / f"{'added' * 10}-{number:04}").touch()
    done = one.install(folder / "root")
    assert done.returncode == 2, done.stderr
    assert f"not packed: {'added' * 10}-0000\n" in done.stderr


@pytest.fixture
def users() -> Iterator[Users]:
    yield from make_users()


def test_members_of_a_group_install_into_one_root(users: Users) -> None:
    root, folder = users.folder / "root", users.folder / "bundles"
    third = "0a1b2c3d4e5f"

    def install(name: str, umask: int, identity: str, *options: str) -> tuple[int, str]:
        script = folder / identity / "bundle" / "install.sh"
        done = users.run(name, "bash", script, *options, root, umask=umask)
        return done.returncode, done.stderr

    for identity in (*IDS, third):
        bundle(folder, identity).write(*ranks(root, identity))
    # Whatever the umask of the tests.
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    code, said = install("eve", 0o022, IDS[0], "--shared=team")
    assert (code, "group team: you" in said) == (2, True), said
    assert not root.exists()
    code, said = install("ann", 0o077, IDS[0], "--shared=team")
    assert (code, "module load demo/1" in said) == (0, True), said
    code, said = install("bob", 0o002, IDS[1])
    assert (code, "module load demo/2" in said) == (0, True), said
    code, said = install("eve", 0o022, third)
    assert (code, "group team; " in said) == (2, True), said
    # What one began the other begins anew; and each makes the other's the default.
    assert install("ann", 0o077, third, "--skip-smoke")[0] == 0
    code, said = install("bob", 0o077, third)
    assert (code, "belongs to ann: " in said) == (0, True), said
    assert install("ann", 0o077, IDS[1])[0] == 0
    home = Home(root, "demo")
    assert default_number(home) == 2
    for path in (root, *root.rglob("*")):
        assert path.lstat().st_gid == TEAM, path
    for identity in (*IDS, third):
        assert len(records(root, identity).evidence) == 1
        assert home.evidence(identity).stat().st_mode & 0o7777 == 0o2775
        assert home.prefix(identity).stat().st_mode & 0o222 == 0

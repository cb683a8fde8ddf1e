"""What an earlier version made goes on working: its roots, locks, baselines, bundles and recipes.

That version is installed from this repository's history. It makes roots with environments of every
kind, two numbers each; then the present version works on them. ``ENVBUILD_TEST_EARLIER`` names
another commit than the one with which the present series of changes begins.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conda_tools import make_channel
from integration_tools import Done, Envbuild, run, small_recipe
from module_tools import AS_ROOT, MY_ALLREDUCE, SUMS, in_lmod, lmod_init, make_cluster
from test_conda import Quiet, recipes

from tests.serving import serving_by

pytest.importorskip("rattler")
pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

pytestmark = pytest.mark.long

EARLIER = "c6f64fc699bf"
CHECKOUT = Path(__file__).resolve().parents[2]
GROUP = "staff"
SIGNING = Ed25519PrivateKey.from_private_bytes(bytes(32))

ADVISORY = """\
schema: 1
advisories:
  - id: OUR-900
    severity: error
    component: numpy
    affected: "*"
    summary: an error that the recipe waives
    fix: none is needed
    evidence: issue-report
    sources: ["https://cluster.example/tickets/900"]
"""
ALLOWED = 'allow: {OUR-900: "no fault in 200 runs"}\n'

# name -> the root that it lies in
ENVIRONMENTS = {
    "plain": "local",
    "allowed": "local",
    "conda-allreduce": "local",
    "bundled": "local",
    "together": "shared",
    "on-modules": "cluster",
}


@dataclass(frozen=True)
class Made:
    """What the earlier version made, and how the present one is called for it.

    ``read``: per environment, the JSON that the earlier version printed for ``info NAME``, and
    ``listed``: per root, that of ``list``.
    """

    folder: Path
    own: Path
    site: Path
    earlier: Envbuild
    read: dict[str, Any]
    listed: dict[str, Any]

    @property
    def waiving(self) -> Path:
        """Return the folder with the recipe that waives an advisory, and with that advisory."""
        return self.folder / "waiving"

    def root(self, name: str) -> Path:
        return self.folder / ENVIRONMENTS[name]

    def words(self, name: str) -> tuple[str | Path, ...]:
        """Return the options that name recipe, site and root of an environment."""
        site = self.site if ENVIRONMENTS[name] == "cluster" else "local"
        own = self.waiving if name == "allowed" else self.own
        return ("--recipes", own, "--site", site, "--root", self.root(name))


class Earlier(Envbuild):
    """Runs the command of the earlier version."""

    def __init__(self, folder: Path, python: Path) -> None:
        super().__init__(folder)
        self._python = python

    def start(self, *words: Any, env: Any = None, cwd: Any = None, through: Any = ()) -> Any:
        from integration_tools import start

        command = [*through, self._python.with_name("envbuild"), *words]
        return start(command, env=env, cwd=cwd or self._folder)


def install_earlier(folder: Path) -> Path:
    """Install the earlier version into an environment below *folder*; return its Python."""
    commit = os.environ.get("ENVBUILD_TEST_EARLIER", EARLIER)
    archive = subprocess.run(
        ["git", "-C", str(CHECKOUT), "archive", commit], capture_output=True, check=False
    )
    if archive.returncode != 0:
        pytest.skip(f"needs the git history with commit {commit}")
    sources = folder / "sources"
    sources.mkdir()
    subprocess.run(["tar", "-x", "-C", str(sources)], input=archive.stdout, check=True)
    assert run([sys.executable, "-m", "venv", folder / "venv"]).code == 0
    python = folder / "venv" / "bin" / "python"
    done = run([python, "-m", "pip", "install", "--quiet", f"{sources}[conda]"], timeout=600)
    assert done.code == 0, done.text
    return python


def passed(done: Done) -> Done:
    assert done.code == 0, done.text
    return done


def write_key(folder: Path) -> Path:
    """Write the public key that the lock is signed with."""
    public = SIGNING.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "key.pub").write_bytes(public)
    return folder / "key.pub"


def _sign_channel(folder: Path) -> None:
    """Sign each record, as conda's content trust does: earlier locks name the keys."""
    key = SIGNING.public_key().public_bytes_raw().hex()
    for file in folder.glob("*/repodata.json"):
        index = json.loads(file.read_text())
        index["signatures"] = {
            name: {
                key: {
                    "signature": SIGNING.sign(
                        json.dumps(record, indent=2, sort_keys=True).encode()
                    ).hex()
                }
            }
            for name, record in index["packages.conda"].items()
        }
        file.write_text(json.dumps(index))
        # It would be read instead, and has no signatures.
        file.with_name("repodata.json.zst").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def channel_url(index: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = make_channel(tmp_path_factory)
    _sign_channel(folder)
    with serving_by(partial(Quiet, directory=str(folder))) as url:  # type: ignore[arg-type]
        yield url


@pytest.fixture(scope="module")
def made(channel_url: str, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Let the earlier version make the roots; two numbers of each environment."""
    folder = tmp_path_factory.mktemp("earlier")
    earlier = Earlier(tmp_path_factory.mktemp("cwd"), install_earlier(folder))
    own = recipes(folder / "own", channel_url)
    cluster = make_cluster(tmp_path_factory.mktemp("cluster"), "lua", lmod_init("bash"))
    result = Made(folder, own, cluster.document, earlier, {}, {})
    (result.waiving / "knowledge").mkdir(parents=True)
    file = result.waiving / "knowledge" / "advisories.yaml"
    file.write_text(ADVISORY, encoding="utf-8")
    for number in (1, 2):
        _make(result, number, cluster.recipe)
    write_key(folder)
    (folder / "lock.json.sig").write_bytes(
        base64.b64encode(SIGNING.sign((folder / "lock.json").read_bytes()))
    )
    for name, root in ENVIRONMENTS.items():
        info = passed(earlier("info", name, "--root", result.root(name), "--json"))
        result.read[name] = json.loads(info.out)
        baseline = earlier("validate", name, "--root", result.root(name), "--as", "baseline")
        (folder / f"{name}.baseline.yaml").write_text(baseline.out, encoding="utf-8")
        listed = passed(earlier("list", "--root", result.root(name), "--json"))
        result.listed[root] = json.loads(listed.out)
    return result


def _make(made: Made, number: int, on_modules: Callable[..., Path]) -> None:
    """Create number 1 or 2 of each environment; keep the lock of the first."""
    folder, own, earlier = made.folder, made.own, made.earlier
    summary = f"variant {number}"
    small_recipe(own, "plain", summary=summary)
    small_recipe(own, "together", summary=summary)
    small_recipe(own, "bundled", summary=summary)
    small_recipe(made.waiving, "allowed", summary=summary, more=ALLOWED)
    shutil.copy(on_modules("on-modules"), own / "on-modules.yaml")
    for name in ("conda-allreduce", "on-modules"):
        recipe = own / f"{name}.yaml"
        text = recipe.read_text(encoding="utf-8").replace("env: {VARIANT: one}\n", "")
        more = "" if number == 1 else "env: {VARIANT: one}\n"
        recipe.write_text(text + more, encoding="utf-8")
    if number == 1:
        passed(earlier("lock", "plain", *made.words("plain")[:4], "-o", folder / "lock.json"))
    for name in ("plain", "allowed", "conda-allreduce", "on-modules", "together"):
        shared = ("--shared", GROUP) if name == "together" else ()
        locked = ("--locked", folder / "lock.json") if (name, number) == ("plain", 1) else ()
        passed(earlier("create", name, *made.words(name), *shared, *locked, env=AS_ROOT))
    words = ("--bundle", "--output", folder / f"bundle{number}", "--json")
    bundle = passed(earlier("create", "bundled", *made.words("bundled")[:4], *words))
    install = Path(json.loads(bundle.out)["folder"]) / "install.sh"
    passed(run(["bash", install, made.root("bundled")]))


# Fields of earlier locks about signed conda channels. `info` no longer prints them (CHANGELOG).
SIGNATURES = {"signed-by", "verified-by"}


def missing_or_other(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yield each place where *now* lacks a value of *before*, or has another one."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            if key in now:
                yield from missing_or_other(value, now[key], f"{place}.{key}")
            elif key not in SIGNATURES:
                yield f"{place}.{key}: missing"
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, two) in enumerate(zip(before, now, strict=True)):
            yield from missing_or_other(one, two, f"{place}[{number}]")
    elif before != now:
        yield f"{place}: {before!r} became {now!r}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_list_and_info_tell_what_the_earlier_version_told(
    made: Made, envbuild: Envbuild, name: str
) -> None:
    info = passed(envbuild("info", name, "--root", made.root(name), "--json"))
    assert not list(missing_or_other(made.read[name], json.loads(info.out)))
    listed = passed(envbuild("list", "--root", made.root(name), "--json"))
    assert not list(missing_or_other(made.listed[ENVIRONMENTS[name]], json.loads(listed.out)))
    passed(envbuild("info", f"{name}/1", "--verify", "--root", made.root(name)))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_its_module_is_loaded_and_its_launch_line_runs(
    made: Made, envbuild: Envbuild, name: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(MY_ALLREDUCE, encoding="utf-8")
    site = ("--site", made.site) if name == "on-modules" else ()
    for number in (1, 2):
        words = (f"{name}/{number}", "--root", made.root(name), *site, "--ranks", "2")
        line = passed(envbuild("launch", *words, "--", "python", program, env=AS_ROOT)).out
        lines = [
            f"module use '{made.root(name)}/modulefiles'",
            f"module load {name}/{number}",
            line.strip(),
        ]
        trees = [f"module use '{made.site.parent}/modules'"] if site else []
        done = in_lmod("bash", [*trees, *lines], tmp_path, AS_ROOT)
        assert done.out.count(SUMS) == 2, done.text


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_its_baseline_accepts_what_it_accepted(made: Made, envbuild: Envbuild, name: str) -> None:
    baseline = made.folder / f"{name}.baseline.yaml"
    words = ("--root", made.root(name), "--baseline", baseline, "--json")
    before = made.earlier("validate", name, *words)
    now = envbuild("validate", name, *words)
    assert now.code == before.code, now.text


def test_its_signed_lock_is_taken_and_found_published(made: Made, envbuild: Envbuild) -> None:
    signed = ("--locked", made.folder / "lock.json", "--key", made.folder / "key.pub")
    done = passed(envbuild("create", "plain", *made.words("plain"), *signed, "--json"))
    assert json.loads(done.out)["number"] == 1


@pytest.mark.parametrize("name", [name for name in ENVIRONMENTS if name != "plain"])
def test_its_stored_locks_build_nothing_again(made: Made, envbuild: Envbuild, name: str) -> None:
    home = made.root(name) / name
    prefixes = set(home.glob("?" * 12))
    for lock in home.glob("*.build/lock.json"):
        done = passed(envbuild("create", name, *made.words(name), "--locked", lock, env=AS_ROOT))
        assert lock.parent.name.removesuffix(".build") in done.text
    assert set(home.glob("?" * 12)) == prefixes


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_it_is_proved_again_rolled_back_and_removed(
    made: Made, envbuild: Envbuild, name: str
) -> None:
    """Comes last: it changes the root."""
    where = ("--root", made.root(name))
    site = ("--site", made.site) if name == "on-modules" else ()
    proof = passed(envbuild("smoke", name, *where, *site, "--json", env=AS_ROOT))
    assert "several ranks" in proof.out
    # create --locked has made the number of its lock the default.
    passed(envbuild("rollback", name, "--to", "2", *where))
    passed(envbuild("rollback", name, *where))
    rows = json.loads(passed(envbuild("list", *where, "--json")).out)
    text = json.dumps(rows)
    assert f'"{name}"' in text
    refused = envbuild("remove", f"{name}/1", *where)
    assert refused.code != 0
    passed(envbuild("rollback", name, "--to", "2", *where))
    passed(envbuild("remove", f"{name}/1", *where))
    passed(envbuild("info", f"{name}/2", "--verify", *where))

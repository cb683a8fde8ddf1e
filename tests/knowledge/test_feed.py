"""A feed of knowledge: verified, installed and read beside the shipped knowledge."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.cli.test_signed_files import openssl
from tests.serving import serving_by

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on PATH"),
]

ROWS = """\
schema: 1
advisories:
- {id: FEED-001, severity: error, component: numpy, affected: "==2.2.*", summary: it is wrong,
   evidence: run, sources: ["https://cluster.example/1"]}
"""
RECIPE = """\
schema: 1
name: ours
summary: A recipe of the tests
arch: [x86_64, aarch64]
stack: {python: "*", numpy: "==2.2.*", mpich: "*"}
"""


def key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    openssl(
        "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(private)
    )
    public.write_bytes(openssl("pkey", "-in", str(private), "-pubout"))
    return private, public


def publish(folder: Path, private: Path, version: str = "2026.11.28", rows: str = ROWS) -> Path:
    """Write a feed as docs/knowledge.md tells."""
    folder.mkdir(exist_ok=True)
    (folder / "advisories.yaml").write_text(rows)
    (folder / "VERSION").write_text(f"{version}\n")
    names = ("VERSION", "advisories.yaml")
    sums = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names]
    lines = [f"{digest}  {name}\n" for digest, name in zip(sums, names, strict=True)]
    (folder / "SHA256SUMS").write_text("".join(lines))
    signature = openssl("dgst", "-sha256", "-sign", str(private), str(folder / "SHA256SUMS"))
    (folder / "SHA256SUMS.sig").write_bytes(base64.b64encode(signature))
    return folder


class User:
    """Runs envbuild with a home of its own, and a recipe that pins what the feed calls wrong."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.recipe = home / "ours.yaml"
        self.recipe.write_text(RECIPE)

    def run(self, *words: str) -> tuple[int, dict[str, Any], str]:
        env = {"HOME": str(self.home), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": ""}
        done = CliRunner().invoke(app, [*words, "--json"], env=env)
        return done.exit_code, json.loads(done.stdout), done.stderr

    def update(self, source: Path | str, key: Path) -> tuple[int, str]:
        words = ("knowledge", "update", "--from", str(source), "--key", str(key))
        code, value, _ = self.run(*words)
        return code, value["version"] if code == 0 else value["problems"][0]["id"]

    def plan(self, *words: str) -> tuple[int, dict[str, Any], str]:
        return self.run("plan", str(self.recipe), "--site", "local", *words)


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "home"
    home.mkdir()
    return User(home)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return key_pair(tmp_path, "publisher")


def test_a_plan_has_the_rows_of_the_feed_and_names_its_version(
    user: User, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    assert user.plan()[0] == 0
    feed = publish(tmp_path / "feed", keys[0])
    assert user.update(feed, keys[1]) == (0, "2026.11.28")
    code, value, said = user.plan()
    assert (code, value["problems"][0]["id"]) == (4, "plan.known-bad")
    assert "2026.11.28" in said
    (file,) = user.home.glob(".local/share/envbuild-feed/knowledge/advisories.yaml")
    file.chmod(0o666)
    code, _, said = user.plan()
    assert (code, "not used" in said) == (0, True)
    file.chmod(0o644)
    # Nothing is asked for again: the feed may be gone.
    shutil.rmtree(feed)
    code, value, _ = user.plan("--allow", "FEED-001=known")
    assert code == 0
    names = [each["name"] for each in value["inputs"] if each["kind"] == "knowledge"]
    assert names == ["knowledge, feed 2026.11.28"]


@pytest.mark.long
def test_a_feed_is_read_from_a_server(user: User, keys: tuple[Path, Path], tmp_path: Path) -> None:
    feed = publish(tmp_path / "feed", keys[0])
    handler: Any = partial(SimpleHTTPRequestHandler, directory=str(feed))
    with serving_by(handler) as url:
        assert user.update(f"{url}/", keys[1]) == (0, "2026.11.28")
        assert user.plan()[0] == 4
    code, problem = user.update(url, keys[1])
    assert (code, problem) == (9, "feed.unreachable")
    assert user.plan()[0] == 4


def test_a_feed_that_was_changed_is_not_used(
    user: User, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    feed = publish(tmp_path / "feed", keys[0])
    (feed / "advisories.yaml").write_text(ROWS.replace("error", "info"))
    assert user.update(feed, keys[1]) == (8, "feed.changed")
    publish(feed, keys[0])
    sums = (feed / "SHA256SUMS").read_text()
    (feed / "SHA256SUMS").write_text(sums.replace("a", "b"))
    assert user.update(feed, keys[1]) == (8, "signature.not-verified")
    publish(feed, key_pair(tmp_path, "other")[0])
    assert user.update(feed, keys[1]) == (8, "signature.not-verified")
    (feed / "SHA256SUMS.sig").unlink()
    assert user.update(feed, keys[1])[0] == 9
    assert user.plan()[0] == 0


@pytest.mark.long
def test_an_older_feed_and_wrong_rows_are_refused(
    user: User, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    feed = publish(tmp_path / "feed", keys[0], "2026.12.1")
    assert user.update(feed, keys[1])[0] == 0
    publish(feed, keys[0], "2026.11.28")
    assert user.update(feed, keys[1]) == (8, "feed.older")
    publish(feed, keys[0], "2026.12.2", ROWS.replace("numpy", "nunpy"))
    assert user.update(feed, keys[1]) == (2, "component.unknown")
    publish(feed, keys[0], "2026.12.2", ROWS.replace("FEED-001", "FEED-002"))
    assert user.update(feed, keys[1]) == (0, "2026.12.2")
    assert user.run("advisories", "show", "FEED-002")[0] == 0
    assert user.run("advisories", "show", "FEED-001")[0] == 2


@pytest.mark.long
def test_a_feed_names_only_files_of_knowledge(
    user: User, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    feed = publish(tmp_path / "feed", keys[0])
    with (feed / "SHA256SUMS").open("a") as stream:
        stream.write(f"{'0' * 64}  ../evil.yaml\n")
    signature = openssl("dgst", "-sha256", "-sign", str(keys[0]), str(feed / "SHA256SUMS"))
    (feed / "SHA256SUMS.sig").write_bytes(base64.b64encode(signature))
    assert user.update(feed, keys[1]) == (2, "feed.unknown-file")
    assert user.run("knowledge", "update", "--from", str(feed))[0] == 2

"""An index with presigned links, from the lock to the published environment: no secret is kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from image_tools import debian_base
from integration_tools import LOCK_CACHE, Envbuild, run, small_recipe, without_network

from tests.index_servers import IndexServer, index_server

pytestmark = pytest.mark.long

SECRET = "s3cr3tvalue"


@pytest.fixture
def server(built_root: Path, tmp_path: Path) -> Iterator[IndexServer]:
    """Serve the wheels of allreduce with links that hold another secret at every load."""
    lock = json.loads((built_root / "allreduce" / "lock.json").read_text(encoding="utf-8"))
    numbers = count()

    def signed(_: str) -> str:
        return f"X-Amz-Expires=300&X-Amz-Signature={SECRET}{next(numbers)}"

    wheels = tmp_path / "wheels"
    for each in lock["artifacts"]:
        words = ["-m", "pip", "download", "-q", "--no-deps", "-d", wheels, each["url"]]
        subprocess.run([sys.executable, *words], check=True)
    with index_server(query=signed) as served:
        for each in lock["artifacts"]:
            content = (wheels / each["filename"]).read_bytes()
            served.files[each["name"]] = {each["filename"]: content}
        yield served


def prepared(folder: Path, server: IndexServer) -> tuple[Path, dict[str, str], Path]:
    """Return a place, variables that keep all caches in it, and a recipe for *server*."""
    place = folder / "place"
    place.mkdir()
    env = {
        "HOME": str(place / "home"),
        "XDG_CACHE_HOME": str(place / "cache"),
        "PIP_CACHE_DIR": str(place / "cache" / "pip"),
        LOCK_CACHE: str(place / "cache" / "locks"),
        "TMPDIR": str(place),
        "PIP_RETRIES": "0",
        "no_proxy": "localhost",
    }
    recipe = small_recipe(place, "presigned", more=f"pip-indexes: [{server.simple}]\n")
    return place, env, recipe


def holders(place: Path) -> list[str]:
    """Return the files below *place* that hold a secret."""
    return [
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink() and SECRET.encode() in path.read_bytes()
    ]


def test_no_file_of_a_bundle_or_of_what_it_installs_holds_a_secret_of_a_link(
    envbuild: Envbuild, server: IndexServer, tmp_path: Path
) -> None:
    place, env, recipe = prepared(tmp_path, server)
    words = ("create", recipe, "--site", "local", "--bundle", "--output", place / "bundles")
    done = envbuild(*words, env=env, timeout=SECONDS)
    assert done.code == 0, done.text
    [archive] = (place / "bundles").glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(place / "unpacked", filter="fully_trusted")
    archive.unlink()
    [install] = (place / "unpacked").glob("*/install.sh")
    words = [*without_network(), "bash", install, place / "root"]
    installed = run(words, env=env, timeout=SECONDS)
    assert installed.code == 0, installed.text
    [lock] = (place / "root" / "presigned").glob("*.build/lock.json")
    for form in ("all", "folder"):
        words = ("render", recipe, "--locked", lock, "--as", form, "--output", place / form)
        rendered = envbuild(*words, env=env)
        assert rendered.code == 0, rendered.text
    assert holders(place) == []


def test_no_file_of_an_image_holds_a_secret_of_a_link(
    envbuild: Envbuild,
    server: IndexServer,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if shutil.which("apptainer") is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    base = debian_base(tmp_path_factory)
    place, env, recipe = prepared(tmp_path, server)
    words = ("image", recipe, "--base", base, "--format", "sandbox", "--output", place / "images")
    done = envbuild(*words, env=env, timeout=SECONDS)
    assert done.code == 0, done.text
    assert SECRET not in done.text
    assert [*(place / "images").glob("presigned-*-x86_64")]
    assert holders(place) == []


def test_no_file_of_an_environment_holds_a_secret_of_a_link(
    envbuild: Envbuild, server: IndexServer, tmp_path: Path
) -> None:
    place, env, recipe = prepared(tmp_path, server)

    def create(root: str, *words: str | Path) -> str:
        done = envbuild("create", recipe, "--root", place / root, *words, env=env)
        assert done.code == 0, done.text
        assert SECRET not in done.text
        server.expire(*server.files)
        return done.err

    create("first")
    lock = shutil.copy(place / "first" / "presigned" / "lock.json", place / "kept.json")
    files = json.loads(Path(lock).read_text())["artifacts"]
    assert {each["index"] for each in files} == {server.simple}
    assert "exactly this" in create("first")
    # The same lock of the cache, with links that are looked up anew.
    shutil.rmtree(place / "cache" / "envbuild" / "files")
    assert "reusing a lock made" in create("second")
    shutil.rmtree(place / "cache" / "envbuild" / "files")
    create("third", "--locked", lock)
    # Without the index: from the files that were kept.
    server.closed.update(server.files)
    create("fourth", "--locked", lock)
    assert envbuild("info", "presigned", "--root", place / "fourth", "--verify", env=env).code == 0
    for form in ("cyclonedx", "provenance"):
        words = ("info", "presigned", "--root", place / "fourth", "--as", form)
        assert SECRET not in envbuild(*words, env=env).text
    # The scripts alone: they say what is not there, and from which index it is to be had.
    written = envbuild("render", recipe, "--locked", lock, "--output", place / "build", env=env)
    assert written.code == 0, written.text
    script = next((place / "build").rglob("build.sh"))
    words = ["bash", str(script), *(f"{each}" for each in ("venv", "fetch"))]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode != 0
    assert all(each["filename"] in ended.stderr for each in files)
    assert server.simple in ended.stderr
    shutil.rmtree(place / "cache" / "envbuild" / "files")
    done = envbuild("create", recipe, "--root", place / "fifth", "--locked", lock, env=env)
    assert done.code == 9
    assert server.simple in done.err
    assert any(each["filename"] in done.err for each in files)
    assert holders(place) == []

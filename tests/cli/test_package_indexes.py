"""Indexes that hide something: secrets in their links, files from other programs than pip."""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.index_servers import IndexServer, index_server, wheel

pytestmark = pytest.mark.thorough

RECIPE = """\
schema: 1
name: small
summary: A recipe whose wheels are empty
arch: [x86_64, aarch64]
backend: virtualenv
stack:
  python: ">=3.8"
  numpy: "*"
  mpi4py: ">=4"
  mpich: ">=4.2"
runtime:
  package: distributed-dl-training
packages: [{packages}]
pip-indexes: [{indexes}]
{more}"""

SECRET = "s3cr3tvalue"
NUMBERS = count()


def signed(name: str) -> str:
    """Return what is behind each link of a project: other secrets at every load."""
    number = next(NUMBERS)
    kinds = {
        "numpy": f"X-Amz-Signature={SECRET}{number}&X-Amz-Expires=300",
        "mpi4py": f"token={SECRET}{number}",
        "mpich": "download=1",
    }
    return kinds.get(name, "")


class Place:
    """A folder where envbuild runs: its recipe, its caches, and all that it writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe = folder / "recipe" / "small.yaml"
        self.recipe.parent.mkdir(parents=True)
        (folder / "tmp").mkdir()
        self.env: dict[str, str | None] = {
            **{name: None for name in os.environ if name.startswith("PIP_")},
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "ENVBUILD_LOCK_CACHE": None,
            "TMPDIR": str(folder / "tmp"),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_RETRIES": "0",
            "no_proxy": "localhost",
        }

    def write(self, *indexes: str, packages: str = "", more: str = "") -> None:
        text = RECIPE.format(packages=packages, indexes=", ".join(indexes), more=more)
        self.recipe.write_text(text, encoding="utf-8")

    def run(self, verb: str, *words: str | Path, **env: str) -> Result:
        line = [verb, str(self.recipe), *map(str, words)]
        return CliRunner().invoke(app, line, env={**self.env, **env})

    def pins(self) -> dict[str, str]:
        """Return what is to be had by pip, and its versions."""
        plan = json.loads(self.run("plan", "--json").stdout)
        pins = (*plan["pins"], *plan["build-pins"])
        return {each["locator"]: each["version"] for each in pins if each["origin"] == "pip"}


def stock(server: IndexServer, place: Place) -> None:
    """Offer an empty wheel of all that the recipe needs."""
    place.write(server.simple)
    for name, version in place.pins().items():
        server.put(name, version)


def holding(folder: Path, secret: str) -> list[str]:
    """Return the files below a folder, and what archives hold, in which a text is."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            whole = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else b""
            if secret.encode() in data or secret.encode() in whole:
                found.append(str(path.relative_to(folder)))
    return found


def locked(file: Path) -> dict[str, Any]:
    """Return the files of a lock by their names."""
    return {each["name"]: each for each in json.loads(file.read_text())["artifacts"]}


def identity(place: Place, lock: Path) -> str:
    """Return the id that a lock has."""
    return str(json.loads(place.run("lock", "--check", lock, "--json").stdout)["id"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


@pytest.fixture
def server(place: Place) -> Iterator[IndexServer]:
    with index_server(query=signed) as served:
        stock(served, place)
        yield served


def bundled(place: Place, output: str, *words: str | Path, **env: str) -> Path:
    """Make a bundle, and return its folder."""
    done = place.run("create", "--bundle", "--output", place.folder / output, *words, **env)
    assert done.exit_code == 0, done.output + done.stderr
    assert SECRET not in done.output + done.stderr
    (folder,) = (each for each in (place.folder / output).iterdir() if each.is_dir())
    return folder


def test_no_secret_of_a_link_is_written_and_the_file_is_had_again(
    server: IndexServer, place: Place
) -> None:
    bundle = bundled(place, "first")
    lock = bundle / "build" / "lock.json"
    files = locked(lock)
    assert files["numpy"]["url"].endswith(files["numpy"]["filename"])
    assert {name: each["index"] for name, each in files.items()} == {
        "flit-core": None,
        "mpi4py": server.simple,
        "mpich": None,
        "numpy": server.simple,
    }
    assert files["mpich"]["url"].endswith(".whl?download=1")
    assert {path.name for path in (bundle / "build" / "wheelhouse").iterdir()} == {
        each["filename"] for each in files.values()
    }
    # With the index gone nothing has it: nor is a link that was kept tried.
    kept = shutil.copy(lock, place.folder / "kept.json")
    shutil.rmtree(place.folder / "cache")
    server.closed |= {"numpy", "mpi4py"}
    done = place.run(
        "create", "--bundle", "--output", place.folder / "second", "--locked", kept, "--json"
    )
    assert done.exit_code == 9, done.output
    (problem,) = json.loads(done.stdout)["problems"]
    assert files["mpi4py"]["filename"] in problem["message"]
    assert server.simple in problem["message"]
    assert holding(place.folder, SECRET) == []


@pytest.mark.long
def test_locked_files_come_from_index_cache_bundle_and_folder(
    server: IndexServer, place: Place
) -> None:
    bundle = bundled(place, "first")
    lock = shutil.copy(bundle / "build" / "lock.json", place.folder / "kept.json")
    files = locked(Path(lock))
    secret = {files[name]["filename"] for name in ("numpy", "mpi4py")}
    # The index again: its page has other links by now, and the old ones count no more.
    shutil.rmtree(place.folder / "cache")
    server.expire("numpy", "mpi4py")
    server.asked.clear()
    bundled(place, "again", "--locked", lock)
    assert sum(path.startswith("/simple/numpy") for path in server.asked) == 1
    # Of other links the same lock is made; only a file that pip fetched has its size.
    server.expire("numpy", "mpi4py")
    other = place.folder / "other.json"
    assert place.run("lock", "--output", other).exit_code == 0
    sized = [{**each, "size": None} for each in files.values()]
    assert [{**each, "size": None} for each in locked(other).values()] == sized
    assert {identity(place, other), identity(place, Path(lock))} == {bundle.name.split("-")[1]}
    # The cache.
    server.closed |= {"numpy", "mpi4py"}
    bundled(place, "cached", "--locked", lock)
    # A folder.
    shutil.rmtree(place.folder / "cache")
    wheels = place.folder / "wheels"
    wheels.mkdir()
    for name in secret:
        shutil.copy(bundle / "build" / "wheelhouse" / name, wheels)
    bundled(place, "folder", "--locked", lock, PIP_FIND_LINKS=str(wheels))
    # A page of links, and a mirror that the user's pip is not even told of: its own index moved.
    shutil.rmtree(place.folder / "cache")
    with index_server(files=server.files) as mirror:
        moved = json.loads(Path(lock).read_text())
        moved["plan"]["find-links"] = [f"{mirror.simple}/numpy/", f"{mirror.simple}/mpi4py/"]
        file = place.folder / "moved.json"
        file.write_text(json.dumps(moved))
        bundled(place, "mirror", "--locked", file)
    # Another file of the same name is not it.
    shutil.rmtree(place.folder / "cache")
    for name in secret:
        (wheels / name).write_bytes(b"another")
    server.closed.clear()
    for name in ("numpy", "mpi4py"):
        server.files[name] = dict.fromkeys(server.files[name], b"another")
    words = ("--bundle", "--output", place.folder / "none", "--locked", lock)
    done = place.run("create", *words, PIP_FIND_LINKS=str(wheels))
    assert done.exit_code == 5
    assert files["mpi4py"]["filename"] in done.stderr
    assert server.simple in done.stderr
    assert holding(place.folder, SECRET) == []


@pytest.mark.long
def test_a_lock_of_before_with_a_secret_is_read_under_its_id(
    server: IndexServer, place: Place
) -> None:
    new = place.folder / "new.json"
    assert place.run("lock", "--output", new).exit_code == 0
    before = json.loads(new.read_text())
    for each in before["artifacts"]:
        if each.pop("index"):
            each["url"] += f"?X-Amz-Signature={SECRET}0"
    old = place.folder / "old.json"
    old.write_text(json.dumps(before))
    assert identity(place, new) == identity(place, old)
    shutil.rmtree(place.folder / "cache")
    old.rename(place.folder.parent / "old.json")
    bundle = bundled(place, "out", "--locked", place.folder.parent / "old.json")
    assert locked(bundle / "build" / "lock.json")["numpy"]["index"] == "unknown"
    assert holding(place.folder, SECRET) == []


def hides(request: BaseHTTPRequestHandler) -> bool:
    """Whether another program than pip asks."""
    return not request.headers.get("User-Agent", "").startswith("pip/")


@pytest.mark.parametrize(
    "how",
    [
        "user agent",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("first", "redirect", "elsewhere", "same name", "required")
        ),
    ],
)
@pytest.mark.long
def test_a_file_that_an_index_shows_to_pip_alone_is_refused(
    place: Place, tmp_path: Path, how: str
) -> None:
    with index_server() as internal, index_server() as evil, index_server() as host:
        stock(internal, place)
        internal.put("secret", "1.0")
        filename = evil.put("secret", "99.0", text="import evil")
        packages = "secret"
        if how == "same name":
            # Preferred to the one without the number of a build.
            filename = filename.replace("99.0", "1.0-7")
            evil.files["secret"] = {filename: wheel("secret", "1.0", text="import evil")[1]}
        if how == "required":
            evil.put("helper", "1.0", f"secret @ {evil.url}/files/secret/{filename}")
            packages = "helper"
        host.files = evil.files
        loads = count()

        def page(request: BaseHTTPRequestHandler, name: str) -> str | None:
            if name not in evil.files or (how == "required" and name == "secret"):
                return None
            if how == "redirect" and hides(request):
                return f"{internal.simple}/secret/"
            if how == "first" and next(loads) > 0:
                return None
            if how not in ("first", "required") and hides(request):
                return None
            text = evil.html(name)
            return text.replace("../../files", f"{host.url}/files") if how == "elsewhere" else text

        evil.page = page
        place.write(internal.simple, evil.simple, packages=packages)
        done = place.run("lock", "--output", tmp_path / "lock.json")
        assert done.exit_code == 5, done.output
        for text in (filename, internal.simple, evil.simple):
            assert text in done.stderr
        assert not (tmp_path / "lock.json").exists()


@pytest.mark.parametrize(
    "line",
    [
        'find-links: ["https://wheels.example/page.html?token=s3cr3t"]',
        'pip-indexes: ["https://index.example/simple?X-Amz-Signature=s3cr3t"]',
        'pip-indexes: ["https://index.example/simple?id=glpat-s3cr3ts3cr3ts3cr3t1"]',
        'env: {DATA: "s3://x,https://data.example/set.tar?X-Amz-Signature=s3cr3t"}',
        'packages: ["six @ https://index.example/six-1.0-py3-none-any.whl?token=s3cr3t"]',
        'packages: ["six @ https://ann:s3cr3t@index.example/six-1.0-py3-none-any.whl"]',
        'packages: ["six = https://ann:s3cr3t@index.example/six-1.0-py3-none-any.whl"]',
        'channels: ["https://conda.example/own?token=s3cr3t"]',
        'channels: ["https://conda.example/t/s3cr3t-1234/own"]',
    ],
)
@pytest.mark.sample(3)
def test_a_recipe_holds_no_query_with_a_secret(place: Place, line: str) -> None:
    place.write("https://index.example/simple", more=line)
    kept = place.recipe.read_text().splitlines()
    key = line.partition(":")[0]
    text = "\n".join(each for each in kept if each == line or not each.startswith(f"{key}:"))
    place.recipe.write_text(f"{text}\n")
    done = place.run("plan")
    assert done.exit_code == 2
    number = text.splitlines().index(line) + 1
    assert f"small.yaml:{number}:" in done.stderr
    assert "s3cr3t" not in done.output + done.stderr


@pytest.mark.parametrize("query", ["token=s3cr3t", "sv=2022&sig=s3cr3t", "private_token=s3cr3t"])
def test_a_git_tree_has_no_query_with_a_secret(tmp_path: Path, query: str) -> None:
    sources = Path(__file__).resolve().parents[2] / "recipes" / "knowledge"
    file = next(each for each in sorted(sources.rglob("*.yaml")) if "trees:" in each.read_text())
    lines = file.read_text().splitlines()
    number = next(n for n, each in enumerate(lines) if each.strip().startswith("url: https://"))
    lines[number] = f"{lines[number]}?{query}"
    copy = tmp_path / "knowledge" / file.name
    copy.parent.mkdir()
    copy.write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(app, ["advisories", "list", "--recipes", str(tmp_path)])
    assert done.exit_code == 2
    assert f"{file.name}:{number + 1}:" in done.stderr
    assert "s3cr3t" not in done.output + done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the build is that of x86_64")
def test_a_lock_has_the_one_nccl_that_its_pytorch_requires(place: Place) -> None:
    with index_server() as server:
        place.write(server.simple)
        text = place.recipe.read_text().replace("distributed-dl-training", "torch-distributed")
        stack = 'numpy: "*"\n  pytorch: "==2.11.*"\n  nccl: "*"'
        place.recipe.write_text(text.replace('numpy: "*"', stack))
        for name, version in place.pins().items():
            needs = ["nvidia-nccl-cu13==2.28.9"] if name == "torch" else []
            server.put(name, version, *needs)
        # The newest one, and one of another CUDA: both install the same library.
        server.put("nvidia-nccl-cu12", "2.28.9")
        server.put("nvidia-nccl-cu13", "2.32.3")
        file = place.folder / "lock.json"
        done = place.run("lock", "--output", file)
        assert done.exit_code == 0, done.output + done.stderr
        found = {name: each["version"] for name, each in locked(file).items() if "nccl" in name}
        assert found == {"nvidia-nccl-cu13": "2.28.9"}

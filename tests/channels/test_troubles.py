"""What goes wrong between a channel and a build: refused by name, and whole afterwards."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from channel_tools import GLIBC, engine, package, pip, plan, python
from render_cases import build_files

from envbuilder import data
from envbuilder.build.backends import BACKENDS
from envbuilder.build.scripts import prepare
from envbuilder.conda.engine import Engine
from envbuilder.conda.solve import solve
from envbuilder.errors import BuildError
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, PlanChannel
from envbuilder.target_tools.files import sha256_of
from tests.conda_channel import write_channel
from tests.serving import serving_by
from tests.small_disk import fill, small_disk

__all__ = ["small_disk"]
PACKAGES = [python("3.11.7"), package("numpy", "1.26.4", "python >=3.11"), pip()]
NUMPY = "linux-64/numpy-1.26.4-0.conda"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_channel(tmp_path_factory.mktemp("channels") / "channel", PACKAGES)


class Serving(SimpleHTTPRequestHandler):
    """Serves a channel; of numpy it answers with a status, or with less or other bytes."""

    trouble: list[int | bytes]

    def do_GET(self) -> None:
        if not self.trouble or not self.path.endswith(NUMPY):
            super().do_GET()
            return
        what = self.trouble[0]
        if isinstance(what, int):
            self.send_error(what)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(what)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Build:
    """A build folder whose lock was made of a channel that is served, and of its copies."""

    def __init__(self, folder: Path, url: str, *copies: str) -> None:
        planned = plan([url], python="3.11.7", numpy="1.26.4")
        one = PlanChannel(name="c0", url=url, mirrors=copies)
        steps = BACKENDS["conda"].TRAITS.steps
        planned = planned.model_copy(update={"steps": steps, "channels": (one,)})
        lock = Lock(plan=planned, artifacts=solve(planned, GLIBC, {}, engine(folder)))
        self.prefix, self.folder = folder / "prefix", folder / "build"
        prepare(
            self.folder, build_files(lock, BuildFolders(self.prefix, self.folder)), data.RUNTIME
        )

    def fetch(self) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "HOME": str(self.folder)}
        words = ["bash", "build.sh", "packages"]
        return subprocess.run(words, cwd=self.folder, env=environ, capture_output=True, text=True)

    @property
    def fetched(self) -> set[str]:
        return {each.name for each in (self.folder / "conda-packages").iterdir()}


ALL = {"numpy-1.26.4-0.conda", "python-3.11.7-0_cpython.conda", "pip-24.0-pyh0.conda"}


@pytest.fixture
def served(channel: Path) -> Iterator[tuple[str, list[int | bytes]]]:
    """Return the channel's URL, and a list of what its server does to numpy."""
    trouble: list[int | bytes] = []
    handler = type("Handler", (Serving,), {"trouble": trouble})
    with serving_by(functools.partial(handler, directory=str(channel))) as url:  # type: ignore[arg-type]
        yield url, trouble


def test_what_a_server_gives_in_place_of_a_package_is_refused_and_fetched_later(
    channel: Path, served: tuple[str, list[int | bytes]], tmp_path: Path
) -> None:
    url, trouble = served
    build = Build(tmp_path, url)
    whole = (channel / NUMPY).read_bytes()
    wanted = sha256_of(channel / NUMPY)
    for what, why in {
        401: "401 Unauthorized",
        404: "404 Not Found",
        # Without its length, so that it is not known to be short.
        whole[:-9]: wanted,
    }.items():
        trouble[:] = [what]  # type: ignore[list-item]
        done = build.fetch()
        assert done.returncode == 1, (what, done.stdout, done.stderr)
        said = done.stderr.replace("\n", " ")
        assert f"{url}/{NUMPY}: " in said
        assert why in said
        assert build.fetched <= ALL - {"numpy-1.26.4-0.conda"}
        assert not build.prefix.exists()
    trouble.clear()
    done = build.fetch()
    assert done.returncode == 0, done.stderr
    assert build.fetched == ALL


def test_a_copy_that_lags_lacks_packages_and_they_come_from_the_next_one(
    channel: Path, served: tuple[str, list[int | bytes]], tmp_path: Path
) -> None:
    """Its index is there already, and some of its files are not, or are still the old ones."""
    url, trouble = served
    build = Build(tmp_path, url, (tmp_path / "gone").as_uri(), channel.as_uri())
    trouble.append(500)
    done = build.fetch()
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "500 Internal" in line)
    assert f"{url}/{NUMPY}: " in line
    assert build.fetched == ALL
    (build.folder / "conda-packages" / "numpy-1.26.4-0.conda").unlink()
    trouble[:] = [b"an older one"]
    done = build.fetch()
    assert done.returncode == 1
    assert f"{url}/{NUMPY}: its sha256" in done.stderr.replace("\n", " ")


def solved(asking: Engine, url: str) -> tuple[str, ...]:
    asked = plan([url], python="3.11.7", numpy="1.26.4")
    return tuple(each.sha256 for each in solve(asked, GLIBC, {}, asking))


def kept(cache: Path) -> list[Path]:
    found = [each for each in cache.glob("*.json") if not each.name.endswith(".info.json")]
    assert len(found) == 2
    return found


def test_a_half_written_cache_of_channels_is_read_anew_and_mended(
    served: tuple[str, list[int | bytes]], tmp_path: Path
) -> None:
    url, _ = served
    asking = engine(tmp_path)
    first = solved(asking, url)
    whole = {path: path.read_bytes() for path in kept(asking.cache)}
    for change in (lambda data: data[:60], lambda data: b"", lambda data: b"\0" * len(data)):
        for path, content in whole.items():
            path.write_bytes(change(content))
        assert solved(asking, url) == first
        assert {path: path.read_bytes() for path in kept(asking.cache)} == whole
    for path in whole:
        path.with_name(f"{path.stem}.info.json").write_text('{"url": ')
    assert solved(asking, url) == first


def test_what_others_may_have_written_of_channels_is_not_read(
    served: tuple[str, list[int | bytes]], tmp_path: Path
) -> None:
    url, _ = served
    asking = engine(tmp_path)
    first = solved(asking, url)
    for path in kept(asking.cache):
        times = path.stat()
        # As somebody would who wants it to be taken: of the same time, and with its own hash.
        other = path.read_bytes().replace(first[1].encode(), b"5" * 64)
        path.write_bytes(other)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        info = path.with_name(f"{path.stem}.info.json")
        said = json.loads(info.read_text())
        said["blake2_hash"] = hashlib.blake2b(other, digest_size=32).hexdigest()
        info.write_text(json.dumps(said))
    assert "5" * 64 in solved(asking, url)
    kept(asking.cache)[0].chmod(0o664)
    assert solved(asking, url) == first
    asking.cache.chmod(0o777)
    assert solved(asking, url) == first


def test_a_full_disk_under_the_cache_spoils_nothing_for_the_next_time(
    served: tuple[str, list[int | bytes]], small_disk: Path, tmp_path: Path
) -> None:
    url, _ = served
    first = solved(engine(tmp_path), url)
    asking = engine(small_disk)
    asking.cache.mkdir()
    filler = fill(small_disk)
    with contextlib.suppress(BuildError):
        assert solved(asking, url) == first
    filler.unlink()
    assert solved(asking, url) == first
    assert json.loads(kept(asking.cache)[0].read_text())["info"]
    shutil.rmtree(asking.cache)

"""The program that fetches what pip should not: against real servers on this machine.

ENVBUILD_TEST_PYTHONS=/path/to/python3.6:/path/to/python3.12 runs it with these as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from target_environments import TOOLS

from tests.pythons import NAMED
from tests.serving import serving_by

pytestmark = pytest.mark.integration

PYTHONS = (sys.executable, *NAMED)
CONTENT = b"the sources of horovod" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "horovod-0.28.1.tar.gz"


@dataclass
class Served:
    """A server and what it was asked. ``answers``: codes to give before the file itself."""

    url: str = ""
    password: str | None = None
    answers: list[int] = field(default_factory=list)
    elsewhere: str | None = None
    asked: list[str | None] = field(default_factory=list)


@contextmanager
def serving(served: Served, certificate: Path | None = None) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            signed = self.headers.get("Authorization")
            served.asked.append(signed)
            wanted = served.password and b64encode(served.password.encode()).decode()
            if wanted and signed != f"Basic {wanted}":
                self.send_error(401)
            elif served.answers:
                self.send_error(served.answers.pop(0))
            elif served.elsewhere:
                self.send_response(302)
                self.send_header("Location", served.elsewhere)
                self.end_headers()
            else:
                self.send_response(200)
                self.send_header("Content-Length", str(len(CONTENT)))
                self.end_headers()
                self.wfile.write(CONTENT)

        def log_message(self, *arguments: object) -> None:
            pass

    with serving_by(Handler, certificate) as address:
        served.url = f"{address}/files/{NAME}"
        yield served


@dataclass(frozen=True)
class Place:
    """A folder with a list to fetch."""

    folder: Path

    def fetch(
        self,
        url: str,
        *settings: str,
        sha256: str = SHA256,
        python: str = sys.executable,
        mirrors: Mapping[str, Sequence[str]] | None = None,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / "wheelhouse").mkdir(exist_ok=True)
        (self.folder / "list.txt").write_text(f"{url} --hash=sha256:{sha256}\n")
        told = self.folder / "settings.txt"
        told.write_text("\n".join(settings))
        home = {"HOME": str(self.folder), "no_proxy": "localhost,127.0.0.1", **variables}
        words = 'exec "$0" -I "$1" fetch $2 list.txt wheelhouse <settings.txt'
        (self.folder / "conda.json").write_text(json.dumps({"mirrors": mirrors or {}}))
        return subprocess.run(
            [
                "bash",
                "-c",
                words,
                python,
                str(TOOLS),
                "--mirrors conda.json" * (mirrors is not None),
            ],
            env={"PATH": os.environ["PATH"], **home},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def files(self) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in (self.folder / "wheelhouse").iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WHOLE = {NAME: CONTENT}


@pytest.mark.parametrize("python", PYTHONS)
def test_a_file_is_fetched_once(place: Place, python: str) -> None:
    with serving(Served()) as served:
        done = place.fetch(served.url, python=python)
        assert (done.returncode, done.stdout) == (0, f"fetch {served.url}\n"), done.stderr
        again = place.fetch(served.url, python=python)
        assert (again.returncode, again.stdout) == (0, "")
        assert place.files == WHOLE
        assert served.asked == [None]


def test_a_file_on_disk_is_copied(place: Place, tmp_path: Path) -> None:
    (tmp_path / "my files").mkdir()
    (tmp_path / "my files" / NAME).write_bytes(CONTENT)
    done = place.fetch((tmp_path / "my files" / NAME).as_uri())
    assert (done.returncode, place.files) == (0, WHOLE)


def test_another_content_is_refused_and_left_nowhere(place: Place) -> None:
    with serving(Served()) as served:
        done = place.fetch(served.url, sha256="0" * 64)
    assert done.returncode == 1
    assert f"sha256 is {SHA256}, " in done.stderr
    assert "0000" in done.stderr
    assert "hint: put " in done.stderr
    assert place.files == {}


@pytest.mark.parametrize("python", PYTHONS)
def test_a_busy_server_is_asked_again_and_a_refusing_one_is_not(place: Place, python: str) -> None:
    with serving(Served(answers=[503])) as served:
        assert place.fetch(served.url, python=python).returncode == 0
        assert len(served.asked) == 2
    with serving(Served(answers=[404])) as served:
        done = place.fetch(served.url, sha256="1" * 64, python=python)
        assert (done.returncode, len(served.asked)) == (1, 1)
        assert "404 Not Found" in done.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_credentials_of_the_index_or_netrc_and_of_no_other_host(
    place: Place, python: str, tmp_path: Path
) -> None:
    with serving(Served(password="user:pa@ss")) as served:
        host = served.url.split("/")[2]
        denied = place.fetch(served.url, python=python)
        assert "the server says 401" in denied.stderr
        index = f"global.index-url='http://user:pa%40ss@{host}/simple'"
        assert place.fetch(served.url, index, python=python).returncode == 0
        (place.folder / "wheelhouse" / NAME).unlink()
        (tmp_path / "my-netrc").write_text("machine localhost login user password pa@ss\n")
        by_file = place.fetch(served.url, NETRC=str(tmp_path / "my-netrc"), python=python)
        assert by_file.returncode == 0, by_file.stderr
        (place.folder / "wheelhouse" / NAME).unlink()
        with serving(Served()) as storage:
            served.elsewhere = storage.url.replace("localhost", "127.0.0.1")
            assert place.fetch(served.url, index, python=python).returncode == 0
            assert storage.asked == [None]
    assert place.files == WHOLE


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with key and certificate of a localhost that nobody knows."""
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key -out cert"
    extension = ["-addext", "subjectAltName=DNS:localhost"]
    openssl = shutil.which("openssl") or pytest.skip("needs the program openssl")
    command = [openssl, *words.split(), *extension]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return both


@pytest.mark.parametrize("python", PYTHONS)
def test_certificates_are_checked_as_pip_is_told(
    place: Place, certificate: Path, python: str
) -> None:
    with serving(Served(), certificate) as served:
        unknown = place.fetch(served.url, python=python)
        assert unknown.returncode == 1
        assert "certificate verify failed" in unknown.stderr
        cert = f":env:.cert='{certificate.parent / 'cert'}'"
        assert place.fetch(served.url, cert, python=python).returncode == 0
        (place.folder / "wheelhouse" / NAME).unlink()
        trusted = "global.trusted-host='localhost'"
        assert place.fetch(served.url, trusted, python=python).returncode == 0
        (place.folder / "wheelhouse" / NAME).unlink()
        other = place.fetch(served.url, "global.trusted-host='elsewhere'", python=python)
        assert other.returncode == 1


def test_pips_proxy_is_used(place: Place) -> None:
    """A proxy is asked for the whole address; any server that answers can stand for one."""
    with serving(Served()) as served:
        proxy = "http://" + served.url.split("/")[2]
        done = place.fetch(f"http://index.invalid/{NAME}", f"global.proxy='{proxy}'", no_proxy="")
    assert (done.returncode, place.files) == (0, WHOLE), done.stderr


@pytest.mark.parametrize(("code", "why"), [(404, "Not Found"), (500, "Internal Server Error")])
def test_what_a_mirror_lacks_comes_from_the_next_one(place: Place, code: int, why: str) -> None:
    with serving(Served(answers=[code])) as lagging, serving(Served()) as whole:
        folder, other = (each.url.rpartition("/")[0] for each in (lagging, whole))
        mirrors = {folder: ["file:///gone", other], "http://localhost": ["http://nobody.invalid"]}
        done = place.fetch(lagging.url, mirrors=mirrors)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"fetch {lagging.url}"
    values = (lagging.url, str(code), why, f"file:///gone/{NAME}")
    assert all(value in lines[1] for value in values)
    assert lines[2].endswith(f"; trying {whole.url}")
    assert len(lines) == 3
    assert place.files == WHOLE
    # It is not waited for what lies elsewhere as well.
    assert (len(lagging.asked), len(whole.asked)) == (1, 1)


def test_other_bytes_of_a_mirror_are_refused_and_no_third_is_asked(place: Place) -> None:
    with serving(Served(answers=[404])) as first, serving(Served()) as other:
        folders = [each.url.rpartition("/")[0] for each in (first, other)]
        mirrors = {folders[0]: [folders[1], "file:///gone"]}
        done = place.fetch(first.url, sha256="1" * 64, mirrors=mirrors)
    assert done.returncode == 1
    said = f"{other.url}: its sha256 is {SHA256}, the lock has {'1' * 64}"
    assert f"{first.url}: {said}" in done.stderr
    assert "gone" not in done.stdout
    assert place.files == {}


class Broken(BaseHTTPRequestHandler):
    """Ends its answer too early, or sends none that is one."""

    answer = b""

    def do_GET(self) -> None:
        self.wfile.write(self.answer)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


SHORT = b"HTTP/1.0 200 OK\r\nContent-Length: 22000\r\n\r\n" + CONTENT[:9]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (SHORT, "9 of 22000 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
            "malformed response: ",
        ),
        (b"\0garbage\r\n\r\n", "malformed response: "),
        (b"", "Remote end closed connection without response"),
    ],
    ids=["too short", "a chunk too short", "no answer", "nothing"],
)
def test_an_answer_that_is_not_whole_is_said_and_the_next_place_asked(
    place: Place, python: str, answer: bytes, why: str
) -> None:
    handler = type("Handler", (Broken,), {"answer": answer})
    with serving_by(handler) as broken, serving(Served()) as whole:
        mirrors = {broken: [whole.url.rpartition("/")[0]]}
        done = place.fetch(f"{broken}/{NAME}", mirrors=mirrors, python=python)
    assert done.returncode == 0, done.stderr
    assert f"{broken}/{NAME}: " in done.stdout
    assert why in done.stdout
    assert place.files == WHOLE

"""An index over the network, as pip would reach it: a real server on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.locking import connection
from envbuilder.locking.failures import Refusal
from envbuilder.locking.index import Index, SourceFile
from envbuilder.locking.settings import PipSettings
from tests.serving import serving_by

pytestmark = pytest.mark.integration

CONTENT = b"mpi4py as its sources" * 500
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = "mpi4py-4.0.3.tar.gz"
JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class Served:
    """A server: path -> (content type, body). ``asked`` holds method and path of every request."""

    pages: dict[str, tuple[str, bytes]]
    password: str | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def settings(self, **changes: object) -> PipSettings:
        plain = PipSettings(indexes=(f"{self.url}/simple",), retries=0, timeout=5)
        return replace(plain, **changes)  # type: ignore[arg-type]


@contextmanager
def serving(served: Served, certificate: Path | None = None) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(f"{self.command} {self.path}")
            wanted = b64encode((served.password or "").encode()).decode()
            if served.password and self.headers.get("Authorization") != f"Basic {wanted}":
                self.send_error(401)
            elif self.path not in served.pages:
                self.send_error(404)
            else:
                kind, body = served.pages[self.path]
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *arguments: object) -> None:
            pass

    with serving_by(Handler, certificate) as address:
        served.url = address
        yield served


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "localhost")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC"):
        monkeypatch.delenv(name, raising=False)


def html(links: str) -> tuple[str, bytes]:
    return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


PAGE = html(f'<a href="../../files/{FILE}#sha256={SHA256}">{FILE}</a>')
UNHASHED = html(f'<a href="../../files/{FILE}">{FILE}</a>')
FILES = {f"/files/{FILE}": ("application/octet-stream", CONTENT)}


def mpi4py(settings: PipSettings, version: str = "4.0.3") -> SourceFile:
    return Index(settings, {}).sdist("mpi4py", "mpi4py", version, exact=False)


def expected(served: Served) -> SourceFile:
    return SourceFile(FILE, "4.0.3", f"{served.url}/files/{FILE}", SHA256, len(CONTENT))


def test_a_page_of_html_gives_the_hash_and_the_server_the_size() -> None:
    with serving(Served({"/simple/mpi4py/": PAGE, **FILES})) as served:
        assert mpi4py(served.settings()) == expected(served)
        assert served.asked == ["GET /simple/mpi4py/", f"HEAD /files/{FILE}"]


def test_a_page_of_json_says_everything() -> None:
    file = {
        "filename": FILE,
        "url": f"../../files/{FILE}",
        "hashes": {"sha256": SHA256},
        "size": len(CONTENT),
        "requires-python": ">=3.6",
        "yanked": False,
    }
    page = {"meta": {"api-version": "1.1"}, "name": "mpi4py", "files": [file], "versions": []}
    pages = {"/simple/mpi4py/": (JSON, json.dumps(page).encode())}
    with serving(Served(pages)) as served:
        assert mpi4py(served.settings()) == expected(served)
        assert len(served.asked) == 1


def test_a_file_without_a_hash_is_read_whole() -> None:
    with serving(Served({"/simple/mpi4py/": UNHASHED, **FILES})) as served:
        unhashed = replace(expected(served), unhashed=f"{served.url}/simple")
        assert mpi4py(served.settings()) == unhashed
        assert served.asked[-1] == f"GET /files/{FILE}"


def test_a_page_of_links_is_a_place_too() -> None:
    links = html(f'<a href="files/{FILE}#sha256={SHA256}">x</a><a href="files/x-1.zip">y</a>')
    with serving(Served({"/links.html": links, **FILES})) as served:
        settings = served.settings(indexes=(), find_links=(f"{served.url}/links.html",))
        assert mpi4py(settings) == expected(served)


def test_credentials_open_the_index_and_its_files_and_are_told_to_nobody() -> None:
    pages = {"/simple/mpi4py/": UNHASHED, **FILES}
    with serving(Served(pages, password="user:sec ret")) as served:
        signed = served.url.replace("//", "//user:sec%20ret@")
        found = mpi4py(served.settings(indexes=(f"{signed}/simple",)))
        assert found == replace(expected(served), unhashed=f"{served.url}/simple")
        wrong = served.url.replace("//", "//user:guessed@")
        with pytest.raises(BuildError) as caught:
            mpi4py(served.settings(indexes=(f"{wrong}/simple",)))
        assert caught.value.id == "index.unreachable"
    told = " ".join(caught.value.problems[0].hints)
    assert "401" in told
    assert "guessed" not in told


def test_a_password_of_netrc_opens_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine localhost login user password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    pages = {"/simple/mpi4py/": PAGE, **FILES}
    with serving(Served(pages, password="user:secret")) as served:
        assert mpi4py(served.settings()) == expected(served)


def test_a_redirect_gets_the_credentials_of_its_own_host() -> None:
    with serving(Served({"/simple/mpi4py/": PAGE, **FILES}, password="b:2")) as other:
        target = other.url.replace("localhost", "127.0.0.1")
        received = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                received.append(self.headers.get("Authorization"))
                self.send_response(308)
                self.send_header("Location", target + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        with serving_by(Handler) as address:
            places = [address.replace("//", "//a:1@"), target.replace("//", "//b:2@")]
            indexes = tuple(f"{place}/simple" for place in places)
            found = mpi4py(PipSettings(indexes=indexes, retries=0, timeout=5))
        assert found.url == f"{target}/files/{FILE}"
        assert received == ["Basic " + b64encode(b"a:1").decode()]


def test_requests_go_through_the_proxy_but_for_hosts_without_one() -> None:
    host = "http://index.invalid"
    page = html(f'<a href="{host}/{FILE}#sha256={SHA256}">{FILE}</a>')
    pages = {f"{host}/simple/mpi4py/": page, f"{host}/{FILE}": FILES[f"/files/{FILE}"]}
    with (
        serving(Served(pages)) as served,
        serving(Served({"/simple/mpi4py/": PAGE, **FILES})) as near,
    ):
        settings = served.settings(indexes=(f"{host}/simple",), proxy=served.url)
        assert mpi4py(settings).url == f"{host}/{FILE}"
        assert mpi4py(near.settings(proxy=served.url)) == expected(near)
        assert served.asked == [f"GET {host}/simple/mpi4py/", f"HEAD {host}/{FILE}"]


def test_what_the_index_lacks_is_told_from_an_index_that_is_silent() -> None:
    with serving(Served({"/simple/mpi4py/": PAGE, **FILES})) as served:
        with pytest.raises(Refusal, match=r"sources of mpi4py 3\.1\.6"):
            mpi4py(served.settings(), "3.1.6")
        with pytest.raises(BuildError) as raised:
            Index(served.settings(), {}).sdist("psutil", "psutil", "7.0", exact=False)
        assert raised.value.id == "index.no-sources"
        dead = served.settings(indexes=("http://localhost:9/simple", f"{served.url}/simple"))
        # One place that is silent is no matter while another has the file.
        assert mpi4py(dead) == expected(served)
        with pytest.raises(BuildError) as caught:
            mpi4py(dead, "3.1.6")
        assert caught.value.id == "index.unreachable"
    assert "http://localhost:9/simple: " in caught.value.problems[0].hints[-1]


@pytest.mark.parametrize(
    "page",
    [
        ("application/octet-stream", b"??"),
        (JSON, b"{"),
        (JSON, b'{"meta": {"api-version": "2.0"}, "name": "mpi4py", "files": []}'),
        (JSON, b'{"meta": {"api-version": "1.1"}, "files": 7}'),
    ],
)
def test_what_is_no_page_of_an_index_is_told_as_a_place_that_does_not_serve(
    page: tuple[str, bytes],
) -> None:
    with serving(Served({"/simple/mpi4py/": page})) as served:
        with pytest.raises(BuildError) as caught:
            mpi4py(served.settings())
        assert caught.value.id == "index.unreachable"
    assert f"{served.url}/simple: " in caught.value.problems[0].hints[-1]


def test_sizes_are_asked_of_the_server_and_missing_ones_left_out() -> None:
    with serving(Served(dict(FILES))) as served:
        urls = [f"{served.url}/files/{FILE}", f"{served.url}/files/gone.whl"]
        assert Index(served.settings(), {}).sizes(urls) == {urls[0]: len(CONTENT)}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with key and certificate of a localhost that nobody knows."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program openssl")
    folder = tmp_path_factory.mktemp("tls")
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key -out cert"
    subprocess.run(
        [openssl, *words.split(), "-addext", "subjectAltName=DNS:localhost"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return both


def test_certificates_are_checked_as_pip_is_told(certificate: Path) -> None:
    pages = {"/simple/mpi4py/": PAGE, **FILES}
    known = str(certificate.parent / "cert")
    with serving(Served(pages), certificate) as served:
        with pytest.raises(BuildError) as caught:
            mpi4py(served.settings())
        assert caught.value.id == "index.unreachable"
        assert "certificate verify failed" in caught.value.problems[0].hints[-1].lower()
        assert mpi4py(served.settings(cert=known)) == expected(served)
        assert mpi4py(served.settings(trusted_hosts=("localhost",))) == expected(served)
        with pytest.raises(BuildError) as raised:
            mpi4py(served.settings(cert="/nowhere/ca.pem"))
        assert raised.value.id == "index.unreachable"
        by_variable = Index(served.settings(), {"SSL_CERT_FILE": known})
        assert by_variable.sdist("mpi4py", "mpi4py", "4.0.3", exact=False) == expected(served)


@pytest.mark.parametrize("kind", ["silent", "slow", "short"])
def test_an_index_that_does_not_send_its_page_is_given_up_and_named(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if kind == "silent":
                over.wait(20)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            with contextlib.suppress(OSError):
                while kind == "slow" and not over.wait(0.05):
                    self.wfile.write(b" ")

        def log_message(self, *arguments: object) -> None:
            pass

    monkeypatch.setattr(connection, "PAGE_SECONDS", 0.3)
    with serving_by(Handler) as address:
        settings = PipSettings(indexes=(f"{address}/simple",), retries=0, timeout=0.3)
        with pytest.raises(BuildError) as caught:
            mpi4py(settings)
        assert caught.value.id == "index.unreachable"
        over.set()
    said = {"silent": "timed out", "slow": "did not arrive within 0.3 s", "short": "Incomplete"}
    assert said[kind] in caught.value.problems[0].hints[-1]
    assert address in caught.value.problems[0].hints[-1]

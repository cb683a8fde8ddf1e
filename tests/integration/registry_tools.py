"""Real registries of images on this machine: docker-registry, each in a process of its own."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from integration_tools import run

from envbuilder.images.oci import OciConfig, pack_layout

USER, PASSWORD = "reader", "hunter2-secret"
# bcrypt of that password, as htpasswd -B writes it.
_HTPASSWD = f"{USER}:$2y$05$abcdefghijklmnopqrstuuco6HW5qgMYWmvqwt2HG533btIvodevS\n"
_SECONDS = 20.0


def needed(*programs: str) -> None:
    """Skip a test for want of a program, by its name."""
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not on PATH: ci/components.sh FOLDER long brings it")


@contextlib.contextmanager
def registry(
    folder: Path, *, store: Path | None = None, closed: bool = False, of: str | None = None
) -> Iterator[str]:
    """Run a registry; give where it listens, such as 127.0.0.1:40123.

    *store*: with the images that are there. *closed*: it wants to know who asks. *of*: the one that
    it is a proxy of.
    """
    folder.mkdir(parents=True)
    settings: dict[str, object] = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(store or folder / "store")}},
        "http": {"addr": "127.0.0.1:0"},
    }
    if closed:
        (folder / "htpasswd").write_text(_HTPASSWD)
        settings["auth"] = {"htpasswd": {"realm": "lab", "path": str(folder / "htpasswd")}}
    if of:
        settings["proxy"] = {"remoteurl": f"http://{of}"}
    file, log = folder / "config.yml", folder / "log"
    # YAML too.
    file.write_text(json.dumps(settings))
    with log.open("wb") as stream:
        running = subprocess.Popen(
            ["docker-registry", "serve", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
    try:
        yield _listens(running, log)
    finally:
        running.terminate()
        running.wait()


def _listens(running: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and running.poll() is None:
        found = re.search(r"listening on ([0-9.:]+)", log.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    pytest.fail(f"docker-registry does not listen:\n{log.read_text()}")


def push(
    root: Path,
    name: str,
    scratch: Path,
    *,
    arch: str = "x86_64",
    variables: tuple[str, ...] = ("BASE_SAYS=hello",),
) -> str:
    """Push a system as an image that sets variables; return the digest of its manifest."""
    digest = pack_layout(root, scratch, OciConfig(arch, "base", variables, {}))
    words = ["skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", "--preserve-digests"]
    done = run([*words, f"oci:{scratch}:base", f"docker://{name}"])
    assert done.code == 0, done.text
    return digest


class _Proxy(http.server.BaseHTTPRequestHandler):
    """A proxy that sends every request to one place, whatever the host that is asked for.

    ``lie``: what it puts in place of what, in every answer.
    """

    place: str
    lie: tuple[bytes, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.asked.append(self.path)
        connection = http.client.HTTPConnection(self.place)
        connection.putrequest(self.command, url._replace(scheme="", netloc="").geturl())
        # One by one: there are several of a name, such as Accept.
        for name, value in self.headers.items():
            if name != "Host":
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read().replace(*self.lie))

    do_HEAD = do_GET  # noqa: N815 - as the standard library names it

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def http_proxy(
    place: str, lie: tuple[bytes, bytes] = (b"", b"")
) -> Iterator[tuple[str, list[str]]]:
    """Run a proxy; give its URL, and the list of what it was asked."""
    handler = type("Proxy", (_Proxy,), {"place": place, "lie": lie, "asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()

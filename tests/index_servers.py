"""Package indexes on this machine: real servers, with pages and files as indexes have them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from .serving import serving_by


def wheel(name: str, version: str, *needs: str, text: str = "") -> tuple[str, bytes]:
    """Return file name and content of a wheel of one module."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
    tags = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
        archive.writestr(f"{name.replace('-', '_')}.py", text)
    return f"{stem}-py3-none-any.whl", stream.getvalue()


@dataclass
class IndexServer:
    """An index. ``files``: by project, its files by name, each with its content.

    ``query``: of the link to a file of a project, at each load of its page. ``page``: what answers
    for a page in the place of the usual one; it gets the request, which tells of the asking
    program, and returns HTML, None for 404, or a URL to go to. ``closed``: projects that answer
    nobody. ``hashed``: whether links have a sha256. ``asked``: paths of all requests.
    """

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    query: Callable[[str], str] = lambda _: ""
    page: Callable[[BaseHTTPRequestHandler, str], str | None] | None = None
    closed: set[str] = field(default_factory=set)
    hashed: bool = True
    url: str = ""
    asked: list[str] = field(default_factory=list)
    loads: int = 0
    _valid: dict[str, set[str]] = field(default_factory=dict)

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"

    def put(self, name: str, version: str, *needs: str, text: str = "") -> str:
        """Offer a wheel; return its file's name."""
        filename, content = wheel(name, version, *needs, text=text)
        self.files.setdefault(name, {})[filename] = content
        return filename

    def expire(self, *names: str) -> None:
        """Let no link to files of these projects count that was given out so far."""
        self._valid.update({name: set() for name in names})

    def html(self, name: str) -> str:
        """Return the page of a project; each load has links of its own."""
        self.loads += 1
        query = self.query(name)
        self._valid.setdefault(name, set()).add(query)
        lines = []
        for filename, content in self.files[name].items():
            digest = f"#sha256={hashlib.sha256(content).hexdigest()}" if self.hashed else ""
            mark = "?" if query else ""
            address = f"../../files/{name}/{filename}{mark}{query}{digest}".replace("&", "&amp;")
            lines.append(f'<a href="{address}">{filename}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(lines)}</body></html>"

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body for a request."""
        self.asked.append(request.path)
        parts = urlsplit(request.path)
        _, kind, name, *rest = (*parts.path.split("/"), "", "")
        if name in self.closed:
            return 401, {}, b""
        if kind == "files" and rest[0] in self.files.get(name, {}):
            if parts.query not in self._valid.get(name, {parts.query}):
                return 403, {}, b"the link has expired"
            return 200, {"Content-Type": "application/zip"}, self.files[name][rest[0]]
        if kind != "simple":
            return 404, {}, b""
        if self.page:
            text = self.page(request, name)
        else:
            text = self.html(name) if name in self.files else None
        if text is None:
            return 404, {}, b""
        if "<" not in text:
            return 302, {"Location": text}, b""
        return 200, {"Content-Type": "text/html"}, text.encode()


@contextmanager
def index_server(**changes: object) -> Iterator[IndexServer]:
    """Serve an index until the end."""
    served = IndexServer(**changes)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = served.answer(self)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *arguments: object) -> None:
            pass

    with serving_by(Handler) as address:
        served.url = address
        yield served

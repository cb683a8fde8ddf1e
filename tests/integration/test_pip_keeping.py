"""A wheel that pip must download to say what it would install is not downloaded again."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from envbuilder.locking import pip_report
from tests.serving import serving_by

pytestmark = pytest.mark.integration

NAME = "small-1.0-py3-none-any.whl"
PROGRAM = Path(pip_report.__file__).with_name("run_pip.py")


def wheel() -> bytes:
    info = "small-1.0.dist-info"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("small.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", f"small.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n")
    return made.getvalue()


@contextmanager
def index(data: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve an index without metadata that lets nothing be cached; yield it and what is asked."""
    digest = hashlib.sha256(data).hexdigest()
    page = f'<a href="/files/{NAME}#sha256={digest}">{NAME}</a>'.encode()
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = data if self.path.endswith(".whl") else page
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if body is page else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with serving_by(Handler) as address:
        yield address, asked


def run(*words: str | Path) -> None:
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, timeout=120)


@pytest.mark.long
def test_what_pip_downloaded_to_answer_is_there_to_be_fetched(tmp_path: Path) -> None:
    data, folder, report = wheel(), tmp_path / "downloads", tmp_path / "report.json"
    dry = ["install", "--isolated", "--ignore-installed", "--dry-run", "--report", report, "small"]
    with index(data) as (address, asked):
        run(PROGRAM, "keep", folder, *dry, "--index-url", f"{address}/simple")
        (entry,) = json.loads(report.read_text(encoding="utf-8"))["install"]
        assert entry["download_info"]["url"] == f"{address}/files/{NAME}"
        assert [each.name for each in folder.iterdir()] == [NAME]
        assert (folder / NAME).read_bytes() == data
        wanted = tmp_path / "fetch.txt"
        wanted.write_text(
            f"{address}/files/{NAME} --hash=sha256:{hashlib.sha256(data).hexdigest()}\n"
        )
        fetch = ["download", "--isolated", "--no-deps", "--require-hashes", "-d", folder]
        run("-m", "pip", *fetch, "-r", wanted)
        assert asked.count(f"/files/{NAME}") == 1


def test_a_pip_that_removes_its_folders_otherwise_answers_all_the_same(tmp_path: Path) -> None:
    fake = tmp_path / "fake" / "pip"
    fake.mkdir(parents=True)
    (fake / "__init__.py").touch()
    (fake / "__main__.py").write_text("import sys; print(sys.argv[1:])\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, PROGRAM, "keep", tmp_path / "downloads", "install", "small"],
        env={"PYTHONPATH": str(fake.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['install', 'small']\n"
    assert not (tmp_path / "downloads").exists()

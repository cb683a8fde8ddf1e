"""Dockerfiles built by a real buildah or podman, on images in layouts."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from envbuilder.errors import BuildError
from envbuilder.images.container_engine import ContainerEngine, context_paths, find_engine
from envbuilder.images.reference import BuildFile
from envbuilder.machine.host import LocalMachine

TOP = """\
ARG NAME=none
FROM scratch
COPY top /top
ENV A=1
"""
NEXT = """\
ARG NAME=none
FROM lab/${NAME}:1 AS one
ARG VALUE
ENV B=$VALUE C=$A
SHELL ["/bin/bash", "-c"]
USER 12
FROM one
COPY top /again
"""


@pytest.fixture
def host(tmp_path: Path) -> LocalMachine:
    storage = tmp_path / "storage.conf"
    folders = f'graphroot = "{tmp_path}/store"\nrunroot = "{tmp_path}/run"\n'
    storage.write_text(f'[storage]\ndriver = "vfs"\n{folders}')
    return LocalMachine({**os.environ, "CONTAINERS_STORAGE_CONF": str(storage)})


def config(layout: Path) -> dict[str, Any]:
    def blob(described: dict[str, Any]) -> dict[str, Any]:
        return json.loads((layout / "blobs/sha256" / described["digest"][7:]).read_text())

    index = json.loads((layout / "index.json").read_text())
    manifest = blob(index["manifests"][0])
    last = manifest["layers"][-1]["digest"][7:]
    with tarfile.open(layout / "blobs/sha256" / last) as layer:
        return {**blob(manifest["config"])["config"], "files": layer.getnames()}


@pytest.mark.parametrize("name", ["buildah", "podman"])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_engine_builds_on_a_layout(name: str, host: LocalMachine, tmp_path: Path) -> None:
    program = host.which(name)
    if program is None:
        pytest.skip(f"needs {name}")
    (tmp_path / "context").mkdir()
    (tmp_path / "context/top").touch()
    log, path = tmp_path / "log", tmp_path / "Dockerfile"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).symlink_to(program)
    engine, reason = find_engine(LocalMachine({**host.environ, "PATH": f"{tmp_path}/bin"}), TOP)
    assert engine
    assert reason == ""
    assert engine.name.startswith(f"{name} ")
    engine = ContainerEngine(program, engine.name, host)
    path.write_text(TOP)
    file = BuildFile("containerfile", path, tmp_path / "context", (("VALUE", "it's"),))
    engine.build(file, {}, tmp_path / "top", log, "x86_64")
    assert config(tmp_path / "top")["files"] == ["top"]
    path.write_text(NEXT)
    arguments = (("VALUE", "it's"), ("NAME", "debian"))
    file = BuildFile("containerfile", path, tmp_path / "context", arguments)
    parents = dict.fromkeys(("lab/debian:1", "lab/${NAME}:1"), tmp_path / "top")
    engine.build(file, parents, tmp_path / "next", log, "x86_64")
    built = config(tmp_path / "next")
    assert {"A=1", "B=it's", "C=1"} < set(built["Env"])
    assert built["User"] == "12"
    assert "again" in built["files"]
    path.write_text("FROM scratch\nCOPY gone /x\n")
    with pytest.raises(BuildError) as refused:
        engine.build(file, {}, tmp_path / "none", log, "x86_64")
    assert refused.value.id == "base.engine-failed"
    assert "gone" in str(refused.value)
    assert not (tmp_path / "none").exists()


STUB = """\
#!/bin/sh
case "$*" in
    --version) echo "{0} version 9.8.7" ;;
    info) {1} ;;
    *) echo '{{"host": {{"buildahVersion": "{2}"}}}}' ;;
esac
"""
DOCUMENT = "FROM a\nRUN <<E\nx\nE\n"


def stubs(folder: Path, **programs: str) -> LocalMachine:
    folder.mkdir(exist_ok=True)
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return LocalMachine({"PATH": str(folder)})


def test_an_engine_that_does_not_work_is_not_used(tmp_path: Path) -> None:
    assert find_engine(stubs(tmp_path / "empty"), "FROM a\n") == (None, "")
    broken = STUB.format("buildah", "echo no subuids >&2; exit 1", "")
    host = stubs(tmp_path / "one", buildah=broken)
    engine, reason = find_engine(host, "FROM a\n")
    assert engine is None
    assert "no subuids" in reason
    podman = STUB.format("podman", "true", "1.28.0")
    host = stubs(tmp_path / "two", buildah=broken, podman=podman)
    engine, _ = find_engine(host, "FROM a\n")
    assert engine == ContainerEngine(str(tmp_path / "two/podman"), "podman 9.8.7", host)


@pytest.mark.parametrize(("release", "reads"), [("1.34.9", False), ("1.35.0", True)])
def test_here_documents_need_a_release(tmp_path: Path, release: str, reads: bool) -> None:
    host = stubs(tmp_path / "bin", podman=STUB.format("podman", "true", release))
    assert find_engine(host, "FROM a\nRUN cat <<<x\n")[0]
    engine, reason = find_engine(host, DOCUMENT)
    assert (engine is not None) is reads
    assert ("1.35" in reason) is not reads


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("COPY a/b c /x/", ["a/b", "c"]),
        ("COPY a/*.py ${N}/x /y/", ["a", "."]),
        ('ADD ["c", "http://host/x", "/y/"]', ["c"]),
        ("COPY --from=one a /x", []),
        ("COPY <<E gone /x/\nE", []),
        ("RUN --mount=target=/x y", ["."]),
        ("RUN cat a", []),
    ],
)
def test_files_of_the_context_that_may_be_copied(
    tmp_path: Path, line: str, paths: list[str]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b").touch()
    (tmp_path / "c").touch()
    (tmp_path / ".dockerignore").touch()
    file = BuildFile("containerfile", tmp_path / "Dockerfile")
    expected = [tmp_path / path for path in [*paths, ".dockerignore"]]
    assert list(context_paths(file, f"FROM a\n{line}\n")) == expected

"""``--base`` with a user's Dockerfile, definition file or SIF file, by real Apptainer and buildah.

A Debian and a registry on this machine are what they begin with. It takes minutes, so it runs when
asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run
from registry_tools import needed, push, registry

pytestmark = [pytest.mark.long]

DOCKERFILE = """\
ARG RELEASE=12
ARG TOP=ours
FROM {place}/lab/debian:${{RELEASE}} AS base
LABEL maintainer="the lab"
ARG TOP
ARG LEVEL
ARG BASE_SAYS=nothing
ENV OURS="two words" \\
    PATH=/opt/$TOP/bin:$PATH
# What a RUN sets ends with it.
RUN gone=1; echo "first $OURS, ${{LEVEL:-no level}}, $BASE_SAYS" >/opt/order; chmod a+w /opt/order
COPY tools/ /opt/ours/bin/
RUN [ -z "$gone" ] && cd /opt && own-tool >>order
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN --mount=type=cache,target=/opt/cached words=(a b) && echo "${{words[1]}}" >>/opt/order
RUN useradd --create-home --groups games worker
COPY --chown=worker:games tools/own-tool /opt/tool
USER worker
RUN echo "$(id -un) $(id -gn) $(id -G | wc -w) $HOME" >>/opt/order
USER worker:games
RUN echo "$(id -gn) $(id -G | wc -w) $(stat -c %U:%G:%a /opt/tool /opt/ours/bin)" >>/opt/order
USER root
WORKDIR "/opt/$TOP"
RUN ["/usr/bin/touch", "listed"]
RUN pwd >>/opt/order
CMD ["bash"]
"""
ORDER = """\
first two words, {}, hello
own tool 1
b
worker worker 2 /home/worker
games 1 worker:games:755
root:root:755
/opt/ours
"""
DOCUMENTS = """\
FROM {place}/lab/debian:12
ENV OURS=1
RUN <<EOF
# {{{{ not a template }}}}
echo "it's $OURS" >/opt/order
EOF
RUN <<'END' >>/opt/order cat
%post $OURS
END
RUN <<EOF
#!/usr/bin/python3
open("/opt/order", "a").write("by Python\\n")
EOF
COPY <<-EOF <<"PLAIN" /opt/
	%files ${{OURS}} "quoted"
EOF
$OURS
PLAIN
"""
TOOL = "#!/bin/sh\necho 'own tool {}'\n"
DEFINITION = """\
Bootstrap: localimage
From: {base}

%files
    tools/own-tool /usr/local/bin/own-tool
%post
    own-tool >/opt/order
%environment
    export OURS="by definition"
"""


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("apptainer", "skopeo", "docker-registry")
    return debian_base(tmp_path_factory)


@pytest.fixture(scope="module")
def place(debian: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a registry with that Debian is."""
    folder = tmp_path_factory.mktemp("registry")
    with registry(folder / "run") as at:
        push(debian, f"{at}/lab/debian:12", folder / "layout")
        yield at


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class Lab:
    """A folder with files to build bases from, and what builds them; all tests share its cache."""

    def __init__(self, envbuild: Envbuild, folder: Path, cache: Path) -> None:
        self.envbuild, self.folder, self.cache = envbuild, folder, cache
        self.write("tools/own-tool", TOOL.format(1)).chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, base: Path, *options: str, engine: bool = False) -> Done:
        """Ask for a form that needs a lock, so that all ends once the base is there and read.

        *engine*: whether buildah works; without, one is on PATH that does not.
        """
        env = {"XDG_CACHE_HOME": str(self.cache), "STORAGE_DRIVER": "vfs"}
        if not engine:
            broken = self.write(
                "broken/buildah", "#!/bin/sh\necho no user namespaces >&2; exit 1\n"
            )
            broken.chmod(0o755)
            env["PATH"] = f"{broken.parent}:{os.environ['PATH']}"
        words = ("render", "allreduce", "--as", "def", "--base", base, *options)
        return self.envbuild(*words, env=env, timeout=SECONDS)

    def kept(self) -> set[Path]:
        return {each for each in (self.cache / "envbuild/bases").glob("*") if each.is_dir()}

    def made(self, base: Path, *options: str, engine: bool = False) -> Path:
        """Return the folder that a base was built in, just now."""
        before = self.kept()
        done = self.read(base, *options, engine=engine)
        assert done.code == 2, done.text
        assert "needs a lock" in done.err
        assert f"building {base.name} " in done.err
        self.messages = done.err
        [new] = {each for each in self.kept() - before if "lab" not in each.name and _own(each)}
        return new / "root"


def _own(kept: Path) -> bool:
    """Whether it was built, and is not what it begins with."""
    return (kept / "root/opt/order").exists()


@pytest.fixture
def lab(envbuild: Envbuild, tmp_path: Path, cache: Path) -> Lab:
    return Lab(envbuild, tmp_path / "lab", cache)


def inside(root: Path, script: str) -> list[str]:
    done = run(["apptainer", "exec", str(root), "sh", "-c", script], timeout=SECONDS)
    assert done.code == 0, done.text
    return done.out.splitlines()


@pytest.mark.parametrize("engine", [False, True])
def test_a_dockerfile_is_built_in_its_order_once(lab: Lab, place: str, engine: bool) -> None:
    if engine:
        needed("buildah")
    file = lab.write("docker/Dockerfile", DOCKERFILE.format(place=place))
    options = ("--context", str(lab.folder), "--build-arg", "LEVEL=2", "--build-arg", "NONE=1")
    root = lab.made(file, *options, engine=engine)
    assert (root / "opt/order").read_text() == ORDER.format(2)
    assert (root / "opt/ours/listed").exists()
    assert ("Dockerfile (buildah 1." if engine else "Dockerfile (apptainer)") in lab.messages
    assert ("buildah is not used" in lab.messages) is not engine
    assert re.search(r"warning: .*\bNONE\b", lab.messages)
    assert ("Dockerfile:15: RUN --mount" in lab.messages) is not engine
    # Its variables and those of what it begins with, at every start.
    said = inside(root, 'echo "$OURS, $BASE_SAYS, $LEVEL"; own-tool')
    assert said == ["two words, hello, ", "own tool 1"]
    assert not [each.name for each in root.iterdir() if each.name.startswith(".envbuild")]
    again = lab.read(file, *options, engine=engine)
    assert "building" not in again.err
    # Values and copied files are part of what it is known by.
    root = lab.made(file, "--context", str(lab.folder), engine=engine)
    assert (root / "opt/order").read_text() == ORDER.format("no level")
    lab.write("tools/own-tool", TOOL.format(2))
    root = lab.made(file, "--context", str(lab.folder), engine=engine)
    assert (root / "opt/order").read_text().splitlines()[1] == "own tool 2"


def test_here_documents_are_built_where_buildah_cannot(lab: Lab, place: str) -> None:
    file = lab.write("Dockerfile", DOCUMENTS.format(place=place))
    root = lab.made(file, engine=True)
    assert "(apptainer)" in lab.messages or "(buildah 1." in lab.messages
    assert (root / "opt/order").read_text() == "it's 1\n%post $OURS\nby Python\n"
    assert (root / "opt/EOF").read_text() == '%files 1 "quoted"\n'
    assert (root / "opt/PLAIN").read_text() == "$OURS\n"


def test_a_step_that_fails_is_shown_and_leaves_no_base(lab: Lab, place: str) -> None:
    file = lab.write("Dockerfile", f"FROM {place}/lab/debian:12\nRUN echo how; false\nRUN true\n")
    before = lab.kept()
    done = lab.read(file)
    assert done.code == 5, done.text
    assert "how" in done.err
    assert {each for each in lab.kept() if each not in before and _own(each)} == set()
    assert not list((lab.cache / "envbuild/bases").glob(".*.unfinished"))


def test_a_definition_file_and_a_sif_file(lab: Lab, debian: Path, tmp_path: Path) -> None:
    file = lab.write("ours.def", DEFINITION.format(base=debian))
    root = lab.made(file)
    assert (root / "opt/order").read_text() == "own tool 1\n"
    assert inside(root, "echo $OURS; own-tool") == ["by definition", "own tool 1"]

    image = tmp_path / "ours.sif"
    done = run(
        ["apptainer", "build", str(image), str(root)],
        env={"APPTAINER_MKSQUASHFS_ARGS": QUICK["APPTAINER_MKSQUASHFS_ARGS"]},
        timeout=SECONDS,
    )
    assert done.code == 0, done.text
    before = lab.kept()
    done = lab.read(image)
    assert "needs a lock" in done.err, done.text
    [new] = lab.kept() - before
    assert inside(new / "root", "echo $OURS; own-tool") == ["by definition", "own tool 1"]


def test_an_image_of_a_dockerfile_has_its_variables(
    lab: Lab, envbuild: Envbuild, place: str, tmp_path: Path
) -> None:
    file = lab.write("Dockerfile", DOCKERFILE.format(place=place))
    env = {**QUICK, "XDG_CACHE_HOME": str(lab.cache)}
    env["STORAGE_DRIVER"] = "vfs"
    words = ("image", "allreduce", "--base", file, "--output", tmp_path / "images")
    done = envbuild(*words, env=env, timeout=SECONDS)
    assert done.code == 0, done.text
    assert "proved: numpy over mpi: several ranks on x86_64; " in done.out
    [image] = (tmp_path / "images").glob("*.sif")
    said = inside(image, 'echo "$OURS, $BASE_SAYS"; own-tool; mpiexec -n 2 python -c "print(7)"')
    assert said == ["two words, hello", "own tool 1", "7", "7"]
    lock = next((tmp_path / "images").glob("*.evidence/lock.json")).read_text()
    assert re.search(r'"name": ?"Dockerfile \((buildah|podman) [0-9.]+\)"', lock)
    shutil.rmtree(tmp_path / "images")

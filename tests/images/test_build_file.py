"""Dockerfiles and definition files as bases: what they do, and what is refused, by line."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.errors import DocumentError, EnvbuildError, UsageError
from envbuilder.images.built import BuildSteps, read_build_file
from envbuilder.images.reference import BuildFile, ImageFile, parse_base

DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG RELEASE=12
FROM debian:${RELEASE} AS base
LABEL maintainer="we"
ENV LANG=C.UTF-8 TOP="/opt/our tools"
ARG JOBS=2
RUN echo one && \\
    # between lines
    echo 'two  blanks' >/one
COPY tool.sh conf/ /opt/own/
WORKDIR /opt/own
RUN x=1; echo $x "$TOP"
COPY tool.sh /usr/local/bin/tool
CMD ["bash"]
"""


def dockerfile(folder: Path, text: str) -> BuildSteps:
    path = folder / "Dockerfile"
    path.write_text(text, encoding="utf-8")
    found = parse_base("Dockerfile", folder)
    assert found == BuildFile("containerfile", path)
    return read_build_file(BuildFile("containerfile", path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/a").touch()
    (tmp_path / "tool.sh").touch()
    return tmp_path


def test_a_dockerfile_runs_in_its_order(folder: Path) -> None:
    steps = dockerfile(folder, DOCKERFILE)
    assert steps.parent == "docker://debian:12"
    assert steps.staged == (folder / "tool.sh", folder / "conf", folder / "tool.sh")
    assert steps.sections.splitlines() == [
        'export LANG=C.UTF-8 TOP="/opt/our tools"'.replace('"', "'"),
        "envbuild_arg JOBS 2",
        """envbuild_run /bin/sh -c 'echo one &&     echo '"'"'two  blanks'"'"' >/one'""",
        "chown -hR 0:0 /.envbuild-files/0",
        "[ -d /opt/own/ ] || { mkdir -p /opt/own/; chown 0:0 /opt/own/; }",
        "cp -a /.envbuild-files/0 /opt/own/tool.sh",
        "chown -hR 0:0 /.envbuild-files/1",
        "[ -d /opt/own/ ] || { mkdir -p /opt/own/; chown 0:0 /opt/own/; }",
        "find /.envbuild-files/1 -mindepth 1 -maxdepth 1 -exec cp -a -t /opt/own/ {} +",
        "mkdir -p /opt/own",
        "cd /opt/own",
        """envbuild_run /bin/sh -c 'x=1; echo $x "$TOP"'""",
        "chown -hR 0:0 /.envbuild-files/2",
        'mkdir -p "$(dirname /usr/local/bin/tool)"',
        "if [ -d /usr/local/bin/tool ]; then cp -a /.envbuild-files/2 /usr/local/bin/tool/tool.sh; "
        "else cp -a /.envbuild-files/2 /usr/local/bin/tool; fi",
        "printf '%s=%s\\n' LANG \"${LANG}\" >>/.envbuild-variables",
        "printf '%s=%s\\n' TOP \"${TOP}\" >>/.envbuild-variables",
        "rm -rf /.envbuild-files /.envbuild-script",
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem_id"),
    [
        ("FROM a\nFROM b\n", 2, "base.several-stages"),
        ("FROM a AS b\nRUN x\nFROM a AS c\n", 3, "base.several-stages"),
        ("FROM a\nCOPY --from=b /x /x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nCOPY --link tool.sh /x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nCOPY /x\n", 2, "base.malformed-line"),
        ("FROM a\nRUN --mount=type=cache,from=b,target=/x x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN --mount=target=/x x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN --mount=type=secret,id=b x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN --mount=type=ssh x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN --mount=type=tmpfs,target=/x x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN --network=none x\n", 2, "base.unsupported-instruction"),
        ("FROM a\nRUN <<E\nx\n", 2, "base.malformed-line"),
        ("FROM a\nCOPY <<E /x\n\\$\nE\n", 2, "base.unsupported-instruction"),
        ("FROM a\nCOPY <<../E /x\n../E\n", 2, "base.malformed-line"),
        ("FROM a\nENV --x=1\n", 2, "base.malformed-variable"),
        ("FROM a\n\nONBUILD RUN x\n", 3, "base.unsupported-instruction"),
        ("FROM a\n\nUSER\n", 3, "base.malformed-line"),
        ("FROM a\nUSER $(id)\n", 2, "base.malformed-line"),
        ("FROM a\nSHELL /bin/bash -c\n", 2, "base.malformed-line"),
        ("FROM scratch\n", 1, "base.unsupported-instruction"),
        ("FROM a\nADD https://x/y /y\n", 2, "base.unsupported-instruction"),
        ("FROM a\nADD x.tar.gz /y\n", 2, "base.unsupported-instruction"),
        ("FROM a\nCOPY tool.* /y\n", 2, "base.unsupported-instruction"),
        ("FROM a\nCOPY tool.sh ${X%y}/y\n", 2, "base.malformed-line"),
        ("FROM a\nCOPY ../x /y\n", 2, "base.source-outside"),
        ("FROM a\nCOPY gone /y\n", 2, "base.source-missing"),
        ("FROM a\nCOPY tool.sh conf /y\n", 2, "base.target-not-folder"),
        ("FROM a\nCOPY 'tool.sh /y\n", 2, "base.malformed-line"),
        ('FROM a\nENV A=b"c d"e\n', 2, "base.malformed-line"),
        ("FROM a\nENV A=$(id)\n", 2, "base.malformed-line"),
        ("FROM a\nENV A-B=1\n", 2, "base.malformed-variable"),
        ("FROM a\nARG B-C\n", 2, "base.malformed-variable"),
        ("FROM a\nARG A=1 B=$A\n", 2, "base.unsupported-instruction"),
        ("FROM a\nENV A= B=1\n", 2, "base.malformed-line"),
        ("ARG B=1\nFROM $A\n", 2, "base.undefined-variable"),
        ("ARG B=1\nRUN x\n", 2, "base.no-parent"),
        ("ARG B=1\n", 1, "base.no-parent"),
        ("FROM --platform=x a\n", 1, "base.unsupported-instruction"),
        ("# escape=`\nFROM a\n", 1, "base.unsupported-instruction"),
    ],
)
def test_what_a_dockerfile_cannot_say_is_refused_by_line(
    folder: Path, text: str, line: int, problem_id: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        dockerfile(folder, text)
    [problem] = refused.value.problems
    assert problem.id == problem_id
    assert problem.message.startswith(f"{folder / 'Dockerfile'}:{line}: ")
    assert problem.hints


def test_every_refused_line_of_a_file_is_reported(folder: Path) -> None:
    text = "FROM a\nONBUILD RUN x\nRUN true\nCOPY gone also-gone /x/\nRUN --mount=type=ssh x\n"
    with pytest.raises(DocumentError) as refused:
        dockerfile(folder, text)
    lines = [problem.message.split(":")[1:3] for problem in refused.value.problems]
    assert lines == [
        ["2", " ONBUILD is not supported"],
        ["4", " COPY"],
        ["4", " COPY"],
        ["5", " RUN --mount=type=ssh is not supported"],
    ]
    with pytest.raises(DocumentError) as refused:
        definition(folder, "Bootstrap: yum\nFrom: a\n%setup\n%files\n  gone /x\n")
    assert [problem.id for problem in refused.value.problems] == [
        "base.unsupported-bootstrap",
        "base.unsupported-section",
        "base.source-missing",
    ]


DEFINITION = """\
# Ours
Bootstrap: docker
From: Lab/Debian:12   # as named

%files
    tool.sh /opt/tool.sh
    conf/* /opt/conf
    /etc/hostname /opt/host
%post
    echo hello
%environment
    export A=1
"""


def definition(folder: Path, text: str) -> BuildSteps:
    path = folder / "ours.def"
    path.write_text(text, encoding="utf-8")
    assert parse_base("ours.def", folder) == BuildFile("definition", path)
    return read_build_file(BuildFile("definition", path))


def test_the_sections_of_a_definition_file_stay_as_they_are(folder: Path) -> None:
    steps = definition(folder, DEFINITION)
    # Names of folders may have capitals.
    assert steps.parent == "docker://Lab/Debian:12"
    assert steps.sections == DEFINITION.partition("\n\n")[2]
    assert steps.files == (folder / "tool.sh", folder / "conf/a", Path("/etc/hostname"))
    local = definition(folder, "bootstrap: localimage\nfrom: ../Base Folder\n%post\n  true\n")
    assert local.parent == "../Base Folder"


@pytest.mark.parametrize(
    ("text", "line", "problem_id"),
    [
        ("Bootstrap: yum\nFrom: a\n", 1, "base.unsupported-bootstrap"),
        ("Bootstrap: docker\n", 1, "base.unsupported-bootstrap"),
        ("Bootstrap: docker\nFrom: a\nword\n", 3, "base.malformed-line"),
        ("Bootstrap: docker\nFrom: a\n%setup\n  rm -r /\n", 3, "base.unsupported-section"),
        (
            "Bootstrap: docker\nFrom: a\nStage: one\n%post\n  x\nBootstrap: docker\nFrom: b\n",
            6,
            "base.several-stages",
        ),
        ("Bootstrap: docker\nFrom: a\n%files from one\n  /x\n", 3, "base.several-stages"),
        ("Bootstrap: docker\nFrom: a\n%files\n  gone /x\n", 4, "base.source-missing"),
        ("Bootstrap: docker\nFrom: a\n%files\n  ../x /x\n", 4, "base.source-outside"),
    ],
)
def test_what_a_definition_file_cannot_say_is_refused_by_line(
    folder: Path, text: str, line: int, problem_id: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        definition(folder, text)
    assert refused.value.id == problem_id
    assert str(refused.value).startswith(f"{folder / 'ours.def'}:{line}: ")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\n# x\n  bootstrap : docker\n", BuildFile("definition", Path())),
        (b"#!y\r\n\r\nfrom a\r\n", BuildFile("containerfile", Path())),
        (b"ARG\tx=1\n", BuildFile("containerfile", Path())),
        (b"fromage", ImageFile("tar", Path())),
        (b"", ImageFile("tar", Path())),
        (b"#" * 2**20, ImageFile("tar", Path())),
        (b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0", ImageFile("sif", Path())),
    ],
)
def test_a_file_is_what_it_begins_with(
    tmp_path: Path, content: bytes, kind: BuildFile | ImageFile
) -> None:
    (tmp_path / "file").write_bytes(content)
    found = parse_base("file", tmp_path)
    assert isinstance(found, type(kind))
    assert found.kind == kind.kind


WORDS = st.sampled_from(
    [
        "FROM",
        "a",
        "ENV",
        "A=1",
        "'",
        '"',
        "\\",
        "\n",
        " ",
        "RUN",
        "COPY",
        "tool.sh",
        "/x",
        "#",
        "$A",
    ]
)


@given(text=st.lists(WORDS, max_size=14).map(" ".join))
def test_whatever_a_file_says_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "Dockerfile"
    path.write_text("FROM a\n" + text, encoding="utf-8")
    for file in (BuildFile("containerfile", path), BuildFile("definition", path)):
        with contextlib.suppress(EnvbuildError):
            assert read_build_file(file).parent


@pytest.mark.parametrize("kind", ["containerfile", "definition"])
def test_a_file_that_is_no_text_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "nul").write_bytes(b"FROM debian:12\nCOPY a\x00b /opt/\n")
    os.mkfifo(tmp_path / "fifo")
    for name in ("nul", "fifo"):
        with pytest.raises(UsageError) as refused:
            read_build_file(BuildFile(kind, tmp_path / name))  # type: ignore[arg-type]
        assert refused.value.id == "base.build-file-unreadable"

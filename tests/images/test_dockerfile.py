"""The instructions of a Dockerfile, with the values that Docker gives them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from envbuilder.errors import DocumentError
from envbuilder.images.build_steps import BuildSteps
from envbuilder.images.built import read_build_file
from envbuilder.images.dockerfile import bash_word, evaluate, read_instructions, read_pieces
from envbuilder.images.dockerfile_steps import (
    READERS,
    declared_arguments,
    prologue,
    read_parents,
)
from envbuilder.images.reference import BuildFile


def read(folder: Path, text: str, **arguments: str) -> BuildSteps:
    path = folder / "Dockerfile"
    path.write_text(text, encoding="utf-8")
    return read_build_file(BuildFile("containerfile", path, None, tuple(arguments.items())))


def commands(folder: Path, text: str, **arguments: str) -> list[str]:
    """Return the lines of a Dockerfile on a base, without the last ones, that every file has."""
    lines = read(folder, f"FROM a\n{text}\n", **arguments).sections.splitlines()
    return [line for line in lines[:-1] if not line.startswith("printf '%s=%s")]


def bash(lines: list[str], settings: Mapping[str, object] | None = None) -> list[str]:
    """Run lines by a real bash as a build does, and return what they print."""
    start = [line for line in prologue(settings or {}) if not line.startswith("mkdir")]
    done = subprocess.run(
        ["bash", "-c", "\n".join([*start, *lines])],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("ENV A=1 B=\"two words\" C='$A'", ["1", "two words", "$A"]),
        ("ENV A 1 2", ["1 2"]),
        ("ENV A=x=y B=\"\" C=''", ["x=y", "", ""]),
        ("ENV A=1\nENV A=2 B=$A C=${D:-none}", ["2", "1", "none"]),
        ("ENV A=http://x/#y B=`id` C=it\\'s", ["http://x/#y", "`id`", "it's"]),
        ("ENV\tA=${PATH:+there}/x", ["there/x"]),
        ("ARG A=1 B='x y' C=", ["1", "x y", ""]),
        ("ARG A=1\nARG A=2\nARG B=$A", ["2", "2"]),
        ("ENV A=env\nARG A=arg", ["env"]),
        ("ARG A", [""]),
    ],
)
def test_variables_have_the_values_of_docker(tmp_path: Path, text: str, values: list[str]) -> None:
    names = "ABC"[: len(values)]
    printed = [f'echo "${name}"' for name in names]
    assert bash([*commands(tmp_path, text), *printed]) == values


def test_each_instruction_has_one_reader() -> None:
    assert {name for name, reader in READERS.items() if reader == "spython"} == {"ARG", "ENV"}
    assert {name for name, reader in READERS.items() if reader == "envbuild"} == {
        *("ADD", "COPY", "FROM", "RUN", "SHELL", "USER", "WORKDIR")
    }


@pytest.mark.parametrize("name", sorted(name for name, reader in READERS.items() if not reader))
def test_instructions_about_a_start_change_nothing(tmp_path: Path, name: str) -> None:
    assert commands(tmp_path, f"{name} x") == []


@pytest.mark.parametrize(
    ("text", "arguments", "parent"),
    [
        # spython 0.3.14 reads these three as lab/tex, x:1B and x:${A:-12}.
        ("FROM lab/texas AS base", {}, "lab/texas"),
        ("ARG A=1\nARG AB=2\nFROM x:$AB", {}, "x:2"),
        ("FROM x:${A:-12}", {}, "x:12"),
        ("ARG A=1\nFROM x:${A}", {"A": "3"}, "x:3"),
        ("ARG A\nFROM x:${A}", {"A": "3"}, "x:3"),
        ("ARG A=1\nARG B=${A}-slim\nFROM x:$B", {}, "x:1-slim"),
    ],
)
def test_the_parent_has_the_values_of_arguments(
    tmp_path: Path, text: str, arguments: dict[str, str], parent: str
) -> None:
    assert read(tmp_path, text + "\n", **arguments).parent == f"docker://{parent}"


def test_an_argument_without_a_value_has_that_before_from(tmp_path: Path) -> None:
    text = "ARG A=1\nFROM a\nARG A\nARG B\nARG C=own\n"
    lines = read(tmp_path, text).sections.splitlines()
    assert lines[:2] == ["envbuild_arg A 1", "envbuild_arg C own"]
    lines = read(tmp_path, text, A="it's", B="b", C="").sections.splitlines()
    assert lines[:3] == ["envbuild_arg A 'it'\"'\"'s'", "envbuild_arg B b", "envbuild_arg C ''"]
    settings = {"Env": ["A=base", "PATH=/usr/bin:/bin"]}
    # A variable of the base has precedence over an ARG.
    printed = 'echo "${A:-unset} $B"'
    assert bash([*lines[:3], printed], settings) == ["unset b"]
    assert "http_proxy" in declared_arguments(text)
    assert {"A", "B", "C"} < declared_arguments(text)
    assert "D" not in declared_arguments(text)
    assert read(tmp_path, "FROM a\n", http_proxy="p:1").sections.startswith("export http_proxy=p:1")


def test_a_step_runs_in_the_shell_that_is_set(tmp_path: Path) -> None:
    text = (
        "RUN echo ${BASH_VERSION:-sh}\n"
        'SHELL ["/bin/bash", "-euo", "pipefail", "-c"]\n'
        'RUN words=(a b) && echo "${words[1]} $-"\n'
        "RUN cut -c 1 <<< xy\n"
        'RUN ["/bin/echo", "$HOME", "two  blanks"]\n'
    )
    sh, words, *rest = bash(commands(tmp_path, text))
    assert sh in ("sh", subprocess.getoutput("/bin/sh -c 'echo ${BASH_VERSION:-sh}'"))
    assert words.startswith("b ")
    assert "e" in words
    assert "u" in words
    assert rest == ["x", "$HOME two  blanks"]


def test_the_user_of_steps_is_changed_by_chroot(tmp_path: Path) -> None:
    lines = commands(tmp_path, 'ENV N=7\nUSER nobody\nRUN x\nUSER "12$N:$N"\nRUN y')
    assert [line for line in lines if "user" in line] == [
        "envbuild_user=nobody",
        'envbuild_user=12"${N}":"${N}"',
    ]
    fake = ['chroot() { echo "$HOME $*"; }', *lines]
    assert bash(fake) == [
        "/nonexistent --skip-chdir --userspec=nobody / /bin/sh -c x",
        "/ --skip-chdir --userspec=127:7 --groups=7 / /bin/sh -c y",
    ]
    settings = {"User": "4321", "Env": ["HOME=/base"]}
    assert bash(["HOME=/base", fake[0], *commands(tmp_path, "RUN x")], settings) == [
        "/base --skip-chdir --userspec=4321:0 --groups=0 / /bin/sh -c x"
    ]


def test_a_cache_mount_has_no_effect_and_is_reported(tmp_path: Path) -> None:
    text = "FROM a\n\nRUN --mount=type=cache,target=/c --mount=type=cache,dst=/d echo 1\n"
    steps = read(tmp_path, text)
    assert [note.split(" has ")[0] for note in steps.notes] == [
        "Dockerfile:3: RUN --mount=type=cache,target=/c",
        "Dockerfile:3: RUN --mount=type=cache,dst=/d",
    ]
    assert steps.sections.splitlines()[0] == "envbuild_run /bin/sh -c 'echo 1'"


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("RUN <<EOF\n# no comment\na \\\nEOF", [("EOF", "# no comment\na \\\n", True)]),
        ("RUN <<-'E F' cat\n\tx\n\tE F", [("E F", "x\n", False)]),
        ('COPY <<A <<"B" /x/\n1\nA\nB', [("A", "1\n", True), ("B", "", False)]),
        ("RUN << EOF cat\nEOF", [("EOF", "", True)]),
        ("RUN cat 3<<EOF\nEOF", [("EOF", "", True)]),
        ('RUN echo "<<EOF" $((1<<4)) <<<x', []),
        ('RUN ["<<EOF"]', []),
        ("ENV A=<<EOF", []),
    ],
)
def test_here_documents_are_those_of_buildkit(
    text: str, documents: list[tuple[str, str, bool]]
) -> None:
    first, last = read_instructions(f"{text}\nUSER x\n")
    found = [(each.name, each.text, each.expands) for each in first.documents]
    assert found == documents
    assert first.complete
    assert last.keyword == "USER"


def test_here_documents_run(tmp_path: Path) -> None:
    text = """\
ENV A=1
RUN <<EOF
echo "it's $A"
%environment {{ no }}
EOF
RUN <<'END' cat && <<-B cat
$A
END
	b $A
B
"""
    lines = commands(tmp_path, text.replace("%environment {{ no }}", "echo '%post {{ no }}'"))
    assert not [line for line in lines if line.startswith("%") or "{{" in line]
    assert bash(lines) == ["it's 1", "%post {{ no }}", "$A", "b 1"]


def test_files_of_here_documents(tmp_path: Path) -> None:
    text = "ENV A=1\nCOPY --chown=7:8 <<E <<'F' /top/$A/\n$A ${B:-b} \"q\" 'r'\nE\n$A\nF"
    lines = commands(tmp_path, text)
    assert "printf %s \"${A}\"' '\"${B:-b}\"$' \"q\" \\'r\\'\\n' >/.envbuild-files/E" in lines
    assert "printf %s $'$A\\n' >/.envbuild-files/F" in lines
    assert "chown -hR 7:8 /.envbuild-files/F" in lines
    assert 'cp -a /.envbuild-files/F /top/"${A}"/F' in lines


def test_files_are_copied_from_the_context(tmp_path: Path) -> None:
    context = tmp_path / "context"
    (context / "docker").mkdir(parents=True)
    (context / "top").touch()
    path = context / "docker/Dockerfile"
    path.write_text('FROM a\nCOPY . /all\nADD ["top", "/x/"]\n')
    file = BuildFile("containerfile", path, context)
    assert read_build_file(file).staged == (context, context / "top")
    for name in (context / ".dockerignore", path.with_name("Dockerfile.dockerignore")):
        name.write_text("docker\n")
        with pytest.raises(DocumentError) as refused:
            read_build_file(file)
        [problem] = refused.value.problems
        assert problem.id == "base.unsupported-instruction"
        assert f"{path}:2: " in problem.message
        assert name.name in problem.message
        name.unlink()


def test_each_stage_begins_with_an_image_or_a_stage(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    file = BuildFile("containerfile", path, None, (("V", "2"),))
    text = (
        "ARG V=1\nFROM --platform=linux/amd64 a:$V AS One\nFROM one\nFROM scratch\nFROM b\nFROM b"
    )
    assert read_parents(file, text) == {"a:$V": "a:2", "b": "b"}
    with pytest.raises(DocumentError) as refused:
        read_parents(file, "FROM $A\nFROM $B\n")
    assert [problem.id for problem in refused.value.problems] == ["base.undefined-variable"] * 2


@pytest.mark.parametrize("text", ["", "a b", "$A", "x'$A'\"$A y\"\\$", "${A:+1}${B:-2}$", "{{ \n'"])
def test_a_word_has_one_value_in_python_and_bash(text: str) -> None:
    pieces = list(read_pieces(text, raw="\n" in text))
    value = "\n".join(bash(["A='1 2'", f"printf %s {bash_word(pieces)}"]))
    assert value == evaluate(pieces, {"A": "1 2"})


@pytest.mark.parametrize("text", ["$(id)", "${A#b}", "${A:?b}", "'a", '"a', "$1", "a\\"])
def test_other_forms_of_a_word_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=".+"):
        list(read_pieces(text))


def test_words_are_not_commands() -> None:
    assert shlex.split(bash_word(read_pieces("`id`;x"))) == ["`id`;x"]

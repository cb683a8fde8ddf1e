"""Nothing that a document says gets out of its place in a form: it comes out as it went in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from form_grammars import parse_definition
from form_tools import VALUES, hostile_plan, parsed_dockerfile, render
from hypothesis import example, given
from hypothesis import strategies as st
from render_cases import CASES, HOSTILE, make_plan, shipped_knowledge, standard_edits

from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.render import quoting

HOSTILE_CASE = CASES[2]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return shipped_knowledge()


def values_after(script: str, tmp_path: Path) -> dict[str, str]:
    """Return the variables after /bin/sh has read *script*, as Apptainer lets it."""
    command = f"set -e\n{script}\nexec env -0\n"
    done = subprocess.run(
        ["sh", "-c", command],
        env={"PATH": os.environ["PATH"], "BEHIND": "first"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    entries = done.stdout.decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def docker_value(word: str) -> str:
    """Return what Docker makes of a double-quoted word that expands nothing.

    Written after processDoubleQuote of moby/buildkit, frontend/dockerfile/shell/lex.go: a backslash
    takes away what a quote, a dollar or a backslash means, and is a character before any other.
    dockerfile-parse keeps such backslashes.
    """
    inner = re.fullmatch(r'"((?:[^"$\\]|\\.)*)"', word)
    assert inner, f"not one word, or it expands: {word}"
    return re.sub(r'\\(["$\\])', r"\1", inner[1])


class TestInjection:
    def test_a_definition_file_hands_on_every_value_as_it_is(
        self, knowledge: Knowledge, tmp_path: Path
    ) -> None:
        read = parse_definition(render("def", hostile_plan(), knowledge))
        found = values_after(read.sections["environment"], tmp_path)
        assert {name: found[name] for name in VALUES} == VALUES
        assert found["BEFORE"] == VALUES["LINES"]
        assert found["BEHIND"] == f"first:{HOSTILE}"
        assert list(tmp_path.iterdir()) == []

    @given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=80))
    @example("%post\n%post")
    @example("{{x}}{{{{ y }}")
    @example("\nbootstrap: docker\n")
    def test_no_text_leaves_its_word_in_a_definition_file(self, text: str) -> None:
        word = quoting.definition_word(text)
        assert "\n" not in word
        assert "{{" not in word
        script = f"{quoting.LINE_BREAK}='\n'\nprintf %s {word}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
        assert done.stdout == text.encode()

    @given(st.text(max_size=80))
    @example("a\nb: c")
    @example("\x85\u2028\ufeff")
    def test_no_text_leaves_its_scalar_in_yaml(self, text: str) -> None:
        if any(0xD800 <= ord(char) < 0xE000 for char in text):
            return  # no document can hold half of a character
        quoted = quoting.yaml(text)
        assert yaml.safe_load(f"key: {quoted}\nother: 1\n") == {"key": text, "other": 1}

    @given(st.text(max_size=80))
    @example("a\n%post {{ x }}")
    @example("\x85\u2028\r")
    def test_prose_is_one_line(self, text: str) -> None:
        shown = quoting.line(text)
        assert len(f"x{shown}x".splitlines()) == 1
        assert "{{" not in shown

    def test_a_dockerfile_hands_on_every_value_as_it_is(
        self, knowledge: Knowledge, tmp_path: Path
    ) -> None:
        plan = HOSTILE_CASE.lock.plan
        read = parsed_dockerfile(render("dockerfile", plan, knowledge), tmp_path)
        words = dict(
            each["value"].split("=", 1)
            for each in read.structure
            if each["instruction"] in ("ENV", "LABEL")
        )
        assert docker_value(words["HOSTILE"]) == HOSTILE
        assert docker_value(words["EMPTY"]) == ""
        assert docker_value(words["SPACE"]) == "  "
        assert docker_value(words["org.opencontainers.image.description"]) == HOSTILE
        known = {"FROM", "RUN", "COPY", "LABEL", "ENV", "CMD", "COMMENT"}
        assert {each["instruction"] for each in read.structure} == known

    @pytest.mark.parametrize("value", ["a\nRUN touch CANARY", "a\rb", "\x1b[0m"])
    def test_a_dockerfile_refuses_what_would_end_its_line(
        self, value: str, knowledge: Knowledge
    ) -> None:
        plan = make_plan(environment=standard_edits(SETTING=value))
        with pytest.raises(UsageError, match="SETTING") as caught:
            render("dockerfile", plan, knowledge)
        assert caught.value.id == "variable.control-character"

    def test_a_summary_stays_in_the_comment_of_an_environment_file(
        self, knowledge: Knowledge
    ) -> None:
        plan = make_plan(summary=f"{HOSTILE}\nname: other\n- evil")
        read = yaml.safe_load(render("environment.yml", plan, knowledge))
        assert read["name"] == "allreduce"
        assert sorted(read) == ["channels", "dependencies", "name", "variables"]

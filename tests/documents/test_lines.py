"""Every line of the seed documents has a row, and every row is complete."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from envbuilder.cli import app
from envbuilder.knowledge.rows import Knowledge
from tests import goldens
from tests.layers import CHECKOUT

from .document_rows import STATES, page, rows
from .seed_lines import NAMED, SeedLine, seed_lines, seeds

# Names of an environment that a row makes itself, or that a document names.
MADE = {"cloned_env"}


def test_each_line_of_the_documents_has_a_row() -> None:
    folder = seeds()
    if folder is None:
        pytest.skip(f"needs the seed documents beside the checkout, or {NAMED}")
    theirs = seed_lines(folder)
    assert len({line.document for line in theirs}) == 5
    described = [SeedLine(row.document, row.line, row.theirs) for row in rows()]
    assert set(theirs) - set(described) == set()
    assert set(described) - set(theirs) == set()
    assert Counter(theirs) == Counter(described)


def test_a_new_line_of_a_document_is_found(tmp_path: Path) -> None:
    folder = seeds()
    if folder is None:
        pytest.skip(f"needs the seed documents beside the checkout, or {NAMED}")
    known = set(seed_lines(folder))
    for file in folder.glob("*.txt"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    last = max(tmp_path.glob("001_*.txt"))
    added = "\n\tmodule load modenv/new\n\tmpirun -np 2 python new.py\n"
    last.write_text(last.read_text(encoding="utf-8") + added, encoding="utf-8")
    assert [line.text for line in seed_lines(tmp_path) if line not in known] == [
        "module load modenv/new",
        "mpirun -np 2 python new.py",
    ]


def test_rows_are_in_order_and_unique() -> None:
    keys = [(row.document, row.line, row.theirs) for row in rows()]
    assert len(set(keys)) == len(keys)
    # A document may return to a subject; within a group the lines ascend.
    titles: dict[tuple[str, str], list[int]] = {}
    for row in rows():
        titles.setdefault((row.document, row.title), []).append(row.line)
    assert all(lines == sorted(lines) for lines in titles.values())
    assert [row.document for row in rows()] == sorted(row.document for row in rows())


def test_rows_are_complete() -> None:
    for row in rows():
        assert row.state in STATES, row
        assert all((row.theirs, row.ours, row.compared, row.tests)), row
        assert ("needs" in row.values) == (row.state == "needs hardware"), row
        assert ("correction" in row.values) == (row.state == "typing error in the source"), row


def test_the_tests_of_the_rows_exist() -> None:
    functions: dict[str, set[str]] = {}
    for test in {test for row in rows() for test in row.tests}:
        path, _, name = test.partition("::")
        if path not in functions:
            tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
            nodes = (node for node in tree.body if isinstance(node, ast.FunctionDef))
            functions[path] = {node.name for node in nodes}
        assert name in functions[path], test


def test_the_commands_of_the_rows_are_real(known: Knowledge) -> None:
    recipes = {path.stem for path in (CHECKOUT / "recipes").glob("*.yaml")} | MADE
    sites = {path.stem for path in (CHECKOUT / "recipes" / "sites").glob("*.yaml")} | {"local"}
    for command in {command for row in rows() for command in row.ours}:
        if command.startswith("flags: "):
            assert set(yaml.safe_load(command)["flags"]) <= set(known.flags), command
            continue
        program, *words = shlex.split(command)
        if program == "envbuild":
            parse(words)
            assert set(re.findall(r"--site (\S+)", command)) <= sites, command
            if words[0] not in ("advisories", "clone"):
                assert words[1] in recipes, command
        elif program == "module":
            assert (words[0] in ("load", "unload"), words[1] in recipes) == (True, True), command
        else:
            assert program in ("python", "Distributed-DL-trainingrun"), command


def parse(words: list[str]) -> None:
    """Parse a command line as envbuild does. Raises UsageError for an unknown verb or option."""
    command, rest = get_command(app), list(words)
    while isinstance(command, TyperGroup):
        name, *rest = rest
        command = command.commands[name]
    command.make_context(words[0], rest)


def test_the_page_in_docs_is_made_from_the_rows() -> None:
    goldens.compare(CHECKOUT / "docs" / "documents.md", page())

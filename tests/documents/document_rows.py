"""The rows of ``lines.yaml``, and the page that is made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FILE = Path(__file__).with_name("lines.yaml")
STATES = ("runs here", "rendered", "needs hardware", "typing error in the source")
# What a row of a kind is compared by, besides the tests that it names.
OF_KIND = {
    kind: f"tests/documents/test_commands.py::test_{kind}"
    for kind in ("build", "channel", "command", "flag", "job", "launch", "packages", "tree")
}
OF_LOADS = "tests/integration/test_document_modules.py::test_module_lines"


class Difference(NamedTuple):
    """A word of the document and the one in its place; None where there is none."""

    theirs: str | None
    ours: str | None
    why: str


class Loads(NamedTuple):
    """What the module lines of a group are compared with: the loads of a plan.

    ``before``: lines that the document leaves out. ``lost``: what another load replaces.
    """

    title: str
    lines: tuple[str, ...]
    recipe: str
    site: str
    before: tuple[str, ...]
    lost: tuple[str, ...]
    differs: tuple[Difference, ...]


class Row(NamedTuple):
    """A line of a document. ``values``: further keys, which its kind needs."""

    document: str
    line: int
    title: str
    theirs: str
    ours: tuple[str, ...]
    compared: str
    state: str
    tests: tuple[str, ...]
    kind: str
    differs: tuple[Difference, ...]
    values: Mapping[str, Any]

    @property
    def id(self) -> str:
        return f"{self.document}-{self.line}"

    @property
    def is_module_line(self) -> bool:
        return self.theirs.startswith(("module load ", "ml "))


@cache
def groups() -> tuple[Mapping[str, Any], ...]:
    return tuple(yaml.safe_load(FILE.read_text(encoding="utf-8")))


@cache
def rows() -> tuple[Row, ...]:
    return tuple(row for group in groups() for row in _rows(group))


def of_kind(kind: str) -> tuple[Row, ...]:
    return tuple(row for row in rows() if row.kind == kind)


def loads() -> Iterator[Loads]:
    """Yield each group of module lines that are compared with a plan."""
    for group in groups():
        if "loads" in group:
            said = group["loads"]
            yield Loads(
                f"{group['document']}-{group['rows'][0]['line']}",
                tuple(row.theirs for row in _rows(group) if row.is_module_line),
                said["recipe"],
                said["site"],
                tuple(said.get("before", ())),
                tuple(said.get("lost", ())),
                _differences(said.get("differs", ())),
            )


def _rows(group: Mapping[str, Any]) -> Iterator[Row]:
    for own in group["rows"]:
        value = {**{key: group[key] for key in group.keys() - {"rows", "loads"}}, **own}
        kind = value.get("kind", "")
        tests = tuple(value.get("tests", ()))
        is_module = own["theirs"].startswith(("module load ", "ml "))
        if "loads" in group and is_module:
            tests = (OF_LOADS, *own.get("tests", ()))
        if kind:
            tests = (OF_KIND[kind], *tests)
        yield Row(
            value["document"],
            value["line"],
            value["title"],
            value["theirs"],
            tuple(value.get("ours", ())),
            value.get("compared", ""),
            value.get("state", ""),
            tests,
            kind,
            _differences(value.get("differs", ())),
            value,
        )


def _differences(said: Any) -> tuple[Difference, ...]:
    return tuple(Difference(each.get("theirs"), each.get("ours"), each["why"]) for each in said)


# --- The page ------------------------------------------------------------------------------------

_HEAD = """\
# The seed documents, line by line

envbuild implements five documents. This page lists each of their lines that a reader types, submits
or runs: commands, module lines, settings, job scripts and programs. `tests/documents/test_lines.py`
makes it from `tests/documents/lines.yaml`, whose rows it compares with the documents.

A command for a site builds there; on another machine `create` writes a bundle. The tests run on
stand-ins of the site's modules and channels, named in each environment's evidence.

| state | rows | meaning |
| --- | --- | --- |
"""
_MEANING = {
    "runs here": "a test runs it, on stand-in modules or packages where the site's cannot be had; "
    "if it stops at a missing file, the row names the file",
    "rendered": "a test compares the text that envbuild writes for it",
    "needs hardware": "the row names the hardware",
    "typing error in the source": "the row has the line as it should be; envbuild runs that one",
}
# What the diffs of ``programs/diffs`` lead from and to.
_DIFFS = {
    "hooks": "The patch for TensorFlow 1.15, on Python 3.6",
    "hooks_compat_v1": "From there to TensorFlow 2, by `tf.compat.v1` (`hooks_compat_v1.py`)",
    "hooks_keras3": "From the patched program to Keras 3 (`hooks_keras3.py`)",
    "mnist_cnn_tf_keras": "From `mnist_cnn.py.in` with these lines, for TensorFlow 1.15, to "
    "tf.keras of TensorFlow 2 (`mnist_cnn_tf_keras.py`)",
    "mnist_cnn_keras3": "From the program for TensorFlow 1.15 to Keras 3 (`mnist_cnn_keras3.py`)",
}


def page() -> str:
    """Return the page in the docs."""
    counts = Counter(row.state for row in rows())
    lines = [f"| {state} | {counts[state]} | {_MEANING[state]} |" for state in STATES]
    text = _HEAD + "\n".join([*lines, f"| all | {len(rows())} | |", ""])
    return text + "".join(_section(group) for group in groups())


def _section(group: Mapping[str, Any]) -> str:
    those = list(_rows(group))
    head = (
        "| line | the document | envbuild | compared | state |\n| --- | --- | --- | --- | --- |\n"
    )
    table = "".join(_line(row) for row in those)
    said = _differences(group.get("loads", {}).get("differs", ()))
    lost = group.get("loads", {}).get("lost", ())
    notes = [f"- {_difference(each)}" for each in said]
    notes += [f"- In the document's order another load replaces `{name}`." for name in lost]
    modules = f"\nThe modules differ in:\n\n{chr(10).join(notes)}\n" if notes else ""
    diffs = "".join(map(_diff, group.get("diffs", ())))
    tests = dict.fromkeys(test for row in those for test in row.tests)
    named = "".join(f"- `{test}`\n" for test in tests)
    return (
        f"\n## {group['document']}: {group['title']}\n\n{head}{table}{modules}{diffs}"
        f"\nTests:\n\n{named}"
    )


def _diff(name: str) -> str:
    """Return a diff of the programs, below the sentence of ``_DIFFS``."""
    text = (FILE.parent / "programs" / "diffs" / f"{name}.diff").read_text(encoding="utf-8")
    return f"\n{_DIFFS[name]}:\n\n```diff\n{text}```\n"


def _line(row: Row) -> str:
    compared = [row.compared, *map(_difference, row.differs)]
    for key, label in (("stops-at", "stops at"), ("correction", "should be"), ("note", "note")):
        if key in row.values:
            value = row.values[key]
            compared.append(f"{label}: {f'`{value}`' if key == 'correction' else value}")
    state = f"{row.state}: {row.values['needs']}" if "needs" in row.values else row.state
    ours = "<br>".join(_code(each) for each in row.ours)
    cells = (str(row.line), _code(row.theirs), ours, "; ".join(compared), state)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _difference(each: Difference) -> str:
    if each.theirs is None:
        return f"added `{each.ours}` ({each.why})"
    if each.ours is None:
        return f"without `{each.theirs}` ({each.why})"
    return f"`{each.ours}` for `{each.theirs}` ({each.why})"


def _code(text: str) -> str:
    return f"`{text}`"

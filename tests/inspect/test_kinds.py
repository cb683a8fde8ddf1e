"""The table of kinds in docs/validating.md: layers and faults, with the checks of each cell."""

from __future__ import annotations

import re
from typing import get_args

from envbuilder.model.validation import Fault, Layer
from envbuilder.validate.command import list_checks
from tests import goldens
from tests.layers import CHECKOUT

PAGE = CHECKOUT / "docs" / "validating.md"
MARK, END = "<!-- printed by tests/inspect/test_kinds.py -->\n", "<!-- end of it -->\n"
HEAD = "| id | severity | finds that |\n| --- | --- | --- |\n"
_IDS = re.compile(r"(`[a-z]+\.[a-z-]+`(, )?)+")


def test_each_cell_names_its_checks_or_a_reason() -> None:
    """Each check is in the cells that it declares; a cell without checks has a clause."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    table, _, after = rest.partition(END)
    head, line, *rows = table.splitlines()
    layers, faults = get_args(Layer), get_args(Fault)
    assert head == f"| layer | {' | '.join(faults)} |"
    printed = [head, line]
    for layer, row in zip(layers, rows, strict=True):
        first, *texts = row.strip("| ").split(" | ")
        assert first == layer
        cells = [
            ", ".join(f"`{i.id}`" for i in list_checks() if i.layer == layer and fault in i.faults)
            or _IDS.sub("", text)
            for fault, text in zip(faults, texts, strict=True)
        ]
        assert all(cells), (layer, cells)
        printed.append(f"| {layer} | {' | '.join(cells)} |")
    goldens.compare(PAGE, "".join((before, MARK, "\n".join(printed), "\n", END, after)))


def test_the_docs_list_every_check() -> None:
    before, head, rest = PAGE.read_text(encoding="utf-8").partition(HEAD)
    rows = [f"| `{each.id}` | {each.severity} | {each.title} |\n" for each in list_checks()]
    after = "\n" + rest.partition("\n\n")[2]
    goldens.compare(PAGE, "".join((before, head, *rows, after)))


def test_the_definitions_name_every_layer_and_fault() -> None:
    text = PAGE.read_text(encoding="utf-8").partition(MARK)[0].partition("## What can be wrong")[2]
    names = re.findall(r"^\| ([A-Za-z][A-Za-z -]*) \|", text, re.MULTILINE)
    assert names == ["layer", *get_args(Layer), "fault", *get_args(Fault)]

"""TOML with places, also the inline tables of TOML 1.1."""

from __future__ import annotations

import pytest

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError
from envbuilder.formats.toml_nodes import load


@pytest.mark.parametrize(
    "text",
    [
        'a = {\n  b = "x", # not }\n  c = "1,}",\n}\n',
        'a = {b = "x", c = "1,}"}\n',
        "a = { b = 'x',\n c = '''1,}'''\n }\n",
    ],
)
def test_an_inline_table_of_several_lines(text: str) -> None:
    assert load(source_of(text.encode(), "pixi.toml")) == {"a": {"b": "x", "c": "1,}"}}


def test_what_is_not_toml_has_its_line() -> None:
    with pytest.raises(DocumentError) as refused:
        load(source_of(b'a = 1\nb = "\n', "pixi.toml"))
    (problem,) = refused.value.problems
    assert problem.id == "package-list.not-toml"

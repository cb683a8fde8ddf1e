"""A call imports only the module of its command: the table of these is complete."""

from __future__ import annotations

from importlib import import_module

import pytest

from envbuilder import cli


@pytest.mark.parametrize("name", cli.MODULES)
def test_table_has_every_command_of_a_module(name: str) -> None:
    groups = import_module(f"envbuilder.cli.{name}").GROUPS
    words = [word for group in groups for word in ([group.word] if group.word else group.names)]
    assert sorted(words) == sorted(cli.MODULES[name])

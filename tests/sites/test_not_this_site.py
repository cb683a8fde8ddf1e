"""`create` for a site that this machine is not: refused before anything is fetched or written."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.workflow import root_lock

_SITE = """\
schema: 1
name: elsewhere
summary: A cluster of another place
arch: [x86_64, ppc64le, aarch64]
"""


def create(tmp_path: Path, *words: str) -> tuple[int, str]:
    """Return exit code and messages of a `create` that ends where pip would be asked."""
    # CliRunner runs in this process: whatever would be fetched or run comes after the lock.
    with mock.patch.object(root_lock, "fingerprint", side_effect=KeyError("asked")):
        answer = CliRunner().invoke(app, ["create", *words, "--root", str(tmp_path / "root")])
    return answer.exit_code, " ".join(answer.stderr.split())


def test_a_documented_site_is_not_this_machine(tmp_path: Path) -> None:
    named = ("--site", "taurus-alpha")
    code, said = create(tmp_path, "horovod-module", "--arch", "x86_64", *named)
    assert code == 2
    assert "error: this machine is not site taurus-alpha: " in said
    assert "--site taurus-alpha --bundle" in said
    assert not (tmp_path / "root").exists()


def test_trees_decide_and_a_site_without_them_is_built_for(tmp_path: Path) -> None:
    site, tree = tmp_path / "elsewhere.yaml", tmp_path / "modules"
    words = ("allreduce", "--site", str(site))
    site.write_text(_SITE)
    assert create(tmp_path, *words) == (70, mock.ANY)
    site.write_text(f"{_SITE}module-system: lmod\nmodule-trees: [{tree}, {tmp_path}/more]\n")
    code, said = create(tmp_path, *words)
    assert code == 2
    assert str(tree) in said
    tree.mkdir()
    assert create(tmp_path, *words) == (70, mock.ANY)

"""Roots in workspaces: ws_find names the folder, ws_list the expiry. Both are stand-ins.

They print what the README of hpc-workspace 1.5 shows, and what the sources of hpc-workspace-v2
print.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

OLD = """\
id: {other}
     workspace directory  : {folder}-other
     remaining time       : 3 days 1 hours
     creation time        : Wed Mar 13 23:51:57 2013
     expiration date      : Sat Mar 16 23:51:57 2013
     available extensions : 15
id: {name}
     workspace directory  : {folder}
     remaining time       : 9 days 23 hours
     creation time        : Wed Mar 13 23:51:57 2013
     expiration date      : Sat Mar 23 23:51:57 2013
     filesystem name      : scratch
     available extensions : 15
"""
NEW = """\
Id: {name}
    workspace directory  : {folder}
    remaining time       : 9 days, 23 hours
    comment              : id: of mine
    creation time        : Wed Mar 13 23:51:57 2013
    expiration time      : Sat Mar 23 23:51:57 2013
    filesystem name      : scratch
    available extensions : 15
"""
FIND = """\
#!/bin/sh
[ "$1" = envs ] && echo "{folder}" && exit
echo "Error: no such workspace" >&2
exit 255
"""


def run(*words: str | Path, env: Mapping[str, str]) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "80", **env})


def tool(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the workspace, with a published environment in x86_64."""
    workspace = tmp_path / "ws" / "me-envs"
    version = publish_plan(workspace / "x86_64", planned("allreduce", "--site", "local"))
    assert version.number == 1
    return workspace


@pytest.fixture
def env(tmp_path: Path, folder: Path) -> dict[str, str]:
    """Return an environment in which the tools are on PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    tool(tools, "ws_find", FIND.format(folder=folder))
    listing(tmp_path, folder, OLD)
    return {"PATH": f"{tools}:/usr/bin:/bin", "ENVBUILD_ROOT": ""}


def listing(tmp_path: Path, folder: Path, form: str) -> None:
    text = form.format(name="envs", other="x", folder=folder)
    tool(tmp_path / "bin", "ws_list", f"#!/bin/sh\ncat <<'END'\n{text}END\n")


@pytest.fixture
def an_hour_east() -> Iterator[None]:
    """Set the local time that the tools print to UTC+1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "XXX-1")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("an_hour_east")
@pytest.mark.parametrize("form", [OLD, NEW], ids=["1.5", "2"])
def test_list_and_info_show_the_expiry(
    form: str, tmp_path: Path, folder: Path, env: dict[str, str]
) -> None:
    listing(tmp_path, folder, form)
    for root in ("ws:envs/x86_64", str(folder / "x86_64")):
        for verb in (("list",), ("info", "allreduce")):
            value = json.loads(run(*verb, "--root", root, "--json", env=env).stdout)["workspace"]
            assert (value["name"], value["path"]) == ("envs", str(folder))
            assert value["expires"] == "2013-03-23T22:51:57Z"
            assert value["remaining"].startswith("9 days")
            shown = run(*verb, "--root", root, env=env).stdout
            assert "2013-03-23 22:51 UTC" in shown
            assert max(map(len, shown.splitlines()[1:2])) <= 80


def test_a_root_elsewhere_is_in_no_workspace(tmp_path: Path, env: dict[str, str]) -> None:
    other = tmp_path / "ws" / "me-envs-2"
    publish_plan(other, planned("allreduce", "--site", "local"))
    done = run("list", "--root", other, "--json", env=env)
    assert json.loads(done.stdout)["workspace"] is None


def test_a_site_names_a_workspace_as_its_base(
    tmp_path: Path, folder: Path, env: dict[str, str]
) -> None:
    site = tmp_path / "cluster.yaml"
    text = "schema: 1\nname: cluster\nsummary: A cluster\narch: [x86_64]\nbase: ws:envs\n"
    site.write_text(text, encoding="utf-8")
    publish_plan(folder / "cluster" / "x86_64", planned("allreduce", "--site", str(site)))
    words = ("list", "--site", site, "--arch", "x86_64", "--json")
    value = json.loads(run(*words, env=env).stdout)
    assert value["root"] == str(folder / "cluster" / "x86_64")
    assert value["workspace"]["name"] == "envs"
    site.write_text(text.replace("ws:envs", "ws:../x"), encoding="utf-8")
    assert run("sites", "check", site, env=env).exit_code == 2


def test_what_the_tools_do_not_tell(tmp_path: Path, folder: Path, env: dict[str, str]) -> None:
    root = folder / "x86_64"
    done = run("list", "--root", "ws:other", "--json", env=env)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["workspace.not-found"])
    assert "ws_allocate other" in done.stderr
    tool(tmp_path / "bin", "ws_list", "#!/bin/sh\necho no database >&2\nexit 1\n")
    for absent in (False, True):
        if absent:
            (tmp_path / "bin" / "ws_list").unlink()
        done = run("list", "--root", root, "--json", env=env)
        assert (done.exit_code, json.loads(done.stdout)["workspace"]) == (0, None)
        assert ("not on PATH" if absent else "no database") in done.stderr
    tool(tmp_path / "bin", "ws_find", f"#!/bin/sh\necho {folder}; echo /fast/me-envs\n")
    done = run("list", "--root", "ws:envs/x86_64", "--json", env=env)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["workspace.ambiguous"])
    assert "/fast/me-envs/x86_64" in done.stderr
    (tmp_path / "bin" / "ws_find").unlink()
    done = run("list", "--root", "ws:envs/x86_64", "--json", env=env)
    assert (done.exit_code, problem_ids(done.stdout)) == (9, ["workspace.no-tools"])
    done = run("list", "--root", root, "--json", env=env)
    assert (done.exit_code, done.stderr) == (0, "")
    done = run("doctor", "--json", env={**env, "ENVBUILD_ROOT": "ws:envs"})
    assert (done.exit_code, "ws:envs" in done.stderr) == (0, True)

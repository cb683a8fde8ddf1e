"""The verb: its text, JSON and exit codes, rows of knowledge, and environments that are none."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
import zoo
from typer.testing import CliRunner, Result
from zoo import Made

from envbuilder.cli import app
from envbuilder.model.validation import Validation
from envbuilder.target_tools.distributions import INSIDE
from envbuilder.target_tools.manifest import look
from envbuilder.validate.command import list_checks
from tests.cli.published import planned, publish_plan
from tests.layers import CHECKOUT
from tests.verbs import problem_ids

KNOWLEDGE = """\
schema: 1
advisories:
  - id: OUR-001
    severity: error
    component: packaging
    affected: "*"
    summary: it eats our jobs
    fix: an older one
    evidence: run
    sources: ["https://cluster.example/1"]
  - id: OUR-002
    severity: error
    component: packaging
    affected: "*"
    when: "network in ['infiniband']"
    summary: it is slow over our fabric
    evidence: run
    sources: ["https://cluster.example/2"]
  - id: OUR-003
    severity: error
    component: packaging
    affected: "*"
    beside: {pytorch: "*"}
    summary: that is not there
    evidence: run
    sources: ["https://cluster.example/3"]
"""


def run(*words: str, **env: str) -> Result:
    outside = {"PATH": "/nowhere", "PYTHONPATH": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": "", **env}
    return CliRunner().invoke(app, ["validate", *words], env={"COLUMNS": "80", **outside})


def test_healthy_is_0_and_one_screen(made: Made) -> None:
    done = run(str(made.prefix))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "No problems found."


def test_the_active_environment_is_meant_where_none_is_named(made: Made) -> None:
    assert run(VIRTUAL_ENV=str(made.prefix)).exit_code == 0
    done = run("--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["environment.none-active"])


@pytest.mark.parametrize("kind", ["absent", "empty", "file"])
def test_what_is_no_environment_is_usage(kind: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "empty":
        path.mkdir()
    elif kind == "file":
        path.write_text("text")
    done = run(str(path), "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["environment.not-python"])
    assert str(path) in done.stderr


def test_the_worst_first_on_one_screen(made: Made) -> None:
    for number in range(9):
        made.install(f"tool{number}", "1", "Requires-Dist: nowhere>=2")
    (made.packages / "yaml" / "loader.py").unlink()
    made.edit(made.packages / "idna" / "core.py", lambda data: data + b"\n")
    done = run(str(made.prefix))
    assert done.exit_code == 4
    lines = done.stdout.splitlines()
    # The first names the environment, however long its path is.
    assert lines[0].startswith(f"{made.prefix}:")
    assert max(map(len, lines[1:])) <= 80
    assert len(lines) < 50
    marks = [line.split()[0] for line in lines if line.startswith(("error", "warning"))]
    assert marks == sorted(marks)
    assert any(line.startswith("         and 6 ") for line in lines)
    assert lines[-1] == "10 errors, 1 warning"
    everything = run(str(made.prefix), "--all").stdout
    assert everything.count("error    package.requirement-missing: tool") == 9


def test_warnings_alone_are_0(made: Made) -> None:
    made.edit(made.packages / "idna" / "core.py", lambda data: data + b"\n")
    done = run(str(made.prefix))
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1 warning")


def test_json_says_all_of_it(made: Made) -> None:
    made.install("tool", "1", "Requires-Dist: nowhere>=2")
    value = Validation.model_validate(json.loads(run(str(made.prefix), "--json").stdout))
    (found,) = value.findings
    assert (found.id, found.severity, found.confidence) == (
        "package.requirement-missing",
        "error",
        "certain",
    )
    (place,) = found.evidence
    site = f"lib/python{zoo.SERIES}/site-packages"
    assert place.file == f"{site}/tool-1.dist-info/METADATA"
    assert (place.field, place.value) == ("Requires-Dist", "nowhere>=2")


def test_rows_of_knowledge(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "ours" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "advisories.yaml").write_text(KNOWLEDGE)
    done = run(str(made.prefix), "--recipes", str(folder.parent), "--json")
    assert done.exit_code == 4
    value = json.loads(done.stdout)
    (found,) = value["findings"]
    assert found["id"] == "OUR-001"
    assert found["fix"] == "an older one"
    assert found["source"] == "https://cluster.example/1"
    (place,) = found["evidence"]
    assert place["file"].endswith(".dist-info/METADATA")
    assert [(each["id"], each["open"]) for each in value["undecided"]] == [("OUR-002", ["network"])]
    text = run(str(made.prefix), "--recipes", str(folder.parent)).stdout
    assert text.splitlines()[-1] == "Undecided (fact `network` not stated): OUR-002"


def test_a_package_is_the_build_that_its_local_version_names(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "ours" / "knowledge"
    folder.mkdir(parents=True)
    row = KNOWLEDGE.partition("  - id: OUR-002")[0].replace("packaging", "pytorch")
    when = "    when: \"arch == 'x86_64' and pytorch.cuda == '12.1'\"\n    summary:"
    (folder / "advisories.yaml").write_text(row.replace("    summary:", when))
    for version, expected in (("2.5.1+cu121", {"OUR-001"}), ("2.5.1+cu118", set())):
        metadata = made.install("torch", version)
        done = run(str(made.prefix), "--recipes", str(folder.parent), "--json")
        ids = {each["id"] for each in json.loads(done.stdout)["findings"]}
        assert ids & {"OUR-001"} == expected, version
        shutil.rmtree(metadata)


def test_the_flags_of_a_horovod_that_envbuild_built(made: Made) -> None:
    """Without them what depends on them is undecided, and told by its number alone."""
    folder = made.install("horovod", "0.28.1")
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    done = run(str(made.prefix))
    assert "Undecided (" in done.stdout
    assert "flags.HOROVOD" not in done.stdout
    before = json.loads(run(str(made.prefix), "--json").stdout)
    assert "HVD-120" in {each["id"] for each in before["undecided"]}
    for value in ('{"facts": {"flags": 5}}', "[]", "{", '{"facts": {"flags": {"A": ["b"]}}}'):
        made.write(folder / INSIDE, value)
        assert run(str(made.prefix)).exit_code in (0, 4)
    # It says that it needs an MPI, and there is none.
    flags = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_PYTORCH": "1"}
    made.write(folder / INSIDE, json.dumps({"facts": {"flags": flags}}))
    done = run(str(made.prefix), "--json")
    value = json.loads(done.stdout)
    assert "HVD-120" in {each["id"] for each in value["findings"]}
    assert not [e for each in value["undecided"] for e in each["open"] if e.startswith("flags.")]


def test_what_only_its_build_needed_is_nothing_that_a_horovod_lacks(made: Made) -> None:
    """CMake came and went, and 0 is what a plan sets, so that setup.py does not ask for cffi."""

    def warnings(flag: str) -> list[str]:
        flags = {flag: "0", "HOROVOD_WITHOUT_MPI": "1"}
        made.write(folder / INSIDE, json.dumps({"facts": {"flags": flags}}))
        found = json.loads(run(str(made.prefix), "--json").stdout)["findings"]
        return [each["id"] for each in found if each["severity"] != "info"]

    folder = made.install("horovod", "0.28.1")
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    assert warnings("HOROVOD_WITHOUT_PYTORCH") == []
    made.install("cmake", "3.5.0")  # too old to build it: HVD-026
    assert warnings("HOROVOD_WITHOUT_PYTORCH") == []
    assert warnings("HOROVOD_WITHOUT_MXNET") == ["FLAG-ZERO-HOROVOD-WITHOUT-MXNET"]


def test_the_list_has_every_check() -> None:
    done = run("--list")
    assert done.exit_code == 0
    for each in list_checks():
        assert f"{each.id} ({each.severity}): " in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if "https://" not in line) <= 80
    listed = json.loads(run("--list", "--json").stdout)
    assert [each["id"] for each in listed] == [each.id for each in list_checks()]
    assert len({each["id"] for each in listed}) == len(listed) > 35


PACKAGES = f"lib/python{zoo.SERIES}/site-packages"


@pytest.fixture
def published(tmp_path: Path) -> tuple[Path, Path]:
    """Return a root, and the prefix of an environment that was published in it."""
    home = Path(sys.executable).resolve().parent
    config = f"home = {home}\nversion = {zoo.SERIES}.0\n"
    files = {"pyvenv.cfg": config, f"{PACKAGES}/module.py": "VALUE = 1\n"}
    publish_plan(tmp_path / "root", planned("allreduce"), files)
    (config,) = (tmp_path / "root").glob("allreduce/*/pyvenv.cfg")
    python = config.parent / "bin" / "python"
    return tmp_path / "root", python.parent.parent


def ids(done: Result) -> set[str]:
    return {each["id"] for each in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("site", ["debian-ppc64le", "taurus-ml"])
def test_one_for_another_architecture_is_not_judged_by_what_this_machine_has(
    tmp_path: Path, site: str
) -> None:
    """As a node of the cluster's other half sees it: no Python of its own is at any path here."""
    info = f"{PACKAGES}/runtime-1.0.dist-info"
    files = {
        "pyvenv.cfg": f"home = /usr/bin\ninclude-system-site-packages = true\n"
        f"version = {zoo.SERIES}.0\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: runtime\nVersion: 1.0\n"
        "Requires-Dist: nowhere-to-be-had\n",
        f"{info}/RECORD": "",
    }
    publish_plan(tmp_path / "root", planned("allreduce", "--site", site), files)
    (config,) = (tmp_path / "root").glob("allreduce/*/pyvenv.cfg")
    (config.parent / "bin").mkdir()
    python = config.parent / "bin" / "python"
    for there in (Path(sys.executable), Path("/nowhere/python")):
        python.unlink(missing_ok=True)
        python.symlink_to(there)
        done = run("allreduce", "--root", str(tmp_path / "root"), "--json")
        # It was published without a Python; the Open MPI of its lock has a known problem.
        known = {"debian-ppc64le": {"OMPI-028"}, "taurus-ml": set[str]()}[site]
        assert ids(done) == {"published.changed", *known}, done.stdout
        assert json.loads(done.stdout)["arch"] == "ppc64le"
    # Nobody says so of a folder.
    assert ids(run(str(config.parent), "--json")) >= {"python.missing"}
    # What it does not take from outside it has to have.
    config.write_text(config.read_text().replace("true", "false"))
    alone = run("allreduce", "--root", str(tmp_path / "root"), "--json")
    assert ids(alone) == {"package.requirement-missing", "published.changed", *known}


def test_a_published_environment_by_its_name(published: tuple[Path, Path]) -> None:
    root, prefix = published
    words = ("--root", str(root), "--json")
    # It was never built: there is no Python in it.
    for name in ("allreduce", "allreduce/1"):
        done = run(name, *words)
        assert (done.exit_code, ids(done)) == (4, {"python.missing"})
        assert json.loads(done.stdout)["path"] == str(prefix)
    done = run("allreduce/2", *words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["environment.unknown-number"])
    done = run("allredu", *words)
    assert problem_ids(done.stdout) == ["environment.unknown-name"]


def test_a_published_environment_that_was_changed(published: tuple[Path, Path]) -> None:
    root, prefix = published
    module = prefix / PACKAGES / "module.py"
    module.chmod(0o644)
    module.write_text("VALUE = 2\n")
    module.chmod(0o444)
    done = run("allreduce", "--root", str(root), "--json")
    assert ids(done) == {"python.missing", "published.changed"}
    assert {"file": f"{PACKAGES}/module.py", "field": "manifest", "value": "other content"} in [
        place for each in json.loads(done.stdout)["findings"] for place in each["evidence"]
    ]
    # By its path it is the same.
    assert ids(run(str(prefix), "--json")) == {"python.missing", "published.changed"}
    Path(f"{prefix}.evidence", "manifest.json").write_text("{}")
    assert ids(run(str(prefix), "--json")) == {"python.missing", "published.changed"}


def test_nothing_of_a_published_environment_is_run(published: tuple[Path, Path]) -> None:
    """Bytecode that a program wrote is judged by info --verify, with the environment's Python."""
    root, prefix = published
    python, mark = prefix / "bin" / "python", prefix.parent.parent / "it-ran"
    for folder in (prefix, prefix / PACKAGES):
        folder.chmod(0o755)
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    python.chmod(0o755)
    cache = prefix / PACKAGES / "__pycache__"
    cache.mkdir()
    (cache / "module.cpython-311.pyc").write_bytes(b"anything")
    done = run("allreduce", "--root", str(root), "--json")
    assert ids(done) == {"published.changed"}
    assert "module.cpython" not in done.stdout
    assert "bin/python" in done.stdout
    assert not mark.exists()


def test_diagnose_names_what_agrees_with_a_log(made: Made, tmp_path: Path) -> None:
    library = zoo.compile_c(made.prefix / "libgone.so.1", soname="libgone.so.1")
    zoo.module_with(made, "needs", library)
    library.unlink()
    log = tmp_path / "log"
    log.write_text("ImportError: libgone.so.1: cannot open shared object file: No such file\n")
    words = ["diagnose", str(log), "--environment", str(made.prefix)]
    outside = {"PATH": "/nowhere", "PYTHONPATH": "", "VIRTUAL_ENV": "", "CONDA_PREFIX": ""}
    done = CliRunner().invoke(app, [*words, "--json"], env=outside)
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["id"] == "library-not-found"
    assert finding["confirmed"][0].startswith("library.missing: ")
    shown = CliRunner().invoke(app, words, env=outside).stdout
    assert "confirmed by: library.missing" in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--ranks", "3"), "option.needs-run"),
        (("--evidence", "kept"), "option.needs-run"),
        (("--list", "--ranks", "3"), "option.needs-run"),
        (("--list", "--as", "junit"), "option.conflict"),
    ],
)
def test_what_would_be_ignored_is_refused(words: tuple[str, ...], problem: str, made: Made) -> None:
    done = run(str(made.prefix), *words, "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])
    assert words[-2] in done.stderr or words[0] in done.stderr


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("--fix",), "pip install --force-reinstall --no-deps NAME==VERSION"),
        (("--watch-list", "list.txt"), "envbuild validate PATH --as baseline"),
    ],
)
def test_a_removed_option_names_what_replaces_it(
    words: tuple[str, ...], command: str, made: Made
) -> None:
    before = look(made.prefix)
    done = run(str(made.prefix), *words)
    assert (done.exit_code, done.stderr.count("hint:")) == (2, 1)
    assert command in " ".join(done.stderr.split())
    assert look(made.prefix) == before
    assert words[0] not in run("--help").stdout


def test_in_the_root_itself_a_name_is_that_of_the_root_that_is_given(
    published: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, prefix = published
    monkeypatch.chdir(root)
    done = run("allreduce", "--root", ".", "--json")
    assert done.exit_code == 4, done.stderr
    assert json.loads(done.stdout)["path"] == str(prefix)
    # Without --root a folder that is there is meant, and this one holds environments.
    assert run("allreduce").exit_code == 2
    # What the root has none of is a folder.
    (root / "ours").mkdir()
    assert problem_ids(run("ours", "--root", ".", "--json").stdout) == ["environment.not-python"]


def test_an_interpreter_in_a_closed_home_is_not_said_to_be_gone(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = made.prefix / "bin" / "python"
    target = tmp_path / "home" / "python3"
    python.unlink()
    python.symlink_to(target)
    [gone] = json.loads(run(str(made.prefix), "--json").stdout)["findings"]
    assert gone["summary"] == f"bin/python leads nowhere: {target}"
    stat = Path.stat

    def closed(path: Path, **words: Any) -> os.stat_result:
        if path == python and words.get("follow_symlinks", True):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **words)

    monkeypatch.setattr(Path, "stat", closed)
    [found] = json.loads(run(str(made.prefix), "--json").stdout)["findings"]
    assert found["id"] == "python.missing"
    assert found["summary"].startswith(f"bin/python leads to {target}, ")
    assert "chmod o+x" in found["fix"]


def test_published_environment_has_the_components_and_the_waivers_of_its_lock(
    tmp_path: Path,
) -> None:
    text = yaml.safe_load((CHECKOUT / "recipes" / "allreduce.yaml").read_text(encoding="utf-8"))
    text |= {"name": "waiving", "allow": {"OMPI-028": "it reduces no unsigned long"}}
    del text["documented-for"]
    (tmp_path / "waiving.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")
    files = {"pyvenv.cfg": f"version = {zoo.SERIES}.0\n", f"{PACKAGES}/module.py": "VALUE = 1\n"}
    words = (str(tmp_path / "waiving.yaml"), "--site", "debian-ppc64le")
    publish_plan(tmp_path / "root", planned(*words), files)
    done = run("waiving", "--root", str(tmp_path / "root"), "--json")
    [row] = [each for each in json.loads(done.stdout)["findings"] if each["id"] == "OMPI-028"]
    assert row["accepted"] == "it reduces no unsigned long"
    assert row["evidence"][0]["value"] == "4.1.4"

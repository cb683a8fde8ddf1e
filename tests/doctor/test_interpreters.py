from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from envbuilder.machine.detection import DetectionResult, snapshot
from envbuilder.model.site import Site, StatedModule

from .conftest import Machine

FACTS = {
    "version": "3.11.2",
    "stage": ["final", 0],
    "implementation": "cpython",
    "multiarch": "x86_64-linux-gnu",
    "machine": "x86_64",
    "wide": True,
    "venv": True,
    "ssl": True,
}


def site(*pythons: str, modules: tuple[StatedModule, ...] = ()) -> Site:
    return Site(
        schema_=1,
        name="here",
        summary="A site of the tests",
        arch=("x86_64", "ppc64le"),
        pythons=pythons,
        modules=modules,
    )


def fake(machine: Machine, name: str, *, folder: str = "bin", **facts: object) -> Path:
    """Put an interpreter on the search path that answers with these facts."""
    path = machine.folder / folder / name
    answer = json.dumps({**FACTS, "executable": str(path), **facts})
    return machine.tool(name, f"/bin/cat <<'END'\n{answer}\nEND", folder)


def look(machine: Machine, *pythons: str) -> DetectionResult:
    return snapshot(site(*pythons), machine.environ, patience=5.0)


def versions(detected: DetectionResult) -> list[str]:
    return [python.version for python in detected.snapshot.interpreters]


def test_no_path_no_python_no_error(machine: Machine) -> None:
    detected = look(machine)
    assert detected.snapshot.interpreters == ()
    assert detected.notes == ()


@pytest.mark.integration
def test_newest_first_whatever_the_order_on_path(machine: Machine) -> None:
    for name, version in (("python3.9", "3.9.18"), ("python3.13", "3.13.0"), ("python", "3.10.1")):
        fake(machine, name, version=version)
    detected = look(machine)
    assert versions(detected) == ["3.13.0", "3.10.1", "3.9.18"]
    assert look(machine) == detected


@pytest.mark.integration
@pytest.mark.parametrize("wanted", [frozenset({"gcc", "openmpi"}), frozenset({"gcc", "python"})])
def test_none_is_started_where_none_is_of_use(machine: Machine, wanted: frozenset[str]) -> None:
    path = machine.tool("python3.11", f"/usr/bin/touch {machine.home}/started")
    detected = snapshot(site(str(path)), machine.environ, components=wanted)
    assert (machine.home / "started").exists() == ("python" in wanted)
    assert detected.snapshot.interpreters == ()
    assert bool(detected.notes) == ("python" in wanted)


@pytest.mark.integration
def test_only_names_of_pythons_are_started(machine: Machine) -> None:
    for name in ("python3-config", "python2", "pythonw", "xpython3", "python3.11.2", "python4"):
        machine.tool(name, f"/usr/bin/touch {machine.home}/started")
    assert look(machine).snapshot.interpreters == ()
    assert not (machine.home / "started").exists()


@pytest.mark.integration
def test_a_pre_release_is_below_its_release(machine: Machine) -> None:
    fake(machine, "python3.14", version="3.14.0", stage=["candidate", 2])
    fake(machine, "python3", version="3.14.0")
    assert versions(look(machine)) == ["3.14.0", "3.14.0rc2"]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("multiarch", "wide", "arch"),
    [
        ("powerpc64le-linux-gnu", True, "ppc64le"),
        ("aarch64-linux-gnu", True, "aarch64"),
        ("", True, "x86_64"),
        ("i386-linux-gnu", False, "i386 (32 bit)"),
    ],
)
def test_arch_is_the_interpreters_own(
    multiarch: str, wide: bool, arch: str, machine: Machine
) -> None:
    fake(machine, "python3", multiarch=multiarch, wide=wide)
    assert [python.arch for python in look(machine).snapshot.interpreters] == [arch]


@pytest.mark.integration
def test_a_python_without_ensurepip_is_listed_as_such(machine: Machine) -> None:
    fake(machine, "python3", venv=False)
    assert [p.can_make_venv for p in look(machine).snapshot.interpreters] == [False]


@pytest.mark.integration
def test_a_python_without_ssl_is_noted(machine: Machine) -> None:
    path = fake(machine, "python3", ssl=False)
    detected = look(machine)
    assert versions(detected) == ["3.11.2"]
    (note,) = detected.notes
    assert note.startswith(f"{path} ")
    assert "ssl" in note


@pytest.mark.integration
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo not json", "not a Python"),
        ("echo '[1, 2]'", "not a Python"),
        ("exit 0", "not a Python"),
        ("echo 'Unknown option: -I' >&2; exit 2", "a Python 2"),
        ("echo 'no such library' >&2; exit 127", "exit code 127: no such library"),
        (
            'echo "pyenv: python3: command not found\n\nThe command exists in these Python'
            ' versions:\n  3.9.18\n  3.10.13\n\nNote: see pyenv help" >&2; exit 127',
            "3.9.18 3.10.13",
        ),
    ],
)
def test_what_is_broken_is_skipped_with_the_reason(script: str, why: str, machine: Machine) -> None:
    path = machine.tool("python3", script)
    detected = look(machine)
    assert detected.snapshot.interpreters == ()
    (note,) = detected.notes
    assert note.startswith(f"skipped {path}: ")
    assert why in note


@pytest.mark.integration
def test_a_hanging_one_does_not_keep_the_others_from_answering(machine: Machine) -> None:
    hanging = machine.tool("python3", "exec /bin/sleep 1000")
    fake(machine, "python3.12", version="3.12.1")
    detected = snapshot(site(), machine.environ, patience=0.5)
    assert versions(detected) == ["3.12.1"]
    (note,) = detected.notes
    assert note.startswith(f"skipped {hanging}: ")
    assert "0.5 s" in note


@pytest.mark.integration
def test_a_greeting_before_the_answer_does_no_harm(machine: Machine) -> None:
    inner = fake(machine, "real", folder="inner")
    machine.tool("python3", f"echo Welcome; echo '{{}}'; exec {inner}")
    detected = look(machine)
    assert [python.path for python in detected.snapshot.interpreters] == [str(inner)]


@pytest.mark.integration
def test_pypy_and_odd_paths_are_skipped(machine: Machine) -> None:
    fake(machine, "python3", implementation="pypy")
    odd = machine.folder / "line\nbreak"
    odd.mkdir()
    fake(machine, "python3.12", folder="line\nbreak")
    detected = look(machine, str(machine.bin / "python3"))
    assert detected.snapshot.interpreters == ()
    assert "pypy, not CPython" in detected.notes[0]
    environ = {**machine.environ, "PATH": str(odd)}
    detected = snapshot(site(), environ)
    assert detected.snapshot.interpreters == ()
    assert "characters" in detected.notes[0]


@pytest.mark.integration
def test_broken_links_and_missing_paths_are_told(machine: Machine) -> None:
    (machine.bin / "python3").symlink_to(machine.folder / "nowhere")
    assert look(machine).notes == ()
    missing = str(machine.folder / "python3.99")
    detected = look(machine, missing)
    assert detected.snapshot.interpreters == ()
    assert detected.notes[0].startswith(f"skipped {missing}: ")


@pytest.mark.integration
def test_the_sites_pythons_are_asked_instead_of_those_on_path(machine: Machine) -> None:
    fake(machine, "python3", version="3.10.1")
    named = fake(machine, "python3", folder="elsewhere", version="3.8.1")
    detected = look(machine, str(named))
    assert versions(detected) == ["3.8.1"]


@pytest.mark.integration
def test_each_real_interpreter_comes_once(machine: Machine, base_python: str) -> None:
    for name in ("python", "python3", "python3.11"):
        (machine.bin / name).symlink_to(base_python)
    machine.tool("python3.12", f'exec {base_python} "$@"')
    detected = look(machine)
    assert [python.path for python in detected.snapshot.interpreters] == [base_python]
    assert detected.notes == ()


@pytest.mark.integration
def test_a_shim_that_stands_for_several_programs_is_started_by_its_name(
    machine: Machine, base_python: str
) -> None:
    # As mise does: every shim is a link to one program that looks at the name it was called by.
    shims = machine.tool("shims", f'case "$0" in */python3) exec {base_python} "$@";; esac; exit 9')
    (machine.bin / "python3").symlink_to(shims)
    detected = look(machine)
    assert [python.path for python in detected.snapshot.interpreters] == [base_python]


@pytest.mark.integration
@pytest.mark.parametrize("copies", [False, True], ids=["links", "copies"])
def test_a_virtualenv_is_resolved_to_what_it_was_made_from(
    copies: bool, machine: Machine, base_python: str
) -> None:
    inside = machine.folder / "env"
    options = ["--copies"] if copies else []
    subprocess.run([base_python, "-m", "venv", "--without-pip", *options, inside], check=True)
    environ = {**machine.environ, "PATH": f"{inside}/bin", "VIRTUAL_ENV": str(inside)}
    detected = snapshot(site(), environ)
    assert [python.path for python in detected.snapshot.interpreters] == [base_python]


@pytest.mark.integration
def test_a_virtualenv_whose_base_has_gone_is_skipped(machine: Machine, base_python: str) -> None:
    inside = machine.folder / "env"
    subprocess.run([base_python, "-m", "venv", "--without-pip", inside], check=True)
    # A shim stands where the copied interpreter would, so that only the configuration decides.
    (inside / "bin" / "python3").unlink()
    fake(machine, "python3", folder="env/bin")
    configuration = inside / "pyvenv.cfg"
    configuration.write_text("home = /no/such/place\nversion = 3.11.2\n")
    detected = look(machine, str(inside / "bin" / "python3"))
    assert detected.snapshot.interpreters == ()
    assert "base interpreter" in detected.notes[0]


@pytest.mark.integration
def test_a_modules_python_keeps_the_sites_path_and_is_not_the_systems(
    machine: Machine, base_python: str
) -> None:
    stated = machine.folder / "module-python"
    stated.symlink_to(base_python)
    (machine.bin / "python3").symlink_to(base_python)
    modules = (
        StatedModule(name="Python/2", provides={"python": "2.0.0"}, python=str(stated)),
        StatedModule(name="Python/9", provides={"python": "9.9.9"}, python="/no/such/python"),
        StatedModule(name="NCCL/2.3.7", provides={"nccl": "2.3.7"}),
    )
    detected = snapshot(site(modules=modules), machine.environ)
    assert [python.path for python in detected.snapshot.interpreters] == [str(stated)]
    assert detected.snapshot.modules == modules
    assert len(detected.notes) == 1
    assert all(each in detected.notes[0] for each in ("Python/2", "python 2.0.0"))


@pytest.mark.integration
def test_a_shorter_stated_version_agrees(machine: Machine) -> None:
    path = fake(machine, "python3", version="3.7.4")
    module = StatedModule(name="Python/3.7", provides={"python": "3.7"}, python=str(path))
    detected = snapshot(site(modules=(module,)), {**machine.environ, "PATH": ""})
    assert versions(detected) == ["3.7.4"]
    assert not [note for note in detected.notes if "stated" in note]


@pytest.mark.integration
def test_asking_leaves_no_file_behind(machine: Machine, base_python: str) -> None:
    (machine.bin / "python3").symlink_to(base_python)
    before = sorted(machine.folder.rglob("*"))
    assert len(look(machine).snapshot.interpreters) == 1
    assert sorted(machine.folder.rglob("*")) == before


@pytest.mark.integration
def test_this_machines_pythons_answer() -> None:
    if shutil.which("python3") is None:
        pytest.skip("needs python3 on PATH")
    detected = snapshot(site(), os.environ)
    assert detected.snapshot.interpreters, detected.notes
    for python in detected.snapshot.interpreters:
        assert os.path.realpath(python.path) == python.path
        assert not (Path(python.path).parent.parent / "pyvenv.cfg").exists()

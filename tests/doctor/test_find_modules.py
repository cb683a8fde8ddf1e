from __future__ import annotations

import os
from pathlib import Path

import pytest

from envbuilder.doctor.modules import modules_section
from envbuilder.machine.host import LocalMachine
from envbuilder.machine.local_site import local_site
from envbuilder.machine.modules.find import LMOD_HOMES, TCL_HOMES, find_modules

from .conftest import Machine, host

LMOD_SAYS = "echo 'Modules based on Lua: Version 8.6.19  2022-04-16 13:46' >&2"
TCL_SAYS = "echo 'Modules Release 5.2.0 (2022-11-08)' >&2"


def lmod(machine: Machine, home: str, script: str = LMOD_SAYS) -> None:
    machine.file(f"{home}/libexec/lmod", f"#!/bin/sh\n{script}\n").chmod(0o755)
    machine.file(f"{home}/init/bash", "module() { :; }\n")


def tcl(machine: Machine, command: str, home: str) -> None:
    machine.file(command, f"#!/bin/sh\n{TCL_SAYS}\n").chmod(0o755)
    machine.file(f"{home}/init/bash", "module() { :; }\n")


def test_none_is_none(machine: Machine) -> None:
    assert find_modules(host(machine)).tool is None


@pytest.mark.parametrize("home", LMOD_HOMES)
def test_lmod_is_found_where_sites_put_it(home: str, machine: Machine) -> None:
    lmod(machine, home)
    tool = find_modules(host(machine)).tool
    assert tool is not None
    assert (tool.system, tool.init, tool.active) == ("lmod", f"{home}/init/bash", False)


@pytest.mark.parametrize("home", TCL_HOMES)
@pytest.mark.parametrize("command", ["libexec/modulecmd.tcl", "modulecmd.tcl", "bin/modulecmd"])
def test_environment_modules_are_found_where_sites_put_them(
    home: str, command: str, machine: Machine
) -> None:
    tcl(machine, f"{home}/{command}", home)
    tool = find_modules(host(machine)).tool
    assert tool is not None
    assert (tool.system, tool.command) == ("tcl", f"{home}/{command}")


def test_debian_keeps_modulecmd_apart_from_its_home(machine: Machine) -> None:
    tcl(machine, "/usr/lib/powerpc64le-linux-gnu/modulecmd.tcl", "/usr/share/modules")
    tool = find_modules(host(machine)).tool
    assert tool is not None
    assert tool.init == "/usr/share/modules/init/bash"


def test_what_the_shell_uses_comes_before_what_is_installed(machine: Machine) -> None:
    lmod(machine, LMOD_HOMES[0])
    lmod(machine, "/sw/lmod/8.7")
    tool = find_modules(host(machine, LMOD_CMD="/sw/lmod/8.7/libexec/lmod")).tool
    assert tool is not None
    assert (tool.init, tool.active) == ("/sw/lmod/8.7/init/bash", True)


def test_modules_home_names_either_kind(machine: Machine) -> None:
    lmod(machine, "/sw/lmod")
    tcl(machine, "/sw/tcl/libexec/modulecmd.tcl", "/sw/tcl")
    for home, system in (("/sw/lmod", "lmod"), ("/sw/tcl", "tcl")):
        tool = find_modules(host(machine, MODULESHOME=home)).tool
        assert tool is not None
        assert (tool.system, tool.found_by) == (system, "MODULESHOME")


@pytest.mark.parametrize("value", ["/gone/libexec/lmod", "relative", "/", "\n"])
def test_a_variable_that_leads_nowhere_is_told_and_not_believed(
    value: str, machine: Machine
) -> None:
    found = find_modules(host(machine, LMOD_CMD=value))
    assert found.tool is None
    assert len(found.notes) == 1
    assert found.notes[0].startswith("LMOD_CMD=")


@pytest.mark.integration
def test_section_tells_version_trees_and_what_is_loaded(machine: Machine) -> None:
    lmod(machine, LMOD_HOMES[0])
    machine.file("/sw/modules/all/GCC/8.lua", "")
    section = modules_section(
        host(machine, MODULEPATH="/sw/modules/all:/gone::/gone", LOADEDMODULES="GCC/8:zlib/1.2")
    )
    system, trees, loaded = section.items
    assert (system.status, system.found) == ("ok", "Lmod 8.6.19")
    assert system.facts["version"] == "8.6.19"
    assert (trees.status, trees.found) == ("ok", "2 in MODULEPATH, 1 of them exist")
    assert "/gone (does not exist)" in trees.details
    assert loaded.details == ("GCC/8", "zlib/1.2")


@pytest.mark.integration
def test_environment_modules_tell_their_version(machine: Machine) -> None:
    tcl(machine, "/usr/share/Modules/libexec/modulecmd.tcl", "/usr/share/Modules")
    assert modules_section(host(machine)).items[0].found == "Environment Modules 5.2.0"


@pytest.mark.integration
def test_a_module_system_that_does_not_answer_is_a_problem(machine: Machine) -> None:
    lmod(machine, LMOD_HOMES[0], "echo 'lua: not found' >&2; exit 127")
    item = modules_section(host(machine)).items[0]
    assert item.status == "problem"
    assert any("lua: not found" in line for line in item.details)


def test_without_one_the_user_is_told_how_to_go_on(machine: Machine) -> None:
    item = modules_section(host(machine)).items[0]
    assert item.status == "missing"
    assert "source PREFIX/bin/activate" in str(item.without_root)
    assert item.debian == "lmod"


def test_no_tree_that_exists_is_a_problem(machine: Machine) -> None:
    item = modules_section(host(machine, MODULEPATH="/gone:/away")).items[1]
    assert item.status == "problem"


def test_the_local_site_holds_what_was_found_and_states_no_modules() -> None:
    site = local_site({})
    assert site.name == "local"
    assert len(site.arch) == 1
    assert (site.modules, site.module_trees, site.launcher, site.base) == ((), (), None, None)


def test_the_local_site_follows_the_shells_lmod(tmp_path: Path) -> None:
    home = tmp_path / "lmod"
    for path in ("libexec/lmod", "init/bash"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).touch()
    environ = {"LMOD_CMD": f"{home}/libexec/lmod", "MODULEPATH": "/a:/b", "PATH": ""}
    site = local_site(environ)
    assert (site.module_system, site.module_init) == ("lmod", f"{home}/init/bash")
    assert site.module_trees == ()


def test_a_module_system_without_init_file_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "libexec").mkdir()
    (tmp_path / "libexec" / "lmod").touch()
    assert local_site({"LMOD_CMD": f"{tmp_path}/libexec/lmod"}).module_system == "none"


def test_a_folder_that_no_document_admits_is_not_used(tmp_path: Path) -> None:
    home = tmp_path / "line\nbreak"
    for path in ("libexec/lmod", "init/bash"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).touch()
    assert local_site({"LMOD_CMD": f"{home}/libexec/lmod"}).module_system == "none"


@pytest.mark.integration
def test_this_machines_module_system_answers() -> None:
    if find_modules(LocalMachine(os.environ)).tool is None:
        pytest.skip("needs Lmod or Environment Modules")
    item = modules_section(LocalMachine(os.environ)).items[0]
    assert item.status == "ok", item.details
    assert str(item.facts["version"])[0].isdigit()

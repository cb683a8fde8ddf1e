"""What environment, home and file systems say: pip, proxies, places, Python settings."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuilder.doctor.network import address, network_section, pip_options
from envbuilder.doctor.places import look_at, places_section
from envbuilder.doctor.pythons import settings_section
from envbuilder.machine.item_values import Section
from envbuilder.model.site import Interpreter

from .conftest import Machine, host, item


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:secret@index.example:8443/simple/token", "https://index.example:8443"),
        ("https://secret@index.example/x?token=secret#secret", "https://index.example"),
        ("user:secret@proxy.example:3128", "proxy.example:3128"),
        ("http://[::1]:3128/", "http://[::1]:3128"),
        ("http://[broken", "(unreadable)"),
        ("https://host:port-is-secret/", "(unreadable)"),
        ("/srv/wheels", "(a local folder)"),
        ("file:///srv/wheels", "file: a local folder"),
    ],
)
def test_addresses_are_cut_down_to_their_hosts(text: str, shown: str) -> None:
    assert address(text) == shown


def test_no_credential_reaches_the_report(machine: Machine) -> None:
    machine.file(
        "/etc/pip.conf",
        "[global]\nindex-url = https://bob:secret@index.example/secret/simple\n"
        "extra-index-url =\n    https://a:secret@one.example/\n    https://two.example/?t=secret\n"
        "proxy = http://bob:secret@proxy.example:3128\ncert = /secret\n",
    )
    machine.file("/etc/xdg/pip/pip.conf", "index-url = https://bob:secret@index.example\n")
    section = network_section(
        host(
            machine,
            HTTPS_PROXY="http://bob:secret@proxy.example:3128",
            no_proxy="secret.example",
            PIP_INDEX_URL="https://bob:secret@three.example/simple",
        )
    )
    text = section.model_dump_json()
    assert "secret" not in text
    assert "bob" not in text
    assert item(section, "network.pip-indexes").facts["count"] == 4
    files = item(section, "network.pip-files")
    assert files.status == "problem"
    assert "/etc/xdg/pip/pip.conf (not a valid configuration)" in files.details
    assert item(section, "network.proxies").details == (
        "HTTPS_PROXY: http://proxy.example:3128",
        "no_proxy: set",
    )


def test_options_that_put_packages_elsewhere_are_a_problem(machine: Machine) -> None:
    machine.file("/etc/pip.conf", "[install]\nuser = true\nprefix =\n[global]\ntarget = /x\n")
    section = network_section(host(machine, PIP_REQUIRE_VIRTUALENV="0", PIP_NO_INDEX="1"))
    assert item(section, "network.pip-redirects").found == "target, user"
    indexes = item(section, "network.pip-indexes")
    assert indexes.found.startswith("none: ")
    assert indexes.facts["no-index"] is True


def test_pip_reads_nothing_when_told_so(machine: Machine) -> None:
    machine.file("/etc/pip.conf", "[global]\nno-index = true\n")
    assert pip_options(host(machine, PIP_CONFIG_FILE="/dev/null")) == ([], [], {})


def test_a_pip_configuration_that_cannot_be_read_is_a_problem(machine: Machine) -> None:
    (machine.files / "etc" / "pip.conf").mkdir(parents=True)
    files = item(network_section(host(machine)), "network.pip-files")
    assert (files.status, files.facts["count"]) == ("problem", 0)
    assert files.details == ("/etc/pip.conf (cannot be read)",)


def test_a_file_system_that_reports_nothing_is_a_note(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: object) -> os.statvfs_result:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    machine.home.mkdir(exist_ok=True)
    monkeypatch.setattr(os, "statvfs", refuse)
    root = item(places_section(host(machine), machine.home, machine.home), "places.root")
    assert (root.status, "free-bytes" in root.facts, len(root.details)) == ("note", False, 2)


def test_a_place_that_is_not_there_yet_is_judged_by_what_is(tmp_path: Path) -> None:
    place = look_at(tmp_path / "a" / "b" / "c")
    assert place.existing == tmp_path
    assert place.writable
    assert place.free_bytes is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.integration
def test_a_read_only_home_is_told_with_what_to_do(
    machine: Machine, need: Callable[[str], str]
) -> None:
    # Root may write anywhere but on a read-only mount, so make one, seen by this program alone.
    program = (
        "import os\nfrom envbuilder.machine.host import LocalMachine\n"
        "from envbuilder.doctor.places import places_section\n"
        "print(places_section(LocalMachine(os.environ), None, None).model_dump_json())"
    )
    mounted = (
        f"mount -t tmpfs -o ro tmpfs '{machine.home}' && exec '{sys.executable}' -c '{program}'"
    )
    finished = subprocess.run(
        [need("unshare"), "--user", "--map-root-user", "--mount", "sh", "-c", mounted],
        env={**os.environ, "HOME": str(machine.home), "XDG_CACHE_HOME": ""},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        pytest.skip(f"cannot mount in a user namespace here: {finished.stderr.strip()}")
    section = Section.model_validate_json(finished.stdout)
    for item_id in ("places.home", "places.cache"):
        found = item(section, item_id)
        assert found.status == "problem"
        assert "not writable" in found.found
        assert "XDG_CACHE_HOME" in str(found.without_root)


@pytest.mark.parametrize("home", ["", "relative", "/no/such/home", "/dev/null", "/dev/null/x"])
def test_no_home_is_told(home: str, machine: Machine) -> None:
    section = places_section(host(machine, HOME=home), None, None)
    assert item(section, "places.home").status == "problem"


def test_cache_and_root_are_the_callers_where_given(machine: Machine, tmp_path: Path) -> None:
    section = places_section(host(machine), tmp_path / "root", tmp_path / "cache")
    assert item(section, "places.cache").facts["path"] == str(tmp_path / "cache")
    assert item(section, "places.root").facts["path"] == str(tmp_path / "root")
    moved = places_section(host(machine, XDG_CACHE_HOME="/scratch"), None, None)
    assert item(moved, "places.cache").facts["path"] == "/scratch/envbuild"


@pytest.mark.parametrize(("text", "status"), [("0077", "note"), ("0022", "ok"), ("0027", "ok")])
def test_umask_is_read_not_asked(text: str, status: str, machine: Machine) -> None:
    machine.file("/proc/self/status", f"Name:\tx\nUmask:\t{text}\n")
    assert item(places_section(host(machine), None, None), "places.umask").status == status


def test_python_settings_name_the_culprits(machine: Machine) -> None:
    folder = machine.home / ".local/lib/python3.11/site-packages"
    for name in ("numpy-1.0.dist-info", "six-1.0.dist-info", "numpy"):
        (folder / name).mkdir(parents=True)
    python = Interpreter(
        path="/usr/bin/python3.11", version="3.11.2", arch="x86_64", can_make_venv=True
    )
    section = settings_section(
        host(machine, PYTHONPATH="/old:", VIRTUAL_ENV="/env", CONDA_PREFIX="/conda"), [python]
    )
    packages = item(section, "python-settings.user-packages")
    assert (packages.status, packages.facts["count"]) == ("note", 2)
    path = item(section, "python-settings.pythonpath")
    assert (path.status, path.details) == ("problem", ("/old", "(the current folder)"))
    assert item(section, "python-settings.virtual-env").found == "/env"
    assert item(section, "python-settings.conda-prefix").found == "/conda"

"""``spack find --json`` and spack.lock: records as Spack 0.17 to 0.23 and 1.0 write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError
from envbuilder.formats.foreign import read_text
from envbuilder.formats.spack_json import read

COMPILER = {"name": "gcc", "version": "12.2.0"}
ARCH = {"platform": "linux", "platform_os": "rhel8", "target": "x86_64"}
ZEN = {"name": "zen2", "vendor": "AuthenticAMD", "features": ["avx2"], "parents": ["zen"]}


def record(name: str, version: str, **more: Any) -> dict[str, Any]:
    """Return a record. *more*: the keys that differ from those of most packages."""
    return {
        "name": name,
        "version": version,
        "arch": ARCH,
        "compiler": COMPILER,
        "namespace": "builtin",
        "parameters": {"build_system": "autotools", "cflags": []},
        "dependencies": [{"name": "hwloc", "hash": "a" * 32, "type": ["build", "link"]}],
        "hash": "b" * 32,
        **more,
    }


OPENMPI = record("openmpi", "4.1.6")
TORCH = record("py-torch", "2.1.2", arch={**ARCH, "target": ZEN})
# Of Spack 1.0: the compiler is a dependency.
CUDNN = {key: value for key, value in record("cudnn", "8.9.7.29-12").items() if key != "compiler"}


def of(records: object, indent: int | None) -> tuple[dict[str, str], list[str]]:
    text = json.dumps(records, indent=indent)
    asked, notes = read(source_of(text.encode(), "find.json"))
    return dict(asked.software), [":".join(note.split(":")[1:3]) for note in notes]


@pytest.mark.parametrize("indent", [None, 1])
def test_releases_and_compilers_are_read(indent: int | None) -> None:
    software, places = of([OPENMPI, TORCH, CUDNN], indent)
    assert software == {
        "openmpi": "==4.1.6",
        "gcc": "==12.2.0",
        "py-torch": "==2.1.2",
        "cudnn": "==8.9.7.29",
    }
    # Variants and such once, as the system; the target of the second record.
    column = len(json.dumps([OPENMPI])) + 2
    expected = ["1:2", "1:2", f"1:{column}"] if indent is None else ["2:2", "2:2", "31:2"]
    assert places == expected


def test_a_second_release_is_noted() -> None:
    software, places = of([OPENMPI, record("openmpi", "5.0.3")], 1)
    assert software["openmpi"] == "==4.1.6"
    assert "31:2" in places


def test_a_lock_has_the_same_records() -> None:
    roots = [{"hash": "b" * 32, "spec": "openmpi"}]
    lock = {"_meta": {"file-type": "spack-lockfile"}, "roots": roots}
    lock["concrete_specs"] = {"b" * 32: OPENMPI}  # type: ignore[assignment]
    assert of(lock, 1)[0] == {"openmpi": "==4.1.6", "gcc": "==12.2.0"}


def test_a_lock_without_what_only_builds_need() -> None:
    def dependency(name: str, *types: str, virtuals: tuple[str, ...] = ()) -> dict[str, Any]:
        parameters = {"deptypes": types, "virtuals": virtuals}
        return {"name": name, "hash": name, "parameters": parameters}

    needs = [dependency("hwloc", "build", "link"), dependency("cmake", "build")]
    needs.append(dependency("gcc", "build", virtuals=("c", "cxx")))
    concrete = {
        "mpich": record("mpich", "4.2.1", dependencies=needs),
        "hwloc": record("hwloc", "2.9.1", dependencies=[dependency("m4", "build")]),
        "cmake": record("cmake", "3.27.9", dependencies=[dependency("zlib", "link")]),
        "zlib": record("zlib", "1.3", dependencies=[]),
        "m4": record("m4", "1.4.19", dependencies=[]),
        "gcc": record("gcc", "12.2.0", dependencies=[], external={"path": "/usr"}),
    }
    roots = [{"hash": "mpich", "spec": "mpich@4"}]
    software, places = of({"roots": roots, "concrete_specs": concrete}, None)
    assert software == {"mpich": "==4.2.1", "gcc": "==12.2.0", "hwloc": "==2.9.1"}
    # The roots, three packages of builds, one of the machine, the other values, the system.
    assert len(places) == 7


def test_a_lock_whose_dependencies_are_a_mapping() -> None:
    """They are kept as those of a list are."""
    needs = {"hwloc": {"hash": "hwloc", "type": ["link"]}, "m4": {"hash": "m4", "type": ["build"]}}
    concrete = {
        "mpich": record("mpich", "3.4", dependencies=needs),
        "hwloc": record("hwloc", "2.4.1", dependencies={}),
        "m4": record("m4", "1.4.18", dependencies={}),
    }
    roots = [{"hash": "mpich", "spec": "mpich"}]
    software, _ = of({"roots": roots, "concrete_specs": concrete}, None)
    assert set(software) - {"gcc"} == {"mpich", "hwloc"}


def test_the_content_of_a_file_tells_its_form() -> None:
    source = source_of(json.dumps([OPENMPI]).encode(), "find.json")
    read_file = read_text(source, None, "linux-aarch64", lambda _: None)
    assert (read_file.form, read_file.platform) == ("list of Spack", "linux-64")


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ('[{"name": "a",\n"hash" "b"}]', "package-list.not-json", 2),
        ('[{"hash": "b"}]', "package-list.missing-key", 1),
        ('["openmpi"]', "package-list.not-a-mapping", 1),
    ],
)
def test_a_broken_list_is_refused_with_its_line(text: str, problem: str, line: int) -> None:
    with pytest.raises(DocumentError) as refusal:
        read(source_of(text.encode(), "find.json"))
    error = refusal.value.problems[0]
    assert error.place is not None
    assert (error.id, error.place.line) == (problem, line)

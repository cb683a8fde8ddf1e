"""What a build of Horovod holds, compared with its entry of builds.json.

What its flags mean to its release, the entry states: ``parts`` and ``cpu_operations``. Read from
the sources of the releases 0.16.4 to 0.28.1.
"""

import os
import re
from pathlib import Path

from .files import read_json
from .names import release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Mapping

    from .wheel_key import Build

# A framework's package -> its name in Horovod's flags, and in horovod/metadata.json.
FRAMEWORKS = {
    "tensorflow": ("TENSORFLOW", "tensorflow"),
    "torch": ("PYTORCH", "pytorch"),
    "mxnet": ("MXNET", "mxnet"),
}
# horovod.lds exports whatever has horovod in its name, so that these classes stay visible in a
# stripped library; the symbols of Gloo and of a static NCCL are local.
CLASSES = {
    "mpi": "MPIAllreduce",
    "gloo": "GlooAllreduce",
    "nccl": "NCCLAllreduce",
    "ddl": "DDLAllreduce",
    "ccl": "CCLAllreduce",
}
# enum LibType of horovod/common/utils/env_parser.h, the same from 0.18 on; 1 was MLSL before 0.19.
CPU_OPERATIONS = {"MPI": 0, "MLSL": 1, "CCL": 1, "GLOO": 2}
CPU_OPERATIONS_FUNCTION = "_ZN7horovod6common18ParseCPUOpsFromEnvEv"
METADATA = (0, 21, 1)
# A header of each library whose folder a flag names: HOROVOD_NCCL_HOME, HOROVOD_CUDA_INCLUDE.
LIBRARY_HEADERS = {"NCCL": "nccl.h", "CUDA": "cuda_runtime.h"}
# Below tensorflow.sysconfig.get_include(); 1.15 and 2.0 have their files in tensorflow_core.
TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow_core")
TENSORFLOW_HEADER = "include/tensorflow/core/framework/op.h"
NCCL_CODE = (0, 20)  # from here on horovod_nccl_built() returns NCCL's version


def is_the_sites(build: "Build") -> bool:
    """Return whether a module brings it: then only what the recipe says of it is known."""
    return bool(build.get("module"))


def parts(build: "Build") -> "Mapping[str, bool]":
    """Return what is compiled in by the entry: part -> True or False; others may be either."""
    return build["parts"] or {}


def compiled_in(defined: "Iterable[str]") -> "dict[str, bool]":
    """Return what the names that a library defines show to be compiled in."""
    text = "\n".join(name for name in defined if "7horovod6common" in name)
    marks = {name: f"6common{len(mark)}{mark}" for name, mark in CLASSES.items()}
    return {name: mark in text for name, mark in marks.items()}


def native_libraries(package: "Path") -> "dict[str, list[Path]]":
    """Return the native libraries of each framework in an installed horovod package."""
    # torch/mpi_lib_v2.<tag>.so, tensorflow/mpi_lib.<tag>.so, before 0.20 torch/mpi_lib/_mpi_lib.so
    return {name: sorted((package / name).rglob("*mpi_lib*.so")) for name in FRAMEWORKS}


def missing_headers(
    build: "Build", folders: "Iterable[str]", homes: "Iterable[tuple[str, str]]"
) -> "Iterator[tuple[str, str]]":
    """Yield (library, path) of each header that a build of Horovod includes and that is missing.

    *folders*: where Python looks for packages. *homes*: (flag, folder) of CUDA and NCCL; those in
    a folder of the compiler's CPATH are found too. PyTorch's headers may be the system's.
    """
    places = [Path(each, name) for each in folders for name in TENSORFLOW_PACKAGES]
    packages = [each for each in places if each.is_dir()] or [Path("tensorflow")]
    headers = [each / TENSORFLOW_HEADER for each in packages]
    required = "HOROVOD_WITH_TENSORFLOW" in build["flags"]  # otherwise it is left out
    if required and not any(each.is_file() for each in headers):
        yield "TensorFlow", str(headers[0])
    for flag, home in homes:
        match = re.fullmatch(r"HOROVOD_(NCCL|CUDA)_(HOME|INCLUDE)", flag)
        if match:
            header = LIBRARY_HEADERS[match.group(1)]
            inside = "include" if match.group(2) == "HOME" else "."
            path = Path(home, inside, header)
            others = [*Path(home).glob("targets/*/include/" + header), *_on_cpath(header)]
            if not path.is_file() and not others:
                yield match.group(1), str(path)


def _on_cpath(header: str) -> "list[Path]":
    """Return the files of a name that the compiler finds through its variables."""
    entries = (os.environ.get(each, "").split(":") for each in ("CPATH", "CPLUS_INCLUDE_PATH"))
    files = (Path(entry, header) for those in entries for entry in those if entry)
    return [each for each in files if each.is_file()]


def metadata_facts(
    build: "Build", package: "Path", versions: "Mapping[str, str | None]"
) -> "Iterator[tuple[bool | None, str]]":
    """Yield (passed, text) about horovod/metadata.json, which the build writes.

    *versions*: framework -> its version where it is known.
    """
    path = package / "metadata.json"
    if release(build["version"]) < METADATA and not path.is_file():
        yield None, f"Horovod {build['version']} writes no horovod/metadata.json"
        return
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        yield False, f"cannot read horovod/metadata.json: {error}"
        return
    if not isinstance(found, dict):
        yield False, "horovod/metadata.json is not a JSON object"
        return
    for framework, (_, name) in sorted(FRAMEWORKS.items()):
        built = found.get(name)
        if (built is not None) != (framework in build["frameworks"]):
            wanted = framework in build["frameworks"]
            asked = "planned" if wanted else "not planned"
            passed = None if is_the_sites(build) and not wanted else False
            yield (
                passed,
                f"horovod/metadata.json states {name}: {built}, but {framework} is {asked}",
            )
        elif built is not None:
            there = versions.get(framework)
            fits = None if there is None else built == there
            text = f"horovod/metadata.json: built for {framework} {built}"
            yield fits, text if fits else f"{text}, installed is {there or 'an unknown release'}"


def said_by_library(
    build: "Build", answers: "Mapping[str, int]"
) -> "Iterator[tuple[bool | None, str]]":
    """Yield (passed, text) about what a loaded library answers to horovod_*_built()."""
    wanted = parts(build)
    for name, value in sorted(answers.items()):
        if name in wanted:
            fits = bool(value) == wanted[name]
            text = f"horovod_{name}_built() is {value}"
            yield fits, text if fits else f"{text}, the plan {words(name, wanted[name])}"
    if answers.get("nccl") and build["nccl"] and release(build["version"]) >= NCCL_CODE:
        wants, code = build["nccl"]["version"], answers["nccl"]
        fits = code == nccl_code(wants)
        text = f"NCCL's version number was {code} when it was compiled"
        yield fits, text if fits else f"{text}; NCCL {wants} has {nccl_code(wants)}"
    asked = build["cpu_operations"]
    if asked and "cpu_operations" not in answers:
        yield None, f"no library states the default of the CPU operations; planned: {asked}"
    elif asked:
        fits = answers["cpu_operations"] == CPU_OPERATIONS[asked]
        names = [n for n, number in CPU_OPERATIONS.items() if number == answers["cpu_operations"]]
        text = "CPU operations default to " + (names or ["?"])[-1]
        yield fits, text if fits else f"{text}; planned: {asked}"


def words(name: str, wanted: bool) -> str:
    """Return what the plan says about a part, in words."""
    return ("wants " if wanted else "has no ") + name.upper()


def nccl_code(version: str) -> int:
    """Return NCCL_VERSION_CODE: 2.7.8 is 2708, from 2.9 on 2.9.6 is 20906 (nccl.h)."""
    major, minor, patch = (*release(version), 0, 0)[:3]
    scale = (1000, 100) if (major, minor) <= (2, 8) else (10000, 100)
    return major * scale[0] + minor * scale[1] + patch

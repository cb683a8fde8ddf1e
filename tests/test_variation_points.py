"""Outside the rooms of the variation points nobody compares with the names of their entries.

A *use* is a string constant with the name of an entry that is compared, matched, looked up, a key
of a dict, a word of a ``Literal`` or of a tuple, list or set: whoever writes one of these knows one
entry from another. Text that only mentions a name is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from envbuilder.build.backends import BACKENDS
from envbuilder.ci.providers import PROVIDERS
from envbuilder.launching.launchers import LAUNCHERS
from envbuilder.launching.schedulers import SCHEDULERS
from envbuilder.render.forms import FORMS
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.targets import TARGETS

from .layers import ROOMS, imports, sources

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

# These forms are called by the languages of modulefiles, which are no variation point.
_LANGUAGES = {"lua", "tcl"}
POINTS = (BACKENDS, TARGETS, LAUNCHERS, SCHEDULERS, PROVIDERS, FORMS, RUNTIMES)
NAMES = frozenset({name for point in POINTS for name in point} - _LANGUAGES)
FILES = {path: text for path, text in sources("envbuilder").items() if not path.startswith(ROOMS)}

# Places that may, and why.
_INSIDE = "names of libraries and modules that the programs inside a target look at"
_PROGRAMS = "which MPI a program belongs to, by what it prints"
_REPORT = "names of doctor's sections and lines"
STATED: dict[str, tuple[int, str]] = {
    "envbuilder/model/recipe.py": (1, "what people take for backends"),
    "envbuilder/model/plan.py": (2, "MPIs in locks of before pins said what they fulfil"),
    "envbuilder/knowledge/terms.py": (1, "the origins of components"),
    "envbuilder/knowledge/channels.py": (1, "the origin of what comes from conda channels"),
    "envbuilder/model/validation.py": (1, "the kinds of environments, whoever made them"),
    "envbuilder/validate/checks/frameworks.py": (
        1,
        "which file states a release",
    ),
    "envbuilder/ci/values.py": (1, "a stage of pipelines, called as the verb envbuild image"),
    "envbuilder/ci/jobs.py": (2, "the verbs envbuild bundle and envbuild image"),
    "envbuilder/cli/__init__.py": (2, "the verbs envbuild bundle and envbuild image"),
    "envbuilder/formats/conda_lock.py": (1, "the managers of packages in conda-lock.yml"),
    "envbuilder/formats/conda_recipe.py": (1, "a section of meta.yaml"),
    "envbuilder/formats/pixi_lock.py": (2, "the kinds of packages in pixi.lock"),
    "envbuilder/formats/project_toml.py": (2, "the table of pixi in pyproject.toml"),
    "envbuilder/formats/spack_yaml.py": (2, "the packages that provide mpi in Spack"),
    "envbuilder/images/oci_contents.py": (1, "a key of the text that cosign signs"),
    "envbuilder/inspect/mpi.py": (2, _PROGRAMS),
    "envbuilder/doctor/capabilities.py": (2, _REPORT),
    "envbuilder/doctor/examine.py": (1, _REPORT),
    "envbuilder/machine/items.py": (1, _REPORT),
    "envbuilder/machine/mpi_programs.py": (3, _PROGRAMS),
    "envbuilder/machine/system.py": (2, _PROGRAMS),
    "envbuilder/machine/mpi.py": (15, _PROGRAMS),
    "envbuilder/target_tools/horovod_build.py": (1, _INSIDE),
    "envbuilder/target_tools/smoke/api_horovod.py": (2, _INSIDE),
    "envbuilder/target_tools/library_facts.py": (1, _PROGRAMS),
}


def uses(text: str) -> Iterator[str]:
    """Yield every use of an entry's name as ``line N: 'name'``."""
    for node in ast.walk(ast.parse(text)):
        for constant in _constants(node):
            if constant.value in NAMES:
                yield f"line {constant.lineno}: {constant.value!r}"


_LOOKING_UP = {"get", "pop", "setdefault", "startswith", "endswith"}


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants of a node that tells values apart or looks one up."""
    if isinstance(node, ast.Compare):
        yield from _plain(node.left, *node.comparators)
    elif isinstance(node, ast.MatchValue):
        yield from _plain(node.value)
    elif isinstance(node, ast.Dict):
        yield from _plain(*(key for key in node.keys if key is not None))
    elif isinstance(node, ast.Subscript):
        yield from _plain(node.slice)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from _plain(*node.elts)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _LOOKING_UP:
        yield from _plain(*node.args)


def _plain(*nodes: ast.expr) -> Iterator[ast.Constant]:
    yield from (node for node in nodes if isinstance(node, ast.Constant))


def test_nothing_outside_the_rooms_knows_an_entry_by_its_name() -> None:
    found = {path: list(uses(text)) for path, text in FILES.items()}
    assert set(STATED) <= set(found), "a file of the list is gone: take it out"
    listed = {path: count for path, (count, _) in STATED.items()}
    wrong = {
        path: (f"listed: {listed.get(path, 0)}", each)
        for path, each in found.items()
        if len(each) != listed.get(path, 0)
    }
    assert wrong == {}, "ask the entry instead of its name; take a use that is gone from the list"


def test_nothing_outside_the_room_imports_one_runtime() -> None:
    """Its constants and functions would be another way to know it by name."""
    modules = {
        f"envbuilder.runtimes.{each.__name__.rpartition('.')[2]}" for each in RUNTIMES.values()
    }
    wrong = {
        path: found
        for path, text in FILES.items()
        if (found := [each for each in imports(path, text) if each.startswith((*modules,))])
    }
    assert wrong == {}


NAME = sorted(LAUNCHERS)[0]


@pytest.mark.parametrize(
    "line",
    [
        *(f"x = runtime.package == '{name}'" for name in RUNTIMES),
        f"x = backend == '{NAME}'",
        f"x = '{NAME}' != backend",
        f"x = backend in ('other', '{NAME}')",
        f"x = backend not in {{'{NAME}'}}",
        f"x = {{'{NAME}': 1}}",
        f"x = table['{NAME}']",
        f"x = table.get('{NAME}', 1)",
        f"x = name.startswith('{NAME}')",
        f"Kind = Literal['other', '{NAME}']",
        f"KINDS = ('other', '{NAME}')",
        f"match backend:\n    case '{NAME}':\n        x = 1",
        f"match backend:\n    case 'other' | '{NAME}':\n        x = 1",
    ],
)
def test_a_planted_comparison_is_found(line: str) -> None:
    assert list(uses(line)) != []


@pytest.mark.parametrize(
    "line", [f"x = '{NAME}'", f"raise ValueError('take {NAME}')", f"'''{NAME}'''", "x = {'a': 1}"]
)
def test_what_only_mentions_a_name_is_none(line: str) -> None:
    assert list(uses(line)) == []

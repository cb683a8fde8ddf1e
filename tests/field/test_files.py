"""``recipes import`` of files that people have, beside what an engineer expects of each.

``files/README.md`` describes the corpus, ``outcomes.tsv`` the outcome of each file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envbuilder.errors import DocumentError, UsageError
from envbuilder.formats.match_spec import parse
from envbuilder.knowledge.names import package_names
from envbuilder.machine.modules.names import stems
from envbuilder.reporter import Report
from envbuilder.target_tools.names import normalize
from envbuilder.workflow.context import Context
from envbuilder.workflow.foreign_files import import_recipe, known_names
from tests import goldens

FOLDER = Path(__file__).parent / "files"
CASES = sorted(each.parent.name for each in FOLDER.glob("*/truth.yaml"))
OUTCOMES = Path(__file__).parent / "outcomes.tsv"
"""Columns: case, expectation, outcome.

works: all of the recipe, nothing lost. reported: each loss is, with its line. silent: something is
lost or wrong without a line. refused: exit code 2 with the line, or with each loss where neither a
component nor a package is left.
"""


# Faults by the truth that are none, and why.
DIFFERENCES = {
    "020-environment": ("line 19: - colabtools==0.0.1", "the index has this release"),
    "041-pixi-lock": (
        "nvidia-cusparselt-cu13 ==0.8.0, not []",
        "it is of the platform p1, which is reported",
    ),
    "078-spack": ("line 9: definitions:", "they are put in place"),
    "097-dockerfile": (
        "find-links: https://download.pytorch.org/whl/cu111/torch_stable.html",
        "it is reported as ${PYTORCH_VERSION/*+/}, an operation of bash",
    ),
}


@pytest.fixture(scope="module")
def context() -> Context:
    return Context(
        environ={key: os.environ[key] for key in ("HOME", "PATH")},
        cwd=FOLDER,
        clock=lambda: datetime(2026, 11, 28, tzinfo=timezone.utc),
        reporter=Report(StringIO(), StringIO()),
    )


@dataclass(frozen=True)
class Import:
    """The truth of a case, and the recipe that is made of its file."""

    truth: dict[str, Any]
    text: str
    recipe: dict[str, Any]
    losses: tuple[str, ...]
    names: dict[str, str]
    channels: dict[str, str]

    @cached_property
    def reported(self) -> set[int]:
        """The lines of the file that a loss names."""
        return {int(match[1]) for each in self.losses if (match := re.match(r"[^:]+:(\d+)", each))}

    def is_reported(self, *names: str, is_component: bool = False) -> bool:
        """Return whether a loss names a package, or a line that does."""
        words = "|".join(re.escape(normalize(name).strip("%")) for name in names)
        # libnccl2 and openmpi-3.0.0.tar.gz name a component too.
        word = re.compile(words if is_component else rf"(?<![\w-])({words})(?![\w-])")
        lines = enumerate(self.text.splitlines(), start=1)
        texts = [line for number, line in lines if number in self.reported]
        return any(word.search(normalize(each)) for each in (*self.losses, *texts))

    @cached_property
    def packages(self) -> dict[str, list[tuple[str, str | None]]]:
        """Bounds and builds by the name of the component or package."""
        found: dict[str, list[tuple[str, str | None]]] = {}
        for name, bounds in self.recipe["stack"].items():
            found.setdefault(normalize(name), []).append((bounds, None))
        runtime = self.recipe.get("runtime")
        if runtime:
            found[runtime["package"]] = [(runtime["version"], None)]
        for line in self.recipe.get("conda-packages", ()):
            spec = parse(line)
            assert spec is not None
            found.setdefault(normalize(spec.name), []).append((spec.version, spec.build))
        for line in self.recipe.get("packages", ()):
            name, rest = re.fullmatch(r"([\w.-]+)\s*(?:\[.*?\])?\s*([^;]*).*", line).groups()
            found.setdefault(normalize(name), []).append((rest or "*", None))
        return found

    def faults(self) -> Iterator[str]:
        """Yield what is lost or wrong without a line."""
        expected = self.truth["recipe"] or {}
        arch = expected.get("arch")
        if arch and not set(self.recipe["arch"]) <= set(arch):
            yield f"arch {self.recipe['arch']}, expected {arch}"
        for name, value in self._packages(expected):
            is_component = name in (*expected.get("components", ()), "python")
            yield from self._fault(name, value, is_component=is_component)
        yield from self._urls("channels", "channels", expected)
        yield from self._urls("indexes", "pip-indexes", expected)
        yield from self._urls("find_links", "find-links", expected)
        for module in expected.get("modules") or ():
            if not self._holds(module) and not self.is_reported(module, module.partition("/")[0]):
                yield f"module {module}"
        yield from self._silent_losses()
        for name in self.recipe["stack"].keys() - self.allowed:
            if not self.is_reported(name) and normalize(name) not in normalize(self.text):
                yield f"{name} is invented"

    def _packages(self, expected: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        if expected.get("python"):
            yield "python", expected["python"]
        for section in ("components", "conda_packages", "pip_packages", "spack_packages"):
            for name, value in (expected.get(section) or {}).items():
                for one in value if isinstance(value, list) else [value]:
                    yield name, one

    def _silent_losses(self) -> Iterator[str]:
        for loss in self.truth.get("losses") or ():
            lines = {loss["line"], *loss.get("also_lines", ())}
            if loss["action"] != "note" and not lines & self.reported:
                yield f"line {loss['line']}: {loss['text']}"

    def _holds(self, module: str) -> bool:
        """Return whether the stack has a module by its name, or by name and version."""
        software, _, version = module.partition("/")
        component = self.names.get(normalize(software))
        runtime = self.recipe.get("runtime", {})
        held = {**self.recipe["stack"], runtime.get("package"): runtime.get("version")}
        plain = held.get(component) or ""
        return module in held.values() or (
            plain.startswith("==") and version.startswith(plain.removeprefix("=="))
        )

    @cached_property
    def allowed(self) -> set[str]:
        """The components that the packages of the truth are."""
        expected = self.truth["recipe"] or {}
        names = {normalize(name) for name, _ in self._packages(expected)}
        return {"python", *names, *(self.names[name] for name in names if name in self.names)}

    def _urls(self, section: str, key: str, expected: dict[str, Any]) -> Iterator[str]:
        stated = self.recipe.get(key, ())
        urls = [each.rstrip("/") for each in (*stated, *map(self.channels.get, stated)) if each]
        for each in expected.get(section) or ():
            there = any(url == each.rstrip("/") or url.endswith(f"/{each}") for url in urls)
            unstated = any("no channel" in loss for loss in self.losses) and key == "channels"
            unused = key == "pip-indexes" and "packages" not in self.recipe
            if not there and not unstated and not unused and not self.is_reported(each):
                yield f"{key}: {each}"

    def _fault(self, name: str, value: Any, *, is_component: bool) -> Iterator[str]:
        version = value.get("version", "*") if isinstance(value, dict) else value
        origin = value.get("from", name) if isinstance(value, dict) else name
        if isinstance(value, dict) and "base image" in value.get("origin", ""):
            origin = f"{origin}, from"
        names = {normalize(each) for each in (name, *origin.split(", "))}
        names |= {each.removeprefix("py-") for each in names}
        names |= {self.names[each] for each in names if each in self.names}
        got = [each for key in names for each in self.packages.get(key, ())]
        if any(_same(bounds, str(version)) or "/" in bounds for bounds, _ in got):
            return
        # Every environment has these.
        reported = self.is_reported(*names, is_component=is_component)
        if not reported and name.removeprefix("py-") not in ("pip", "setuptools"):
            yield f"{name} {version}, not {got}"


def _same(bounds: str, expected: str) -> bool:
    def plain(text: str) -> str:
        text = re.sub(r"(?<![=<>!~])=(?=[^=])", "==", text).replace(" ", "").replace("=v", "=")
        try:
            text = ",".join(sorted(map(str, SpecifierSet("" if text == "*" else text))))
        except InvalidSpecifier:
            text = text.lower()
        return re.sub(r"(==[^,]*)\.\*", r"\1", text)

    return plain(bounds) == plain(expected)


def outcome(case: str, context: Context) -> tuple[str, list[str]]:
    """Return the outcome of a case, and what is silent."""
    truth = yaml.safe_load((FOLDER / case / "truth.yaml").read_text())
    file = FOLDER / case / truth["file"]
    try:
        made = import_recipe(file, "case", None, None, context)
    except (DocumentError, UsageError) as error:
        ids = [problem.id for problem in error.problems]
        if ids[0] != "package-list.no-content":
            return "refused", [str(error)]
        # Without component and package: each loss is a problem.
        made, recipe = None, {"stack": {}, "arch": []}
        losses = tuple(problem.message for problem in error.problems[1:])
    else:
        recipe, losses = yaml.safe_load(made.recipe), made.left_out
    known = context.knowledge
    names = {
        **package_names(known.components),
        **{normalize(name): each for name, each in known_names(known).conda.items()},
        **stems(known.components),
    }
    channels = {name: each.url for name, each in known.channels.items()}
    result = Import(truth, file.read_text(), recipe, losses, names, channels)
    difference, _ = DIFFERENCES.get(case, (None, None))
    faults = [fault for fault in result.faults() if fault != difference]
    if faults:
        return "silent", faults
    if made is None:
        return "refused", []
    return ("reported" if losses else "works"), []


def test_files_that_people_have(context: Context) -> None:
    rows, silent = [], []
    for case in CASES:
        expected = yaml.safe_load((FOLDER / case / "truth.yaml").read_text())["expect"]
        found, faults = outcome(case, context)
        rows.append(f"{case}\t{expected}\t{found}\n")
        if found == "silent" or (found == "refused" and faults and expected != "refused"):
            silent.append(f"{case} {found}: {faults}")
    goldens.compare(OUTCOMES, "".join(rows))
    assert not silent, "\n".join(silent)

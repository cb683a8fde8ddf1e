"""``envbuild module render``: the modulefiles that a site puts into its module trees."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from .. import __version__
from ..errors import UsageError
from ..files import clean_on_failure, write_atomically
from ..model.evidence import newest_passed, telling
from ..model.outcome import ModuleTree
from ..model.places import Dialect, check_path
from ..record import read_all
from ..render.modulefile import ToolModule, render_modulefile, render_tool_modulefile
from ..render.subject import UnlockedPlan
from ..root.environment_lock import read_lock
from ..root.environments import places_of
from ..target_tools.root import publish, registry
from ..target_tools.root.layout import Home
from ..workflow.context import Context
from ..workflow.launch_requests import example, facts_of
from ..workflow.matrix import Matrix, MatrixRow, matrix
from ..workflow.options import MatrixOptions
from ..workflow.output import output_folder

# What a module system takes for the file of NAME/NUMBER.
_FILES: dict[Dialect, str] = {"lua": "{}.lua", "tcl": "{}"}


def render_tree(options: MatrixOptions, output: Path, context: Context) -> ModuleTree:
    """Write ``lua/`` and ``tcl/``: a module for each recipe, and envbuild's own.

    What is published in the site's root is rendered from its lock, with its number and proof; what
    is not, from its plan, as number 1: it refuses to be loaded until it is there.
    """
    folder = output_folder(output, context)
    planned = matrix(options, context)
    for each in planned.refused if options.matrix else ():
        raise UsageError(
            "modules.recipe-without-plan",
            f"cannot write a module for {each.name}: it has no plan for {each.arch}: {each.reason}",
            f"leave {each.name} out",
        )
    check_path(str(planned.base))
    _check_one_arch(planned)
    published: list[str] = []
    texts: dict[PurePosixPath, str] = {}
    for row in planned.rows:
        of_row, number = _texts(row, planned)
        texts |= of_row
        if number is not None:
            published.append(f"{row.name}/{number}")
    texts |= _of_the_tool(planned, _site_word(options, planned, context))
    with clean_on_failure(folder):
        for name, text in texts.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text)
    written = tuple(sorted(map(str, texts)))
    return ModuleTree(folder=str(folder), written=written, published=tuple(published))


def _check_one_arch(planned: Matrix) -> None:
    """Raise UsageError where modules of two architectures would have the same names."""
    archs = sorted({row.arch for row in planned.rows})
    if len(archs) > 1:
        raise UsageError(
            "modules.several-archs",
            f"modules for {' and '.join(archs)} have the same names and need separate trees",
            f"write one tree at a time: --arch {archs[0]}",
        )


def _texts(row: MatrixRow, planned: Matrix) -> tuple[dict[PurePosixPath, str], int | None]:
    """Return a row's modulefiles, and its number where it is published."""
    planned_row = row.planned
    home = Home(planned.root(row.arch), row.name)
    number = registry.default_number(home)
    lock = evidence = None
    if number is not None:
        version = publish.find_version(home, number)
        lock = read_lock(home, version)
        proofs = newest_passed(read_all(home, version, lock).evidence)
        evidence = telling(proofs) if proofs else None
    source = lock or UnlockedPlan(planned_row.plan)
    places = places_of(home, version.id if number is not None else source.id())
    shown = example(facts_of(source.plan, planned_row.inputs))
    texts = {
        _file(dialect, row.name, str(number or 1)): render_modulefile(
            source, places, number or 1, evidence, dialect, shown
        )
        for dialect in _FILES
    }
    return texts, number


def _site_word(options: MatrixOptions, planned: Matrix, context: Context) -> str:
    """Return what the site is called from any folder: its file, where the user named one."""
    file = context.path(options.site or "")
    return str(file) if file.is_file() else planned.site.name


def _of_the_tool(planned: Matrix, site: str) -> dict[PurePosixPath, str]:
    folder = planned.base / planned.site.name
    archs = sorted({row.arch for row in planned.rows})
    trees = tuple(planned.root(arch) / "modulefiles" for arch in archs)
    tool = ToolModule(__version__, site, folder / "envbuild" / __version__, trees)
    return {
        _file(dialect, "envbuild", __version__): render_tool_modulefile(tool, dialect)
        for dialect in _FILES
    }


def _file(dialect: Dialect, name: str, version: str) -> PurePosixPath:
    return PurePosixPath(dialect, name, _FILES[dialect].format(version))

"""Records what the verbs print, to compare two versions of envbuild by ``diff -r``.

    PYTHONPATH=CHECKOUT python benchmarks/behaviour.py ROOT OUTPUT

ROOT: a root with published environments (see tests/integration/test_earlier_version.py), which is
only read. OUTPUT: a new folder; each command becomes one file with its exit code, standard output
and standard error. Paths, dates and durations are replaced, as they differ between two runs.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.testing import CliRunner

from envbuilder import cli

CHECKOUT = Path(cli.__file__).resolve().parents[2]
RECIPES = sorted(path.stem for path in (CHECKOUT / "recipes").glob("*.yaml"))
SITES = sorted(path.stem for path in (CHECKOUT / "recipes" / "sites").glob("*.yaml"))
FORMS = (
    *("script", "environment.yml", "explicit", "conda-lock", "pixi", "requirements"),
    *("lua", "def", "dockerfile", "slurm", "lsf", "pbs", "job"),
)
WITH_JSON = frozenset(
    [
        "plan",
        "why",
        "why-not",
        "list",
        "info",
        "diff",
        "launch",
        "validate",
        "diagnose",
        "advisories",
        "recipes",
        "sites",
        "doctor",
        "render",
    ]
)
VARIABLE = (
    (re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+\d\d:\d\d)?)?"), "DATE"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|us|min|h|days?|minutes?|seconds?)\b"), "DURATION"),
    (re.compile(r'("(?:seconds|duration|age|uptime|pid|load)[^"]*": )[\d.]+'), r"\1NUMBER"),
    (re.compile(r"/tmp/[\w./-]+"), "TEMPORARY"),
)


def help_commands() -> Iterator[tuple[str, ...]]:
    """Yield the command lines that print the help of each verb."""
    yield ("--help",)
    group = typer.main.get_command(cli.app)
    for name, command in sorted(getattr(group, "commands", {}).items()):
        yield (name, "--help")
        for below in sorted(getattr(command, "commands", {})):
            yield (name, below, "--help")


def document_commands() -> Iterator[tuple[str, ...]]:
    """Yield the command lines about recipes, sites and advisories."""
    for kind, names in (("recipes", RECIPES), ("sites", SITES)):
        yield (kind, "list")
        yield (kind, "check")
        yield (kind, "schema")
        for name in names:
            yield (kind, "show", name)
    yield ("advisories", "list")
    for version in ("openmpi==3.1.3", "horovod==0.21.0", "nccl==2.4.7", "torch==2.0"):
        yield ("advisories", "check", version)


def plan_commands() -> Iterator[tuple[str, ...]]:
    """Yield the command lines that plan and render each recipe at each site."""
    for recipe in RECIPES:
        for site in (*SITES, "local"):
            yield ("plan", recipe, "--site", site)
        for form in FORMS:
            yield ("render", recipe, "--as", form, "--site", "taurus-ml")
        yield ("render", recipe, "--as", "slurm", "--arch", "x86_64")
        yield ("launch", recipe, "--site", "taurus-ml", "--ranks", "4", "--", "train.py")
        yield ("why", recipe, "horovod", "--site", "taurus-ml")
        yield ("why-not", recipe, "openmpi==3.1.3", "--site", "taurus-ml")


def environment_commands(root: Path) -> Iterator[tuple[str, ...]]:
    """Yield the command lines that read the environments of *root*."""
    here = ("--root", str(root))
    yield ("list", *here)
    names = sorted(path.name for path in (root / "modulefiles").iterdir() if path.is_dir())
    for name in names:
        yield ("info", name, *here)
        yield ("launch", name, *here, "--ranks", "2", "--", "train.py")
        yield ("validate", name, *here)
        yield ("validate", name, *here, "--all", "--verify")
        yield ("validate", name, *here, "--as", "sarif")
        yield ("why", name, "numpy", *here)
        for form in FORMS:
            yield ("render", name, "--as", form, *here)
    yield ("info", "no-such-environment", *here)
    yield ("diff", names[0], names[-1], *here)


def commands(root: Path) -> Iterator[tuple[str, ...]]:
    """Yield each command line, with and without ``--json`` where the verb has it."""
    yield from help_commands()
    yield ("doctor",)
    for words in (*document_commands(), *plan_commands(), *environment_commands(root)):
        yield words
        if words[0] in WITH_JSON and not {"schema", "sarif"} & set(words):
            place = words.index("--") if "--" in words else len(words)
            yield (*words[:place], "--json", *words[place:])


def record(words: tuple[str, ...], root: Path) -> str:
    """Run a command line; return its exit code and what it prints, without what varies."""
    done = CliRunner().invoke(cli.app, list(words), env={"COLUMNS": "80"})
    text = f"$ {' '.join(words)}\n[{done.exit_code}]\n{done.stdout}\n--\n{done.stderr}\n"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        text += f"{done.exception!r}\n"
    for path, name in ((root, "ROOT"), (CHECKOUT, "CHECKOUT"), (Path.home(), "HOME")):
        text = text.replace(str(path), name)
    for pattern, name in VARIABLE:
        text = pattern.sub(name, text)
    return text


def main(root: Path, output: Path) -> None:
    """Record every command line below *output*."""
    output.mkdir(parents=True)
    lines = list(commands(root))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, words in enumerate(lines):
            text = record(words, root)
            name = re.sub(r"[^\w.=-]+", "_", " ".join(words).replace(str(root), "ROOT"))[:180]
            (output / f"{name}.txt").write_text(text, encoding="utf-8")
            print(f"\r{number + 1} of {len(lines)}", end="", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())

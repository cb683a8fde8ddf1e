"""Job scripts: pure, from a lock, a published environment and what the scheduler says to texts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from ..model.job import Job
from ..model.launch import EnvironmentProgram
from ..model.places import BuildFolders
from ..model.plan import Lock, Plan
from ..model.profiles import recipe_arguments
from ..target_tools.modulefile import without_nul
from .dialects import edit_line
from .quoting import Quoted
from .subject import JobParts, Renderable
from .templates import render

HOSTS = Quoted('"$hosts"')
"""Stands in a launch line for ``host:4,host2:4``, which only the job knows."""

PYTHON = "python"
"""Every prefix has it, and every program of a recipe is started by it."""

ENDPOINT = Quoted('"$endpoint"')
"""Stands in a launch line for ``host:port`` of the job's first node."""

ENDPOINT_PARTS = (Quoted('"${endpoint%:*}"'), Quoted('"${endpoint##*:}"'))
"""Stand for host and port of it."""


def program_words(job: Job, program: Sequence[str]) -> tuple[str, ...]:
    """Return what the launcher is to start on each rank, to be handed to the launch line."""
    if not job.tf_config:
        return tuple(program)
    return ("bash", "-c", Quoted('"$task"'), "tf-config", *program)


def expand_variables(word: str, names: Sequence[str]) -> str:
    """Return a word in which bash expands the variables *names*, and nothing else."""
    choice = "|".join(map(re.escape, names))
    pattern = rf"\$(?:{choice})(?![A-Za-z0-9_])|\$\{{(?:{choice})\}}"
    literals = re.split(pattern, word)
    if len(literals) == 1:
        return word
    quoted = [re.sub(r'[\\"$`]', r"\\\g<0>", without_nul(text)) for text in literals]
    variables = re.findall(pattern, word)
    return Quoted(f'"{"".join(chain.from_iterable(zip_longest(quoted, variables, fillvalue="")))}"')


def render_job(
    lock: Renderable, places: BuildFolders, tree: str, parts: JobParts, number: int = 1
) -> str:
    """Return the text of a job script.

    *tree*: the folder for ``module use``. *number*: of the modulefile. Without a module command in
    the plan the script does itself what the module would do. The script ends before the first rank
    unless prefix, Python and launcher are those of the environment.
    """
    job, script = parts.job, parts.script
    module = f"{lock.plan.recipe}/{number}"
    return render(
        "job/script.sh.j2",
        directives=[Quoted(line) for line in script.directives],
        usage=Quoted(script.usage),
        scheduler=parts.scheduler,
        title=Quoted(parts.title),
        submit=Quoted(parts.submit),
        absent=Quoted(script.absent),
        node_list=Quoted(script.nodes),
        module=module,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        nodes=str(job.nodes),
        asked=recipe_arguments(lock.plan),
        present=_part("prefix", prefix=str(places.prefix), messages=_absent(lock, module)),
        environment=_environment(lock.plan, places, tree, module, parts.launcher),
        words=tuple(parts.words),
        parts=[*_checks(parts.launcher), *_needed(parts)],
    )


def _absent(lock: Renderable, module: str) -> tuple[str, str]:
    """Return what the script says where the prefix is not there."""
    if isinstance(lock, Lock):
        return (
            f"error: {module} is missing: it is not built, or it was moved or removed",
            "hint: envbuild list shows the environments; render this script again from one of them",
        )
    return (
        f"error: {lock.plan.recipe} is not built",
        f"hint: envbuild create {recipe_arguments(lock.plan)}, then render this script again",
    )


def _environment(
    plan: Plan, places: BuildFolders, tree: str, module: str, launcher: EnvironmentProgram | None
) -> Quoted:
    """Return the part that loads the environment."""
    modules = plan.modules
    if modules.init is None:
        edits = [edit_line("bash", edit, places.prefix) for edit in plan.environment]
        return _part("edits", edits=edits)
    # `module use` puts a tree first, so the last one goes in first.
    trees = (*reversed(modules.trees), tree)
    purged = [Quoted("outside=$PATH")] if launcher and launcher.module else []
    return _part("module", init=modules.init, trees=trees, module=module, purged=purged)


def _checks(launcher: EnvironmentProgram | None) -> Iterator[Quoted]:
    """Yield what ends the script if Python or launcher are not the environment's."""
    own = [launcher.name] if launcher and launcher.module is None else []
    yield _part("check", names=[PYTHON, *own])
    if launcher and launcher.module:
        yield _part("check-module", name=launcher.name, module=launcher.module)


def shell_program(plan: Plan, places: BuildFolders, tree: str, module: str) -> tuple[str, ...]:
    """Return the program that opens bash in the environment, after the user's own ``~/.bashrc``.

    That may put another Python first, so bash reads what loads the environment last; it ends with
    an error where Python is not the environment's. The text has no exclamation mark and no line
    break, which csh does not leave in quotes.
    """
    folder = shlex.quote(str(places.prefix / "bin"))
    message = f'"error: python is not that of {module}: it cannot be loaded"'
    lines = (
        "[[ -r ~/.bashrc ]] && source ~/.bashrc",
        *_loads(plan, places, tree, module),
        f'[[ $(dirname "$(type -P python)") -ef {folder} ]] || {{ echo {message} >&2; exit 1; }}',
        f'PS1="({module}) $PS1"',
    )
    return ("bash", "-c", 'exec bash --rcfile <(printf %s "$0")', "; ".join(lines))


def _loads(plan: Plan, places: BuildFolders, tree: str, module: str) -> Iterator[str]:
    """Yield the commands that load the environment's module, or that make its changes."""
    modules = plan.modules
    if modules.init is None:
        yield "unset PYTHONPATH PYTHONHOME"
        yield from (edit_line("bash", edit, places.prefix) for edit in plan.environment)
        return
    yield f"source {shlex.quote(modules.init)}"
    yield "module --force purge"
    # `module use` puts a tree first, so the last one goes in first.
    yield from (f"module use {shlex.quote(each)}" for each in (*reversed(modules.trees), tree))
    yield f"module load {shlex.quote(module)}"


def guarded(
    words: Sequence[str], prefix: Path, name: str, launcher: EnvironmentProgram | None
) -> tuple[str, ...]:
    """Return a launch line that ends with an error in a shell without the environment *name*.

    The text has no exclamation mark and no line break, which csh does not leave in quotes.
    """
    own = [launcher.name] if launcher and launcher.module is None else []
    names = " ".join(shlex.quote(each) for each in (PYTHON, *own))
    message = f"error: $each is ${{found:-not on PATH}}, not %s: load {name} first"
    refuse = f'{{ echo "{message}" >&2; exit 1; }}'
    text = (
        f'for each in {names}; do found=$(type -P "$each"); '
        f"[[ ${{found%/*}} -ef $0/bin ]] || {refuse % '$0/bin/$each'}; done; "
    )
    if launcher and launcher.module:
        text += (
            f'each={shlex.quote(launcher.name)}; found=$(type -P "$each"); '
            f"[[ :$LOADEDMODULES: == *:{shlex.quote(launcher.module)}:* && "
            f'$found != $(command -pv "$each") ]] || {refuse % f"of {launcher.module}"}; '
        )
    return ("bash", "-c", f'{text}exec "$@"', str(prefix), *words)


def _needed(parts: JobParts) -> Iterator[Quoted]:
    """Yield what the script makes of the allocation, as far as the launch line needs it."""
    ranks, strategy = str(parts.job.ranks_per_node), parts.job.tf_config
    if HOSTS in parts.words:
        yield _part("hosts", ranks_per_node=ranks)
    has_endpoint = not {ENDPOINT, *ENDPOINT_PARTS}.isdisjoint(parts.words)
    if has_endpoint or strategy:
        yield _part("port", job_id=Quoted(parts.script.job_id))
    if has_endpoint:
        yield _part("endpoint")
    if strategy:
        yield _part("tf-config", ranks_per_node=ranks)


def _part(template: str, **values: object) -> Quoted:
    return Quoted(render(f"job/{template}.sh.j2", **values).rstrip("\n"))

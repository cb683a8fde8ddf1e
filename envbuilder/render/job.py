"""Job scripts: pure, from a lock, a published environment and what the scheduler says to texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.job import Job
from ..model.places import Places
from ..model.profiles import recipe_arguments
from .dialects import edit_line
from .quoting import Quoted
from .subject import JobParts, Renderable
from .templates import render

HOSTS = Quoted('"$hosts"')
"""Stands in a launch line for ``host:4,host2:4``, which only the job knows."""

ENDPOINT = Quoted('"$endpoint"')
"""Stands in a launch line for ``host:port`` of the job's first node."""


def program_words(job: Job, program: Sequence[str]) -> tuple[str, ...]:
    """Return what the launcher is to start on each rank, to be handed to the launch line."""
    if not job.tf_config:
        return tuple(program)
    return ("bash", "-c", Quoted('"$task"'), "tf-config", *program)


def render_job(
    lock: Renderable, places: Places, tree: str, parts: JobParts, number: int = 1
) -> str:
    """Return the text of a job script.

    *tree*: the folder for ``module use``. *number*: of the modulefile. Without a module command in
    the plan the script does itself what the module would do.
    """
    job, script, modules = parts.job, parts.script, lock.plan.modules
    module = f"{lock.plan.recipe}/{number}"
    if modules.init is None:
        edits = [edit_line("bash", edit, places.prefix) for edit in lock.plan.environment]
        environment = _part("edits", edits=edits)
    else:
        # `module use` puts a tree first, so the last one goes in first.
        trees = (*reversed(modules.trees), tree)
        environment = _part("module", init=modules.init, trees=trees, module=module)
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
        environment=environment,
        words=tuple(parts.words),
        parts=[*_needed(parts)],
    )


def _needed(parts: JobParts) -> Iterator[Quoted]:
    """Yield what the script makes of the allocation, as far as the launch line needs it."""
    ranks, strategy = str(parts.job.ranks_per_node), parts.job.tf_config
    if HOSTS in parts.words:
        yield _part("hosts", ranks_per_node=ranks)
    if ENDPOINT in parts.words or strategy:
        yield _part("port", job_id=Quoted(parts.script.job_id))
    if ENDPOINT in parts.words:
        yield _part("endpoint")
    if strategy:
        yield _part("tf-config", ranks_per_node=ranks)


def _part(template: str, **values: object) -> Quoted:
    return Quoted(render(f"job/{template}.sh.j2", **values).rstrip("\n"))

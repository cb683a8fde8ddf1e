"""Job scripts: pure, from a lock, a published environment and what the scheduler says to texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.job import Job, JobScript
from ..model.places import Places
from ..model.profiles import recipe_arguments
from .dialects import bash_edit
from .quoting import Quoted
from .renderable import Renderable
from .templates import render

HOSTS = Quoted('"$hosts"')
"""Stands in a launch line for ``host:4,host2:4``, which only the job knows."""

ENDPOINT = Quoted('"$endpoint"')
"""Stands in a launch line for ``host:port`` of the job's first node."""


@dataclass(frozen=True)
class PublishedModule:
    """Where the environment is loaded from.

    ``tree``: the folder for ``module use``. ``number``: that of the modulefile. ``init``: what a
    script sources to get the ``module`` command; None: the plan's, and where that has none either
    the script does itself what the module would do.
    """

    tree: str
    number: int
    init: str | None = None


def program_words(job: Job, program: Sequence[str]) -> tuple[str, ...]:
    """Return what the launcher is to start on each rank, to be handed to the launch line."""
    if not job.tf_config:
        return tuple(program)
    return ("bash", "-c", Quoted('"$task"'), "tf-config", *program)


def render_job(
    lock: Renderable,
    places: Places,
    published: PublishedModule,
    job: Job,
    script: JobScript,
    words: Sequence[str],
) -> str:
    """Return the text of a job script; *words* is the launch line, program and all."""
    return render(
        "job/script.sh.j2",
        directives=[Quoted(line) for line in script.directives],
        usage=Quoted(script.usage),
        scheduler=script.scheduler,
        title=Quoted(script.title),
        submit=Quoted(script.submit),
        absent=Quoted(script.absent),
        node_list=Quoted(script.nodes),
        module=_module(lock, published),
        id=lock.id(),
        lock_sha256=lock.sha256(),
        nodes=str(job.nodes),
        asked=recipe_arguments(lock.plan),
        environment=_environment(lock, places, published),
        words=tuple(words),
        parts=[
            *(Quoted(setting) for setting in script.settings),
            *_parts(job, words, Quoted(script.job_id)),
        ],
    )


def _module(lock: Renderable, published: PublishedModule) -> str:
    return f"{lock.plan.recipe}/{published.number}"


def _environment(lock: Renderable, places: Places, published: PublishedModule) -> Quoted:
    modules = lock.plan.modules
    init = published.init or modules.init
    if init is None:
        edits = [bash_edit(edit, places.prefix) for edit in lock.plan.environment]
        return _part("edits", edits=edits)
    return _part(
        "module",
        init=init,
        # `module use` puts a tree first, so the last one goes in first.
        trees=(*reversed(modules.trees), published.tree),
        module=_module(lock, published),
    )


def _parts(job: Job, words: Sequence[str], job_id: Quoted) -> list[Quoted]:
    """Return what the script makes of the allocation, as far as the launch line needs it."""
    ranks = str(job.ranks_per_node)
    parts = []
    if HOSTS in words:
        parts.append(_part("hosts", ranks_per_node=ranks))
    if ENDPOINT in words or job.tf_config:
        parts.append(_part("port", job_id=job_id))
    if ENDPOINT in words:
        parts.append(_part("endpoint"))
    if job.tf_config:
        parts.append(_part("tf-config", ranks_per_node=ranks))
    return parts


def _part(template: str, **values: object) -> Quoted:
    return Quoted(render(f"job/{template}.sh.j2", **values).rstrip("\n"))

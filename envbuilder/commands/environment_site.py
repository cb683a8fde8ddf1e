"""The site of an environment that is there, and what it says of its launch lines."""

from __future__ import annotations

from ..documents.site_choice import ChosenSite, choose_site, with_partition
from ..errors import UsageError
from ..model.plan import Plan
from ..model.site import Snapshot
from ..schedulers import SCHEDULERS
from .context import Context
from .launch_requests import LaunchFacts, launch_facts
from .load import folders_and_knowledge, site_search, snapshot_of


def site_of(plan: Plan, asked: str | None, partition: str | None, context: Context) -> ChosenSite:
    """Return the environment's site, with the partition that was said or that the job is in.

    Raises UsageError where another site is asked for, and where it cannot be found.
    """
    search = site_search(*folders_and_knowledge(context), context)
    named = asked or context.environ.get("ENVBUILD_SITE") or plan.site
    chosen = choose_site(named, search)
    if chosen.site.name != plan.site:
        if asked:
            raise UsageError(
                f"{plan.recipe} was made for site {plan.site}, not for {chosen.site.name}",
                f"use --site {plan.site}, or the file of that name",
            )
        chosen = choose_site(plan.site, search)
    return with_partition(chosen, partition or partition_of_job(chosen, context))


def partition_of_job(chosen: ChosenSite, context: Context) -> str | None:
    """Return the partition of the job that the shell is in, where the site describes it."""
    here = (context.environ.get(each.PARTITION) for each in SCHEDULERS.values())
    return next((each for each in here if each in chosen.site.partitions), None)


def facts_at(plan: Plan, chosen: ChosenSite, context: Context) -> LaunchFacts:
    """Return what every launch line of the environment is made from."""

    def snapshot(component: str) -> Snapshot:
        return snapshot_of(chosen, context, frozenset({component}))[0]

    _, knowledge = folders_and_knowledge(context)
    return launch_facts(plan, knowledge.value.components, chosen, snapshot)

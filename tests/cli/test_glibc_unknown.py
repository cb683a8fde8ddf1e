"""A site that states no glibc gets wheels for the oldest one; a refusal then names the fact."""

from __future__ import annotations

import pytest

from envbuilder.errors import NoSolutionError
from envbuilder.workflow import lock
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import PlanOptions, load, plan_recipe


def refused_all_mpich(site: str, context: Context) -> NoSolutionError:
    plan_inputs = load(PlanOptions("allreduce", site=site), context)
    before = plan_recipe(plan_inputs, context)
    releases = plan_inputs.knowledge.value.releases["mpich"]
    refused = frozenset(("mpich", each.version) for each in releases)
    with pytest.raises(NoSolutionError) as caught:
        lock._plan_again(before, refused, before.plan)
    return caught.value


def context() -> Context:
    from envbuilder.cli.session import open_session

    return open_session(as_json=True, recipes=None).context


def test_the_error_names_the_fact_to_state() -> None:
    error = refused_all_mpich("taurus-alpha", context())
    assert "taurus-alpha" in error.problems[0].hints[0]
    assert "facts: {glibc: ...}" in error.problems[0].hints[0]

"""What can be planned and rendered, but not locked and built yet: said before anything is done."""

from __future__ import annotations

from ..errors import UsageError
from ..model.backend import PrefixParts
from ..model.plan import Plan
from ..model.profiles import recipe_arguments


def check_buildable(planned: Plan, prefix: PrefixParts) -> None:
    """Raise UsageError for a plan that is not ``lockable``, with what can be done instead."""
    for build in planned.builds:
        if build.tree is not None:
            raise UsageError(
                f"{planned.recipe} builds {build.component} {build.version} from its git tree "
                f"{build.tree.tag}, and a lock holds files with their sha256, which a tree with "
                "submodules is not; it is planned and rendered",
                f"envbuild render {recipe_arguments(planned)} --as script shows the build: clone, "
                "commit, submodules, environment",
                f"or take a {build.component} that is built already, a module or a wheel: a recipe "
                f"without 'from-source: [{build.component}]'",
            )
    if prefix.refusal:
        raise UsageError(prefix.refusal.message, *prefix.refusal.hints)

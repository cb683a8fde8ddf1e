"""What can be planned and rendered, but not locked and built yet: said before anything is done."""

from __future__ import annotations

from ..errors import UsageError
from ..model.plan import Plan
from ..model.profiles import asked


def check_buildable(planned: Plan) -> None:
    """Raise UsageError for a plan that is not ``lockable``, with what can be done instead."""
    for build in planned.builds:
        if build.tree is not None:
            raise UsageError(
                f"{planned.recipe} builds {build.component} {build.version} from its git tree "
                f"{build.tree.tag}, and a lock holds files with their sha256, which a tree with "
                "submodules is not; it is planned and rendered",
                f"envbuild render {asked(planned)} --as script shows the build: clone, commit, "
                "submodules, environment",
                f"or take a {build.component} that is built already, a module or a wheel: a recipe "
                f"without 'from-source: [{build.component}]'",
            )
    if planned.backend == "conda":
        raise UsageError(
            f"{planned.recipe} is for conda, whose packages envbuild does not lock and build yet; "
            "it plans and renders them",
            f"envbuild render {asked(planned)} --as environment.yml --output environment.yml",
            "conda env create --prefix FOLDER --file environment.yml; its head says what is built "
            "in it then",
        )

"""``--profile``: the variant of a recipe that is measured while it runs."""

from __future__ import annotations

from dataclasses import replace

from ..errors import NoSolutionError, UsageError
from ..knowledge.entries import check_choice
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Profile
from ..model.backend import BackendTraits
from ..model.profiles import PROFILES, STACKS
from ..model.recipe import Recipe
from ..model.runtime import RuntimeTraits
from ..model.site import Site, Snapshot
from .load import LoadedDocument


def profile_of(name: str | None) -> Profile | None:
    """Return the profile of that name. Raises UsageError where there is none."""
    check_choice("profile", name, PROFILES)
    return next((each for each in PROFILES if each == name), None)


def variant(
    recipe: LoadedDocument[Recipe],
    profile: Profile,
    backend: BackendTraits,
    runtime: RuntimeTraits,
) -> LoadedDocument[Recipe]:
    """Return the recipe with what the profile needs in its stack, under a name of its own.

    Raises UsageError for a recipe that builds nothing that could be measured.
    """
    value = recipe.value
    if not runtime.instrumented or value.runtime.origin != "build":
        raise UsageError(
            "profile.no-horovod",
            f"--profile {profile} instruments a build of Horovod, but recipe {value.name} has none",
            "use a recipe with runtime: {package: horovod}, such as horovod-mpi",
            place=recipe.place("runtime"),
        )
    if profile not in backend.profiles:
        raise UsageError(
            "profile.unsupported-backend",
            f"--profile {profile} does not work in a {backend.environment}, which recipe "
            f"{value.name} makes",
            place=recipe.place("backend"),
        )
    update = {
        "name": f"{value.name}-{profile}",
        "summary": f"{value.summary}, measured by Score-P",
        "stack": {**value.stack, **STACKS[profile]},
    }
    return replace(recipe, value=value.model_copy(update=update))


def check_is_there(profile: Profile, site: Site, snapshot: Snapshot, knowledge: Knowledge) -> None:
    """Raise NoSolutionError where no module of the site is the profile's tool."""
    names = knowledge.components[profile].modules
    if any(profile in m.provides or m.name.split("/")[0] in names for m in snapshot.modules):
        return
    raise NoSolutionError(
        "profile.module-missing",
        f"--profile {profile}: site {site.name} has no module {' or '.join(names)}",
        "if it has one, add it to the site file: modules: "
        f"[{{name: {names[0]}/..., provides: {{{profile}: ...}}}}]",
        "or plan without --profile",
    )

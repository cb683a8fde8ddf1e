"""Profiles: a variant of a recipe that is measured while it runs. There is one, Score-P.

Its programs are started through Score-P's Python bindings, and what is compiled in the environment
is compiled by Score-P's wrappers, so that MPI calls and C++ functions are seen too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..knowledge.terms import Profile
from .plan import Plan

PROFILES: tuple[Profile, ...] = ("scorep",)

# What the bindings and the wrappers hand to Score-P: the programs talk by MPI, and have threads.
_MEASURED = ("--mpp=mpi", "--thread=pthread")

_LAUNCH: Mapping[Profile, tuple[str, ...]] = {"scorep": ("-m", "scorep", *_MEASURED)}

_COMPILERS: Mapping[Profile, Mapping[str, str]] = {
    "scorep": {
        "CC": "scorep-gcc",
        "CXX": "scorep-g++",
        "SCOREP_WRAPPER_INSTRUMENTER_FLAGS": " ".join(_MEASURED),
    }
}

# The module, from the release on that the bindings work with (their README), and the bindings.
STACKS: Mapping[Profile, Mapping[str, str]] = {"scorep": {"scorep": ">=5", "scorep-python": "*"}}


def program(profile: Profile | None, script: str = "my_program.py") -> tuple[str, ...]:
    """Return the words that start a Python program."""
    return ("python", *(_LAUNCH[profile] if profile else ()), script)


def build_variables(profile: Profile | None) -> Mapping[str, str]:
    """Return what the build of a runtime is told."""
    return _COMPILERS[profile] if profile else {}


def base_name(plan: Plan) -> str:
    """Return the name of the recipe that a plan was made from."""
    return plan.recipe.removesuffix(f"-{plan.profile}") if plan.profile else plan.recipe


def recipe_arguments(plan: Plan) -> str:
    """Return the words by which a user asks for the plan: RECIPE, or RECIPE --profile NAME."""
    return f"{base_name(plan)} --profile {plan.profile}" if plan.profile else plan.recipe

"""What of a machine a recipe can use: the others are not even asked."""

from __future__ import annotations

import pytest

from envbuilder import data
from envbuilder.build.backends import backend
from envbuilder.documents.library import find
from envbuilder.documents.load import load_recipe
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.recipe import Recipe
from envbuilder.resolve.relevant_components import relevant_components
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.entries import entries
from tests.shipped import read_shipped

MPIS = {"openmpi", "mpich", "spectrum-mpi", "mvapich2", "impi"}


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_shipped().value


def shipped(name: str, known: Knowledge) -> Recipe:
    return load_recipe(find("recipe", name, [data.RECIPES]), known, entries()).value


def of_use_to(recipe: Recipe, known: Knowledge) -> frozenset[str]:
    return relevant_components(recipe, backend(recipe.backend).TRAITS, known, RUNTIMES)


def test_a_recipe_of_wheels_asks_neither_for_cmake_nor_for_another_mpi(known: Knowledge) -> None:
    of_use = of_use_to(shipped("allreduce", known), known)
    assert {"python", "numpy", "mpi4py", "mpich"} <= of_use
    assert not {"cmake", "cuda", "nccl", "openmpi", "spectrum-mpi"} & of_use


def test_what_a_recipe_names_is_of_use(known: Knowledge) -> None:
    of_use = of_use_to(shipped("horovod-nccl", known), known)
    assert {"openmpi", "nccl", "cmake", "horovod", "gcc"} <= of_use
    assert "mpich" not in of_use


def test_any_mpi_is_of_use_where_none_is_named(known: Knowledge) -> None:
    recipe = shipped("allreduce", known)
    stack = {name: each for name, each in recipe.stack.items() if name != "mpich"}
    assert of_use_to(recipe.model_copy(update={"stack": stack}), known) >= MPIS


def test_the_machines_pythons_are_of_no_use_where_channels_bring_python(known: Knowledge) -> None:
    recipe = shipped("horovod-pytorch-conda", known)
    assert "python" in recipe.stack
    assert "python" not in of_use_to(recipe, known)

"""What every runtime's module is."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.runtimes import BUNDLED, RUNTIMES

from .contract import check_flags, check_proofs, check_recipe, check_traces, check_traits

DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"


def table() -> str:
    """Return the table of runtimes in the docs."""
    return "".join(f"| `{name}` | {each.TRAITS.summary} |\n" for name, each in RUNTIMES.items())


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_keeps_the_contract(name: str) -> None:
    check_traits(name)
    check_flags(name)
    check_traces(name)
    check_recipe(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("distributed-dl-training", []),
        ("horovod", ["horovod.tensorflow over mpi", "horovod.torch over mpi"]),
        ("torch-distributed", ["torch.distributed over gloo"]),
        ("tf-distribute", []),
        ("ddl", []),
    ],
)
def test_what_proves_a_runtime(name: str, expected: list[str]) -> None:
    assert [f"{each.api} over {each.transport}" for each in check_proofs(name)] == expected


def test_one_runtime_comes_with_every_environment() -> None:
    assert [name for name, each in RUNTIMES.items() if each.TRAITS.bundled] == [BUNDLED]


def test_the_docs_list_every_runtime() -> None:
    assert table() in DOCS.read_text(encoding="utf-8")

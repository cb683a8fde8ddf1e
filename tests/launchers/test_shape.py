"""What the shipped sites say of their nodes, and what fits on them."""

from __future__ import annotations

import pytest

from envbuilder import data
from envbuilder.documents.load import load_site
from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.launching.launchers import site_shape
from envbuilder.launching.launchers.checks import check_node
from envbuilder.model.launch import Shape
from envbuilder.workflow.entries import entries
from tests.shipped import read_shipped


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_shipped().value


@pytest.mark.parametrize(
    ("name", "partition", "shape"),
    [
        ("summit", None, Shape(6, 42)),
        ("taurus-ml", "ml", Shape(6, None)),
        ("taurus-alpha", "alpha", Shape(8, None)),
        # Its own 0 is not mistaken for nothing said.
        ("taurus-alpha", "romeo", Shape(0, None)),
        ("taurus-scs5", "gpu2", Shape(4, None)),
        ("taurus-scs5", "haswell", Shape(0, None)),
        ("taurus-scs5", None, Shape(None, None)),
    ],
)
def test_shapes_of_the_shipped_sites(
    name: str, partition: str | None, shape: Shape, known: Knowledge
) -> None:
    site = load_site(data.RECIPES / "sites" / f"{name}.yaml", known, entries()).value
    assert site_shape(site, site.partitions[partition] if partition else None) == shape


def test_what_fits_passes() -> None:
    check_node(Shape(6, 42), ranks=6, gpus=6, cores_per_rank=7)
    check_node(Shape(), ranks=10_000, gpus=10_000, cores_per_rank=100)


@pytest.mark.parametrize(
    ("ranks", "gpus", "cores", "problem_id"),
    [
        (7, 7, 1, "launch.too-few-gpus"),
        (43, 0, 1, "launch.too-few-cores"),
        (6, 6, 8, "launch.too-few-cores"),
    ],
)
def test_what_does_not_fit_is_told(ranks: int, gpus: int, cores: int, problem_id: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_node(Shape(6, 42), ranks=ranks, gpus=gpus, cores_per_rank=cores)
    assert caught.value.id == problem_id
    assert len(caught.value.problems[0].hints) == 2

"""What a node of the site has, and whether what is asked of it fits."""

from __future__ import annotations

from ..errors import UsageError
from ..model.launch import Shape
from ..model.site import Partition, Site


def site_shape(site: Site, partition: Partition | None = None) -> Shape:
    """Return the shape of the site's nodes; what the partition states wins."""
    own = partition.facts if partition else None
    gpus = own.gpus_per_node if own else None
    cores = own.cores_per_node if own else None
    return Shape(
        gpus_per_node=site.facts.gpus_per_node if gpus is None else gpus,
        cores_per_node=site.facts.cores_per_node if cores is None else cores,
    )


def check_node(shape: Shape, *, ranks: int, gpus: int = 0, cores_per_rank: int = 1) -> None:
    """Raise UsageError where *ranks* ranks and *gpus* GPUs on one node are more than it has."""
    if shape.gpus_per_node is not None and gpus > shape.gpus_per_node:
        has = f"{shape.gpus_per_node}" if shape.gpus_per_node else "none"
        raise UsageError(
            f"{gpus} GPUs a node are asked for, the site's nodes have {has}",
            "use more nodes with fewer ranks on each, or another partition",
            "if that is wrong, correct facts: {gpus-per-node: N} in the site file",
        )
    cores = ranks * cores_per_rank
    if shape.cores_per_node is not None and cores > shape.cores_per_node:
        each = f" of {cores_per_rank} cores" if cores_per_rank > 1 else ""
        raise UsageError(
            f"{ranks} ranks{each} a node are asked for, the site's nodes have "
            f"{shape.cores_per_node} cores",
            "use more nodes, or fewer ranks on each",
            "if that is wrong, correct facts: {cores-per-node: N} in the site file",
        )

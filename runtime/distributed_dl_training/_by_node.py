"""Allreduce by node: inside each node, then between nodes, then back inside.

Between nodes every byte travels once for each node and not once for each rank, which is IBM DDL's
idea; inside a node memory is faster than any network.

It is used when the job has more than one node and more than one rank on some node, and
DDLT_HIERARCHICAL_ALLREDUCE (or HOROVOD_HIERARCHICAL_ALLREDUCE) is not 0.  MPI libraries choose
among such algorithms as well, by rules of their own; 0 leaves it to them.
"""

from typing import Any

import numpy

from distributed_dl_training._core import Array


class Nodes:
    """The communicators of a node's ranks and of the nodes' first ranks.

    several: whether there are several nodes, and several ranks on one: else this way is no other.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        """Split ``comm``; collective."""
        self._mpi = mpi
        rank = comm.Get_rank()
        self._node = comm.Split_type(mpi.COMM_TYPE_SHARED)
        self.local_rank = int(self._node.Get_rank())
        self.local_size = int(self._node.Get_size())
        self._first = self.local_rank == 0
        self._between = comm.Split(color=0 if self._first else 1, key=rank)
        between = [self._between.Get_rank(), self._between.Get_size()]
        places = numpy.array(between, dtype=numpy.int64)
        self._node.Bcast([places, 2, mpi.INT64_T], root=0)
        self.cross_rank, self.cross_size = int(places[0]), int(places[1])
        self.several = 1 < self.cross_size < comm.Get_size()

    def allreduce(self, values: Array, datatype: Any, operation: Any) -> None:
        """Reduce ``values`` in place; collective."""
        mpi = self._mpi
        whole = [values, values.size, datatype]
        if self._first:
            self._node.Reduce(mpi.IN_PLACE, whole, op=operation, root=0)
            self._between.Allreduce(mpi.IN_PLACE, whole, op=operation)
        else:
            self._node.Reduce(whole, None, op=operation, root=0)
        self._node.Bcast(whole, root=0)

    def free(self) -> None:
        """Free both communicators; collective."""
        self._between.Free()
        self._node.Free()

"""Allreduce by node: shares of the data inside each node, each share between nodes, then back.

Between nodes every byte travels once for each node and not once for each rank, which is IBM DDL's
idea; inside a node memory is faster than any network.  As many ranks of each node as the smallest
node has are leaders: each carries its share between the nodes, so that several processes feed the
network.  Long data goes in chunks: while one travels between nodes the next is reduced inside.

Racks are a third level (DDLT_NODES_PER_RACK), which does the same with the nodes of a rack: each
share is divided among them, so that every byte travels once for each rack.  There a chunk is
complete before the next one starts.

It is used where it is asked for (DDLT_HIERARCHICAL_ALLREDUCE=1 or HOROVOD_HIERARCHICAL_ALLREDUCE=1)
and the job has more than one node and more than one rank on some node.  MPI libraries choose among
such algorithms themselves, by what they were tuned for, so that it is not the default.
"""

from typing import Any, List, NamedTuple, Optional

import numpy

from distributed_dl_training._core import Array

# Bytes that are reduced inside a node at a time.
_CHUNK = 4 << 20


class _Flight(NamedTuple):
    """A chunk under way between the nodes; ``request`` is None where this rank is no leader."""

    values: Array
    shares: List[int]
    request: Any


class Nodes:
    """The communicators of a node's ranks, and of the leaders of one share on all nodes.

    several: whether there are several nodes, and several ranks on one or several nodes in a rack:
        else this way is no other.
    node_comm: of the node's ranks.
    leaders_comm: on the first rank of each node, of these.
    """

    def __init__(self, mpi: Any, comm: Any, node_comm: Any = None, rack: int = 0) -> None:
        """Split ``comm``; collective.

        node_comm: of the ranks that are a node; default: those that share memory.
        rack: number of successive nodes that are a rack; 0: there is no third level.
        """
        self._mpi = mpi
        rank = comm.Get_rank()
        self.node_comm = comm.Split_type(mpi.COMM_TYPE_SHARED) if node_comm is None else node_comm
        self.local_rank = int(self.node_comm.Get_rank())
        self.local_size = int(self.node_comm.Get_size())
        smallest = numpy.array([self.local_size], dtype=numpy.int64)
        comm.Allreduce(mpi.IN_PLACE, [smallest, 1, mpi.INT64_T], op=mpi.MIN)
        self.leaders = int(smallest[0])
        # Those that are no leaders have a communicator of their own, which is not used.
        self._leads = self.local_rank < self.leaders
        self.leaders_comm = comm.Split(color=min(self.local_rank, self.leaders), key=rank)
        between = [self.leaders_comm.Get_rank(), self.leaders_comm.Get_size()]
        places = numpy.array(between, dtype=numpy.int64)
        self.node_comm.Bcast([places, 2, mpi.INT64_T], root=0)
        self.cross_rank, self.cross_size = int(places[0]), int(places[1])
        has_racks = 1 < rack < self.cross_size
        self.several = has_racks or 1 < self.cross_size < comm.Get_size()
        self._racks: Optional[Nodes] = None
        if has_racks and self._leads:
            nodes_comm = self.leaders_comm
            node = nodes_comm.Get_rank()
            self._racks = Nodes(mpi, nodes_comm, nodes_comm.Split(color=node // rack, key=node))

    def allreduce(self, values: Array, datatype: Any, operation: Any) -> None:
        """Reduce ``values`` in place; collective."""
        step = max(self.leaders, _CHUNK // values.itemsize)
        under_way: Optional[_Flight] = None
        for start in range(0, values.size, step):
            started = self._start(values[start : start + step], datatype, operation)
            if under_way is not None:
                self._land(under_way, datatype)
            under_way = started
        if under_way is not None:
            self._land(under_way, datatype)

    def _start(self, values: Array, datatype: Any, operation: Any) -> _Flight:
        """Reduce a chunk inside the node, and start this rank's share between the nodes."""
        mpi, shares = self._mpi, self._shares(values.size)
        mine = self._own(values, shares)
        reduced = numpy.empty_like(mine)
        self.node_comm.Reduce_scatter(
            [values, values.size, datatype], [reduced, reduced.size, datatype], shares, op=operation
        )
        mine[:] = reduced
        if not self._leads or not mine.size:
            return _Flight(values, shares, None)
        if self._racks is not None:
            self._racks.allreduce(mine, datatype, operation)
            return _Flight(values, shares, None)
        target = [mine, mine.size, datatype]
        request = self.leaders_comm.Iallreduce(mpi.IN_PLACE, target, op=operation)
        return _Flight(values, shares, request)

    def _land(self, flight: _Flight, datatype: Any) -> None:
        """Wait for this rank's share, and give all shares to all ranks of the node."""
        if flight.request is not None:
            flight.request.Wait()
        starts = [sum(flight.shares[:at]) for at in range(self.local_size)]
        target = [flight.values, (flight.shares, starts), datatype]
        self.node_comm.Allgatherv(self._mpi.IN_PLACE, target)

    def _shares(self, count: int) -> List[int]:
        """Return how many elements each rank of the node carries; the same on all nodes."""
        rest = count % self.leaders
        each = [count // self.leaders + (leader < rest) for leader in range(self.leaders)]
        return each + [0] * (self.local_size - self.leaders)

    def _own(self, values: Array, shares: List[int]) -> Array:
        start = sum(shares[: self.local_rank])
        own: Array = values[start : start + shares[self.local_rank]]
        return own

    def free(self) -> None:
        """Free the communicators; collective."""
        if self._racks is not None:
            self._racks.free()
        self.leaders_comm.Free()
        self.node_comm.Free()

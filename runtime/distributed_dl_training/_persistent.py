"""An exchange over MPI that is set up once, and then only started: what ranks do over and over.

Each rank sends to every other one at once, so that nobody has to run twice for one exchange: where
ranks share cores that is what takes time.  MPI's own gathering goes in rounds.
"""

from typing import Any, List

from distributed_dl_training._core import Array, PeerLostError

# Tag of its messages, which MPI keeps in order; ``_mpi`` has others.
TAG = 3


class PersistentGather:
    """Fills the segments of ``result`` with what the other ranks have in theirs.

    Started on all ranks equally often; what has been started is waited for before the next start.
    """

    def __init__(self, mpi: Any, comm: Any, result: Array) -> None:
        """Prepare it; ``result`` (uint8) has one segment for each rank of ``comm``."""
        self._mpi = mpi
        self._test = mpi.Request.Testall
        self._start = mpi.Prequest.Startall
        size, rank = comm.Get_size(), comm.Get_rank()
        step = result.size // size
        segments = [result[at * step : (at + 1) * step] for at in range(size)]
        others = [(rank + far) % size for far in range(1, size)]
        own = [segments[rank], step, mpi.BYTE]
        self._requests: List[Any] = [
            comm.Recv_init([segments[other], step, mpi.BYTE], source=other, tag=TAG)
            for other in others
        ]
        self._requests += [comm.Send_init(own, dest=other, tag=TAG) for other in others]

    def start(self) -> "PersistentGather":
        """Start the exchange; ``done`` tells when it is complete."""
        self._start(self._requests)
        return self

    def done(self) -> bool:
        try:
            complete: bool = self._test(self._requests)
            return complete
        except self._mpi.Exception as error:
            raise PeerLostError(f"MPI: {error}") from error

    def free(self) -> None:
        """Give back what MPI holds for it; not while it is under way."""
        for request in self._requests:
            request.Free()
        del self._requests[:]

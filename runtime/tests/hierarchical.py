"""A large sum over nodes, as an MPI program: prints what each rank knows of its node."""

import numpy as np

import distributed_dl_training.numpy as hvd

COUNT = 1 << 20  # float32, 4 MiB
ROUNDS = 4

hvd.init()
mine = np.arange(COUNT, dtype=np.float32) + hvd.rank()
want = np.arange(COUNT, dtype=np.float32) * hvd.size() + sum(range(hvd.size()))
for number in range(ROUNDS):
    np.testing.assert_array_equal(hvd.allreduce(mine, name=str(number), op=hvd.Sum), want)
    top = np.full(3, hvd.rank() if number else np.nan)
    assert hvd.allreduce(top, op=hvd.Max)[0] == hvd.size() - 1 or not number
    assert hvd.allreduce(np.int8(2), op=hvd.Product) == 2 ** hvd.size()
place = (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size())
rows = hvd.allgather(np.array([place]))
if hvd.rank() == 0:
    print("places", rows.tolist())

"""What the torch API promises, as a job's program: every rank runs every case, in order.

    [DDLT_TEST_DEVICE=cuda] mpiexec -n 4 python torch_contract.py DIRECTORY

Each rank appends the cases it has passed to DIRECTORY/<rank>.  The first failure ends the job.
"""

import os
import sys

import torch

import distributed_dl_training.torch as hvd

import torch_device
import torch_gradients
import torch_lifecycle
import torch_tensors
import torch_training
import torch_wrapping
from torch_samples import DEVICE, same, start


def case_shutdown() -> None:
    hvd.shutdown()
    assert not hvd.is_initialized()
    hvd.init()
    same(hvd.allreduce(torch.ones(2), op=hvd.Sum), torch.ones(2) * hvd.size())


def main() -> None:
    start()
    modules = (torch_tensors, torch_gradients, torch_training, torch_wrapping, torch_lifecycle)
    found = {name: value for module in modules for name, value in vars(module).items()}
    if DEVICE != "cpu":
        found.update(vars(torch_device))
    found["case_shutdown"] = case_shutdown
    with open(os.path.join(sys.argv[1], str(hvd.rank())), "a") as passed:
        for name, case in found.items():
            if name.startswith("case_"):
                case()
                passed.write(name[5:] + "\n")
                passed.flush()


if __name__ == "__main__":
    main()

"""Programs of the documentation that this runtime stands for; only the data is made up.

python torch_documents.py hello | splits | training DIRECTORY
"""

import os
import sys
from typing import Any


def hello() -> None:
    """The check of an installation: say hello from every rank."""
    import torch  # noqa: F401

    import distributed_dl_training.torch as hvd

    hvd.init()
    hvd.size()
    hvd.rank()
    print("Hello from:", hvd.rank())


def splits() -> None:
    """mpi4py beside it, and one training for each half of the ranks."""
    import distributed_dl_training.torch as hvd

    # Initialize
    hvd.init()

    # Verify that MPI multi-threading is supported.
    assert hvd.mpi_threads_supported()

    from mpi4py import MPI

    assert hvd.size() == MPI.COMM_WORLD.Get_size()
    hvd.shutdown()

    # Split COMM_WORLD into subcommunicators
    subcomm = MPI.COMM_WORLD.Split(color=MPI.COMM_WORLD.rank % 2, key=MPI.COMM_WORLD.rank)

    # Initialize
    hvd.init(comm=subcomm)

    print(f"COMM_WORLD rank: {MPI.COMM_WORLD.rank}, rank: {hvd.rank()}")

    import torch

    world = torch.tensor([float(MPI.COMM_WORLD.rank)])
    assert hvd.allgather(world).tolist() == list(
        range(MPI.COMM_WORLD.rank % 2, MPI.COMM_WORLD.size, 2)
    )


def training(directory: str) -> None:
    """A training loop in the six steps, in one piece as document 004 has it."""
    import torch
    import torch.nn.functional as functional

    import distributed_dl_training.torch as hvd

    # 1. Initialize.
    hvd.init()

    # 2. Pin the device to be used to the local rank.
    device = torch.device("cpu")
    if torch.cuda.is_available():
        # Ranks of tests may have to share a GPU; programs need no modulo.
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
        device = torch.device("cuda")
    torch.set_num_threads(1)

    torch.manual_seed(hvd.rank())
    x = torch.randn(256, 8)
    y = (x.sum(1) > 0).long()
    dataset = torch.utils.data.TensorDataset(x, y)
    sampler: Any = torch.utils.data.distributed.DistributedSampler(
        dataset, num_replicas=hvd.size(), rank=hvd.rank()
    )
    loader: Any = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler)
    layers = [torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)]
    model = torch.nn.Sequential(*layers).to(device)

    # 3. Scale the learning rate by the number of workers.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.5)

    # 4. Wrap the optimizer.
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    # 5. Broadcast the initial state, here of a checkpoint that only the first worker has read.
    path = os.path.join(directory, "checkpoint.pt")
    first = 0
    if hvd.rank() == 0 and os.path.exists(path):
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first = checkpoint["epoch"] + 1
    first = hvd.broadcast_object(first, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(first, first + 3):
        sampler.set_epoch(epoch)
        for data, target in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(data.to(device)), target.to(device))
            loss.backward()
            optimizer.step()

        # 6. Save checkpoints only on worker 0.
        if hvd.rank() == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "epoch": epoch}, path)
    accuracy = (model(x.to(device)).argmax(1).cpu() == y).float().mean()
    mean = hvd.allreduce(accuracy, name="accuracy").item()
    weights = torch.cat([each.detach().reshape(-1) for each in model.parameters()])
    everybody = hvd.allgather(weights[None])
    assert all(torch.equal(everybody[0], each) for each in everybody)
    if hvd.rank() == 0:
        print(f"epoch {epoch}: accuracy {mean:.3f}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

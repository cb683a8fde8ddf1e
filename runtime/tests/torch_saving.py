"""Train on all ranks, save on rank 0, and load where the runtime is not installed."""

import os
import subprocess
import sys
import tempfile

import torch

import distributed_dl_training.torch as hvd

LOADING = """
import os, sys
sys.modules["distributed_dl_training"] = None
import torch
folder = sys.argv[1]
inputs, expected = torch.load(os.path.join(folder, "outputs.pt"))
script = torch.jit.load(os.path.join(folder, "script.pt"))
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
checkpoint = torch.load(os.path.join(folder, "checkpoint.pt"))
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
for loaded in (script, model.eval()):
    torch.testing.assert_close(loaded(inputs), expected)
assert len(optimizer.state_dict()["state"]) == 4
print("loaded 2")
"""


def main() -> None:
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), hvd.SyncBatchNorm(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), 0)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(6, 4)).pow(2).sum().backward()
        optimizer.step()
    if hvd.rank():
        return
    # The layer of the runtime has the variables of torch's own, which takes its place.
    plain = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).eval()
    plain.load_state_dict(model.state_dict())
    inputs = torch.randn(6, 4)
    expected = model.eval()(inputs).detach()
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.trace(plain, inputs).save(os.path.join(folder, "script.pt"))
        checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(checkpoint, os.path.join(folder, "checkpoint.pt"))
        torch.save((inputs, expected), os.path.join(folder, "outputs.pt"))
        subprocess.check_call([sys.executable, "-W", "ignore", "-c", LOADING, folder])


if __name__ == "__main__":
    main()

"""Cases of ``torch_contract.py``: who owns a parameter's hooks, and for how long."""

import copy
import gc
import io
import os
import pickle
import signal
import time
import warnings
from typing import Any

import torch

import distributed_dl_training.torch as hvd

from contract_signals import kernel_actions
from torch_samples import DEVICE, refused, same
from torch_training import batch, close, network, sgd, share, train, trained_alone


def case_dropped_optimizer() -> None:
    """Its hooks go with it: the next one over the same model trains as if it were the first."""
    model = network()
    for _ in range(3):
        optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters())
    train(model, optimizer, 10)
    close(model, trained_alone(10))
    del optimizer
    gc.collect()
    x, y = batch(0)
    torch.nn.functional.mse_loss(model(share(x)), share(y)).backward()  # nobody sends anything
    hvd.barrier()


def case_earlier_optimizer() -> None:
    """Parameters belong to the optimizer that was distributed last; the earlier one says so."""
    model = network()
    earlier = hvd.DistributedOptimizer(sgd(model))
    later = hvd.DistributedOptimizer(sgd(model))
    train(model, later, 2)
    if hvd.size() > 1:
        with refused(RuntimeError):
            earlier.step()
        x, y = batch(0)
        torch.nn.functional.mse_loss(model(share(x)), share(y)).backward()
        with refused(ValueError):
            hvd.DistributedOptimizer(sgd(model))
        later.synchronize()


def case_unfrozen_parameters() -> None:
    """Those that train only after wrapping are reduced as well, from the first step on."""

    def trained(distribute: bool) -> Any:
        model = network()
        for parameter in model[0].parameters():
            parameter.requires_grad_(False)
        optimizer = sgd(model)
        if distribute:
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        for step in range(8):
            if step == 3:
                for parameter in model[0].parameters():
                    parameter.requires_grad_(True)
            x, y = (share(each) for each in batch(step)) if distribute else batch(step)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        return model

    close(trained(True), trained(False))


def case_pickled_optimizer() -> None:
    """It goes on where it was, by pickle, torch.save and copy, as one that is distributed."""

    def by_pickle(pair: Any) -> Any:
        return pickle.loads(pickle.dumps(pair))

    def by_torch(pair: Any) -> Any:
        stream = io.BytesIO()
        torch.save(pair, stream)
        stream.seek(0)
        old = [int(each) for each in torch.__version__.split(".")[:2]] < [1, 13]
        return torch.load(stream, **({} if old else {"weights_only": False}))

    for way in (by_pickle, by_torch, copy.deepcopy):
        model = network()
        optimizer = hvd.DistributedOptimizer(
            sgd(model), model.named_parameters(), gradient_predivide_factor=2.0
        )
        train(model, optimizer, 4)
        model, again = way((model, optimizer))
        assert isinstance(again, torch.optim.SGD) and type(again).__name__ == "SGD"
        assert again.process_set is hvd.global_process_set
        assert again.gradient_predivide_factor == 2.0
        for step in range(4, 10):
            x, y = batch(step)
            again.zero_grad()
            torch.nn.functional.mse_loss(model(share(x)), share(y)).backward()
            again.step()
        close(model, trained_alone(10))


def case_attributes_of_horovod() -> None:
    """horovod/torch/optimizer.py:73-80 of 0.28.1: programs read these."""
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters(), op=hvd.Sum)
    names = dict(model.named_parameters())
    assert {name: each for each, name in optimizer._parameter_names.items()} == names
    assert (optimizer.op, optimizer.backward_passes_per_step) == (hvd.Sum, 1)
    optimizer.set_backward_passes_per_step(2)
    assert optimizer.backward_passes_per_step == 2
    assert optimizer.process_set is hvd.global_process_set and not optimizer.sparse_as_dense


def embeddings(kind: Any, lr: float) -> Any:
    table = torch.nn.Embedding(6, 3, sparse=True)
    with torch.no_grad():
        table.weight.copy_(torch.arange(18.0).view(6, 3) / 8)
    return table, kind(table.parameters(), lr=lr)


def case_sparse_gradient_of_some_ranks() -> None:
    """Also in the first step: the ranks agree on a layout, and who has none takes part."""
    if DEVICE != "cpu":
        return
    rank, size = hvd.rank(), hvd.size()
    for kind in (torch.optim.SGD, torch.optim.SparseAdam):
        for dense in (False, True):
            table, optimizer = embeddings(kind, 0.5)
            optimizer = hvd.DistributedOptimizer(
                optimizer, table.named_parameters(), sparse_as_dense=dense
            )
            alone, plain = embeddings(kind, 0.5)
            for step in range(3):
                optimizer.zero_grad()
                if step or rank:  # not the first rank in the first step
                    table(torch.tensor([rank % 6, 5])).sum().backward()
                optimizer.step()
                plain.zero_grad()
                for each in range(size):
                    if step or each:
                        (alone(torch.tensor([each % 6, 5])).sum() / size).backward()
                if alone.weight.grad is not None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        alone.weight.grad = alone.weight.grad.coalesce()
                    plain.step()
            assert torch.allclose(table.weight, alone.weight, rtol=1e-6), (kind, dense)


class Shard(torch.utils.data.IterableDataset):
    """Numbers that this rank alone has, as its data workers find out."""

    def __iter__(self) -> Any:
        return iter(range(hvd.rank(), 4 * hvd.size(), hvd.size()))


def case_data_workers() -> None:
    """Forked workers ask for their rank: horovod's examples shard data so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MPI has threads, and Python >= 3.12 tells
        loader = torch.utils.data.DataLoader(
            Shard(), batch_size=None, num_workers=1, multiprocessing_context="fork"
        )
        rows = [int(each) for each in loader]
    assert rows == list(range(hvd.rank(), 4 * hvd.size(), hvd.size()))


def case_data_loader_has_its_handler() -> None:
    """That of SIGCHLD stays in the kernel, and raises once a worker is killed."""
    before = signal.getsignal(signal.SIGCHLD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MPI has threads, and Python >= 3.12 tells
        loader: Any = torch.utils.data.DataLoader(
            range(1000),
            batch_size=None,
            num_workers=1,
            multiprocessing_context="fork",
            timeout=30,
        )
        rows = iter(loader)
        assert int(next(rows)) == 0
    actions = kernel_actions()
    for _ in range(50):
        same(hvd.allreduce(torch.ones(3), op=hvd.Sum, name="loaded"), torch.ones(3) * hvd.size())
    assert kernel_actions() == actions
    assert int(next(rows)) == 1
    try:
        os.kill(rows._workers[0].pid, signal.SIGKILL)
        time.sleep(30)
        raise AssertionError("no handler has run")
    except RuntimeError as error:
        assert "worker" in str(error), error
    same(hvd.allreduce(torch.ones(3), op=hvd.Sum, name="loaded"), torch.ones(3) * hvd.size())
    del rows
    signal.signal(signal.SIGCHLD, before)


def case_never_used_parameters() -> None:
    """One that no rank has a gradient of is asked about each time, and may come later."""
    one, other = (torch.nn.Parameter(torch.ones(3, device=DEVICE)) for _ in range(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([one, other], lr=1.0))
    for step in range(3):
        optimizer.zero_grad()
        used = one.sum() if step < 2 else one.sum() + other.sum() * (hvd.rank() + 1)
        used.backward()
        optimizer.step()
    same(one.detach(), torch.full_like(one, -2.0))
    same(other.detach(), torch.full_like(other, 1.0 - (hvd.size() + 1) / 2))

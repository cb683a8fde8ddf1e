"""Cases of ``torch_contract.py``: what an optimizer brings along when it is wrapped, and errors."""

import time
import warnings
from typing import Any

import torch

import distributed_dl_training.torch as hvd

from torch_samples import even_and_odd, generator, refused
from torch_training import batch, close, network, sgd, share, train


def case_scheduler_before_wrapping() -> None:
    """It counts on, and the gradients are reduced, as if it had been made afterwards."""

    def trained(model: Any, distribute: bool) -> Any:
        optimizer = sgd(model)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        if distribute:
            optimizer = hvd.DistributedOptimizer(optimizer)
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for step in range(8):
            x, y = (share(each) for each in batch(step)) if distribute else batch(step)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
        return model

    alone = trained(network(), False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(trained(network(), True), alone)


def case_step_hooks_run_once() -> None:
    """Also on ranks to which a state has been broadcast, which torch patches when it is loaded."""
    if not hasattr(torch.optim.Optimizer, "register_step_post_hook"):  # torch 2.0 and later
        return
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model))
    calls = []
    optimizer.register_step_pre_hook(lambda *unused: calls.append("before"))
    optimizer.register_step_post_hook(lambda *unused: calls.append("after"))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    train(model, optimizer, 2)
    assert calls == ["before", "after"] * 2, calls


def case_other_layouts() -> None:
    """Gradients have the strides of their parameters: fused optimizers go by memory alone."""

    def convolutions() -> Any:
        torch.manual_seed(5)
        layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Conv2d(4, 2, 3)]
        return torch.nn.Sequential(*layers).double().to(memory_format=torch.channels_last)

    def trained(distribute: bool) -> Any:
        model = convolutions()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
        if distribute:
            optimizer = hvd.DistributedOptimizer(optimizer)
        for step in range(4):
            x = torch.randn(4, 3, 7, 7, dtype=torch.float64, generator=generator(step))
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            model(share(x) if distribute else x).pow(2).mean().backward()
            optimizer.step()
        return model

    close(trained(True), trained(False), rounding=1e-9)


def case_one_gradient_fails() -> None:
    """The error comes once no gradient is under way any more, and the others are reduced."""
    if hvd.size() == 1:
        return
    first = torch.nn.Parameter(torch.zeros(2 + hvd.rank()))
    second = torch.nn.Parameter(torch.zeros(3))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([first, second], lr=1.0))
    first.sum().backward()
    if hvd.rank():
        time.sleep(0.3)  # rank 0 has been told of the first, and the second is under way
    (second * (hvd.rank() + 1)).sum().backward()
    sent = [each.handle for each in optimizer._steps.gradients._sent.values()]
    with refused(hvd.MismatchError):
        optimizer.step()
    assert len(sent) == 2 and all(handle.done for handle in sent)
    assert second.grad.tolist() == [(hvd.size() + 1) / 2] * 3
    optimizer.zero_grad()
    hvd.barrier()


def case_root_of_a_process_set() -> None:
    """It is a rank of all, as in Horovod, also where it is compared with this rank."""
    if hvd.size() == 1:
        return
    halves = even_and_odd()
    own = halves[hvd.rank() % 2]
    root = own.ranks[-1]
    x = torch.full((2,), float(hvd.rank())).requires_grad_()
    moved = hvd.broadcast(x, root, process_set=own)
    assert moved.tolist() == [root] * 2
    moved.sum().backward()
    assert x.grad.tolist() == [float(hvd.rank() == root)] * 2
    model = network(seed=hvd.rank())
    optimizer = sgd(model, lr=0.1 * (hvd.rank() + 1))
    hvd.broadcast_parameters(model.state_dict(), root, process_set=own)
    hvd.broadcast_optimizer_state(optimizer, root, process_set=own)
    assert optimizer.param_groups[0]["lr"] == 0.1 * (root + 1)
    close(model, network(seed=root))
    for half in halves:
        hvd.remove_process_set(half)


def case_optimizers_of_later_sets() -> None:
    """A set's number may have been another one's; gradients have equal names on all its ranks."""
    if hvd.size() < 3:
        return
    for ranks in ([0, 1], [1, 2]):
        some = hvd.add_process_set(ranks)
        model = network()
        optimizer = hvd.DistributedOptimizer(sgd(model), process_set=some)
        if some.included():
            train(model, optimizer, 1)
        hvd.remove_process_set(some)

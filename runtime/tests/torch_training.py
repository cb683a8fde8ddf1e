"""Cases of ``torch_contract.py``: what becomes of models, by the optimizer and its gradients."""

import contextlib
import warnings
from typing import Any, Callable, List, Tuple

import torch

import distributed_dl_training.torch as hvd
from distributed_dl_training import _session

from contract import adasum
from torch_samples import DEVICE, even_and_odd, generator, refused, stays

# Weights in float64 may differ by this much, relatively, between one rank and several: sums over
# ranks are rounded in another order than sums over a whole batch.
ROUNDING = 1e-12


def network(seed: int = 3) -> Any:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, 1)).double()


def batch(step: int) -> Tuple[Any, Any]:
    """Return one batch of 16 for all ranks together."""
    x = torch.randn(16, 6, dtype=torch.float64, generator=generator(step))
    return x, x.sin().sum(1, keepdim=True)


def share(tensor: Any, of: int = 1, part: int = 0) -> Any:
    """Return this rank's rows, or one of ``of`` parts of them."""
    rows = tensor.shape[0] // hvd.size()
    own = tensor[hvd.rank() * rows : (hvd.rank() + 1) * rows]
    return own[part * (rows // of) : (part + 1) * (rows // of)]


def sgd(model: Any, **options: Any) -> Any:
    settings = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3}
    return torch.optim.SGD(model.parameters(), **{**settings, **options})


def trained_alone(steps: int, make: Callable[[Any], Any] = sgd) -> Any:
    """Train on the whole batches with torch alone; return the model."""
    model = network()
    optimizer = make(model)
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


def close(model: Any, alone: Any, rounding: float = ROUNDING) -> None:
    for one, other in zip(model.parameters(), alone.parameters()):
        worst = (one - other).abs().max() / other.abs().max()
        assert worst <= rounding, float(worst)


def train(
    model: Any, optimizer: Any, steps: int, passes: int = 1, set_to_none: bool = True
) -> None:
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad(set_to_none=set_to_none)
        for part in range(passes):
            loss = torch.nn.functional.mse_loss(
                model(share(x, passes, part)), share(y, passes, part)
            )
            (loss / passes).backward()
        optimizer.step()


def case_training() -> None:
    for options in (
        {},
        {"num_groups": 2},
        {"gradient_predivide_factor": 2.0},
        {"groups": "first two"},
        {"named_parameters": None},
    ):
        model = network()
        given = dict(options)
        if "groups" in given:
            given["groups"] = [list(model.parameters())[:2]]
        given.setdefault("named_parameters", model.named_parameters())
        optimizer = hvd.DistributedOptimizer(sgd(model), **given)
        assert isinstance(optimizer, torch.optim.SGD)
        train(model, optimizer, 10)
        close(model, trained_alone(10))
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model), backward_passes_per_step=2)
    train(model, optimizer, 10, passes=2, set_to_none=False)
    close(model, trained_alone(10))


def case_training_float32_and_compressed() -> None:
    alone = trained_alone(10)
    for compression, rounding in (
        (hvd.Compression.none, 1e-5),
        (hvd.Compression.fp16, 2e-2),
        (hvd.Compression.bf16, 1e-1),
    ):
        model = network().float()
        optimizer = hvd.DistributedOptimizer(sgd(model), compression=compression)
        for step in range(10):
            x, y = (each.float() for each in batch(step))
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(share(x)), share(y)).backward()
            optimizer.step()
        if hvd.size() == 1:
            rounding = max(rounding, 1e-5)
        close(model, alone, rounding)
        weights = hvd.allgather(
            torch.cat([each.detach().view(-1) for each in model.parameters()])[None]
        )
        assert all(torch.equal(weights[0], each) for each in weights)


def case_adasum() -> None:
    """Each rank takes its step; what they change is combined, each parameter by itself."""
    size = hvd.size()
    if size & (size - 1):
        return
    model, alone = network(), [network() for _ in range(size)]
    optimizer = hvd.DistributedOptimizer(sgd(model), model.named_parameters(), op=hvd.Adasum)
    optimizers = [sgd(each) for each in alone]
    for step in range(5):
        x, y = batch(step)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(share(x)), share(y)).backward()
        optimizer.step()
        starts = [each.detach().clone() for each in alone[0].parameters()]
        for rank, (one, own) in enumerate(zip(alone, optimizers)):
            rows = slice(rank * (16 // size), (rank + 1) * (16 // size))
            own.zero_grad()
            torch.nn.functional.mse_loss(one(x[rows]), y[rows]).backward()
            own.step()
        for start, parts in zip(starts, zip(*(each.parameters() for each in alone))):
            changes = [(part.detach() - start).numpy().ravel() for part in parts]
            combined = start + torch.from_numpy(adasum(changes)).view_as(start)
            for part in parts:
                part.data.copy_(combined)
    close(model, alone[0], 1e-10)
    assert optimizer.state_dict()["state"] and optimizer.op is hvd.Adasum
    with refused(AssertionError):
        optimizer.skip_synchronize()


def case_schedulers_and_clipping() -> None:
    def decayed(model: Any, optimizer: Any, split: bool) -> None:
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        for step in range(8):
            x, y = batch(step)
            optimizer.zero_grad()
            rows = (share(x), share(y)) if split else (x, y)
            torch.nn.functional.mse_loss(model(rows[0]), rows[1]).backward()
            if split:
                optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            with contextlib.ExitStack() as stack:
                if split:
                    stack.enter_context(optimizer.skip_synchronize())
                optimizer.step()
            schedule.step()

    alone = network()
    decayed(alone, sgd(alone), False)
    model = network()
    decayed(model, hvd.DistributedOptimizer(sgd(model)), True)
    close(model, alone)


def case_grad_scaler() -> None:
    """Scaled gradients: one rank whose share overflows lets all ranks leave out the step.

    Horovod's recipe (examples/pytorch/pytorch_mnist.py:82 of 0.28.1): synchronize, unscale, step.
    """
    if not hasattr(torch.amp, "GradScaler"):  # torch 2.3 has it for processors
        return

    def trained(distribute: bool) -> Tuple[Any, List[float]]:
        model = network()
        optimizer = sgd(model)
        if distribute:
            optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
        scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**10, growth_interval=3)
        scales = []
        for step in range(12):
            x, y = batch(step)
            if step in (4, 8):
                y[-1] = float("inf")  # of the last rank's share
            optimizer.zero_grad()
            rows = (share(x), share(y)) if distribute else (x, y)
            loss = torch.nn.functional.mse_loss(model(rows[0]), rows[1])
            scaler.scale(loss).backward()
            with contextlib.ExitStack() as stack:
                if distribute:
                    optimizer.synchronize()
                    stack.enter_context(optimizer.skip_synchronize())
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return model, scales

    model, scales = trained(True)
    alone, wanted = trained(False)
    assert scales == wanted and set(scales) == {2.0**10, 2.0**11}, scales
    close(model, alone)


def case_misuse() -> None:
    model = network()
    with refused(ValueError):
        hvd.DistributedOptimizer(sgd(model), list(model.named_parameters())[:-1])
    with refused(ValueError):
        hvd.DistributedOptimizer(sgd(model), [("same", each) for each in model.parameters()])
    with refused(ValueError):
        hvd.DistributedOptimizer(sgd(model), op=hvd.Sum, gradient_predivide_factor=2.0)
    if hvd.size() == 1:
        return
    optimizer = hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())
    x, y = batch(0)
    loss = torch.nn.functional.mse_loss(model(share(x)), share(y))
    loss.backward(retain_graph=True)
    with refused(AssertionError):
        optimizer.zero_grad()
    with refused(AssertionError):
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(each.message) for each in seen)


def case_missing_gradients() -> None:
    """A parameter that only some ranks use, one that nobody uses, one that is added late."""
    model = network()
    unused = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    late = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = torch.optim.SGD([*model.parameters(), unused], lr=1.0)
    optimizer = hvd.DistributedOptimizer(optimizer)
    optimizer.add_param_group({"params": [late]})
    for _ in range(2):
        before = [each.detach().clone() for each in model.parameters()]
        optimizer.zero_grad()
        x, _ = batch(0)
        last = hvd.rank() == hvd.size() - 1
        loss = late.sum() * hvd.rank() + (model(x).sum() if last else model[0](x).sum())
        loss.backward()
        optimizer.step()
        single = network()
        single.load_state_dict(dict(zip(model.state_dict(), before)))
        wanted = torch.autograd.grad(single(x).sum(), list(single.parameters()))
        others = torch.autograd.grad(single[0](x).sum(), list(single[0].parameters()))
        for at, (now, was) in enumerate(zip(model.parameters(), before)):
            total = wanted[at] + (others[at] * (hvd.size() - 1) if at < 2 else 0)
            assert torch.allclose(was - now, total / hvd.size(), rtol=1e-10), at
    assert unused.tolist() == [1.0] * 3
    weights = hvd.allgather(late.detach()[None])
    assert torch.equal(weights[0], weights[-1])
    assert hvd.size() == 1 or float(late.detach()[0]) == -float(hvd.size() - 1)


def case_sparse_gradients() -> None:
    for dense in (False, True):
        torch.manual_seed(1)
        table = torch.nn.Embedding(10, 4, sparse=True)
        start = table.weight.detach().clone()
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        optimizer = hvd.DistributedOptimizer(optimizer, sparse_as_dense=dense)
        for step in range(3):
            optimizer.zero_grad()
            if step < 2 or hvd.rank() == 0:
                table(torch.tensor([hvd.rank(), 9])).sum().backward()
            optimizer.step()
        used = torch.zeros(10)
        used[: hvd.size()] = 2.0 / hvd.size()
        used[0] += 1.0 / hvd.size()
        used[9] = 2.0 + 1.0 / hvd.size()
        assert torch.allclose(start - table.weight.detach(), used[:, None].expand(10, 4), atol=1e-6)


def case_optimizer_state() -> None:
    root = hvd.size() - 1
    makers: List[Callable[[Any], Any]] = [
        lambda model: sgd(model, lr=0.1 * (hvd.rank() + 1)),
        lambda model: torch.optim.Adam(model.parameters(), lr=0.01 * (hvd.rank() + 1)),
        lambda model: torch.optim.LBFGS(model.parameters(), lr=0.1 * (hvd.rank() + 1)),
    ]
    for make in makers:
        model = network(seed=hvd.rank())
        optimizer = make(model)
        if hvd.rank() == root:

            def closure(model: Any = model, optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad()
                loss = model(batch(1)[0]).pow(2).mean()
                loss.backward()
                return loss

            optimizer.step(closure)
        hvd.broadcast_parameters(model.state_dict(), root_rank=root)
        hvd.broadcast_optimizer_state(optimizer, root_rank=root)
        texts = hvd.allgather_object(str((optimizer.state_dict(), model.state_dict())))
        assert all(text == texts[root] for text in texts), texts
    pairs = list(model.named_parameters())
    hvd.broadcast_parameters(pairs, root_rank=0)
    with refused(ValueError):
        hvd.broadcast_parameters([torch.ones(1), ("pair", torch.ones(1))])
    hvd.broadcast_parameters(model.parameters())


def case_join() -> None:
    """Rank r has r + 1 batches: whoever has no more takes part with zeros."""
    if hvd.size() == 1:
        assert hvd.join() == 0
        return
    weight = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    hvd.allreduce(torch.ones(1), name="in step")
    for _ in range(hvd.rank() + 1):
        optimizer.zero_grad()
        (weight * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
    assert hvd.join() == hvd.size() - 1
    sums = [sum(rank + 1 for rank in range(step, hvd.size())) for step in range(hvd.rank() + 1)]
    assert torch.allclose(-weight.detach(), torch.full((5,), sum(sums) / hvd.size()).double())
    hvd.broadcast_parameters({"weight": weight}, root_rank=hvd.size() - 1)
    half = torch.ones(3, dtype=torch.bfloat16)
    if hvd.rank():
        assert hvd.allreduce(half, op=hvd.Sum, name="half").tolist() == [hvd.size() - 1.0] * 3
    hvd.join()


def case_process_sets() -> None:
    if hvd.size() == 1:
        return
    halves = even_and_odd()
    own = halves[hvd.rank() % 2]
    model = network(seed=own.ranks[0])
    for half in halves:
        optimizer = hvd.DistributedOptimizer(sgd(model), process_set=half)
        if half is own:
            x, _ = batch(hvd.rank())
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    weights = hvd.allgather(next(model.parameters()).detach()[None])
    for rank in range(hvd.size()):
        assert torch.equal(weights[rank], weights[rank % 2])
        assert hvd.size() == 2 or not torch.equal(weights[0], weights[1])
    for half in halves:
        hvd.remove_process_set(half)


def case_arena() -> None:
    """Gradients are views, held once, whether a program drops them or sets them to zero.

    Where they go by way of the host they are not.
    """
    if hvd.size() == 1 or (DEVICE != "cpu" and not stays()):
        return
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
    half = torch.nn.Linear(4, 4).bfloat16()
    parameters = [*model.parameters(), *half.parameters()]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1e-3))
    total = sum(each.numel() * each.element_size() for each in parameters)
    addresses = set()
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss = model(torch.ones(2, 256)).sum() + half(torch.ones(1, 4).bfloat16()).sum().float()
        loss.backward()
        optimizer.step()
        addresses.add(tuple(each.grad.data_ptr() for each in parameters))
        storages = {
            each.grad.untyped_storage().data_ptr(): each.grad.untyped_storage().nbytes()
            for each in parameters
        }
        assert len(storages) == 2 and sum(storages.values()) == total
    assert len(addresses) == 1
    buffers = _session.controller()._negotiation._fusion._buffers
    assert sum(each.nbytes for each in buffers.values()) <= 64 << 20

"""Batch normalization by the statistics of all ranks' batches."""

from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from distributed_dl_training import _facts
from distributed_dl_training._core import Op
from distributed_dl_training.torch._reductions import allreduce


class SyncBatchNorm(_BatchNorm):
    """As torch.nn.BatchNorm of any dimension, over the batches of all ranks, on any device.

    Horovod's takes tensors on a GPU alone (horovod/torch/sync_batch_norm.py:80 of 0.28.1).
    In training forward and backward are collective.
    """

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"at least 2 dimensions are needed, not {input.dim()}")

    def forward(self, input: Any) -> Any:
        """Return the input, normalized.  Raises ValueError for fewer than 2 dimensions."""
        own = self.training or not self.track_running_stats
        if not own or _facts.size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        kept = [at for at in range(input.dim()) if at != 1]
        wide = input if input.dtype == torch.float64 else input.float()
        counts = torch.full((1,), wide.numel() // wide.shape[1], dtype=wide.dtype)
        local = torch.cat([wide.sum(kept), (wide * wide).sum(kept), counts.to(wide.device)])
        sums = allreduce(local, name=None, op=Op.SUM)
        total, channels = sums[-1], wide.shape[1]
        mean = sums[:channels] / total
        variance = sums[channels:-1] / total - mean * mean
        self._note(mean.detach(), variance.detach(), total.detach())
        shape = [1, channels] + [1] * (input.dim() - 2)
        scale = torch.rsqrt(variance + self.eps)
        made = (wide - mean.view(shape)) * scale.view(shape)
        if self.affine:
            made = made * self.weight.view(shape) + self.bias.view(shape)
        return made.to(input.dtype)

    def _note(self, mean: Any, variance: Any, total: Any) -> None:
        """Let the running statistics follow, as torch's own do."""
        if not self.track_running_stats or self.running_mean is None:
            return
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1.0 / float(self.num_batches_tracked)
        unbiased = variance * (total / (total - 1))
        self.running_mean.mul_(1 - momentum).add_(mean.to(self.running_mean.dtype) * momentum)
        self.running_var.mul_(1 - momentum).add_(unbiased.to(self.running_var.dtype) * momentum)

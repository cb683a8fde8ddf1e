"""Gradients in fewer bits: what travels, and back."""

from typing import Any, Tuple

import torch


class Compressor:
    """How gradients travel; programs derive their own from it.  This one changes nothing."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """Return what travels, and what ``decompress`` needs."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return a tensor of the dtype that ``compress`` was given."""
        return tensor


class NoneCompressor(Compressor):
    """Everything travels as it is."""


class _Cast(Compressor):
    """Floating tensors travel in ``dtype``; others as they are."""

    dtype: Any = None

    @classmethod
    def compress(cls, tensor: Any) -> Tuple[Any, Any]:
        """Return what travels, and what ``decompress`` needs."""
        if not tensor.dtype.is_floating_point or tensor.dtype == cls.dtype:
            return tensor, None
        return tensor.to(cls.dtype), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return a tensor of the dtype that ``compress`` was given."""
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_Cast):
    """Floating tensors travel as float16: its largest number is 65504."""

    dtype = torch.float16


class BF16Compressor(_Cast):
    """Floating tensors travel as bfloat16: the range of float32, 8 bits of precision."""

    dtype = torch.bfloat16


class Compression:
    """The ways to compress; each has ``compress(tensor)`` and ``decompress(tensor, ctx)``.

    The engines mpi and gloo sum float16 and bfloat16 in float32 and round once, so that there what
    travels is float32: compression then costs precision and saves nothing but memory.
    """

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor

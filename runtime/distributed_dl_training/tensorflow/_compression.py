"""Gradients in fewer bits: what travels, and back."""

from typing import Any, Tuple

import tensorflow as tf


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


class FP16Compressor(Compressor):
    """Floating tensors travel as float16: its largest number is 65504."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """Return what travels, and what ``decompress`` needs."""
        if not tensor.dtype.is_floating or tensor.dtype == tf.float16:
            return tensor, None
        return tf.cast(tensor, tf.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return a tensor of the dtype that ``compress`` was given."""
        return tensor if ctx is None else tf.cast(tensor, ctx)


class Compression:
    """The ways to compress; each has ``compress(tensor)`` and ``decompress(tensor, ctx)``."""

    none = NoneCompressor
    fp16 = FP16Compressor

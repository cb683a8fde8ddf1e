"""Compression of gradients for the transfer."""

from typing import Any, Tuple

import tensorflow as tf


class Compressor:
    """Base class of compressors, also of a program's own; it changes nothing."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """Return the tensor to send and the context for ``decompress``."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return a tensor of the original dtype."""
        return tensor


class NoneCompressor(Compressor):
    """Sends tensors unchanged."""


class FP16Compressor(Compressor):
    """Sends floating-point tensors as float16, whose largest number is 65504."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        """Return the tensor to send and the context for ``decompress``."""
        if not tensor.dtype.is_floating or tensor.dtype == tf.float16:
            return tensor, None
        return tf.cast(tensor, tf.float16), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """Return a tensor of the original dtype."""
        return tensor if ctx is None else tf.cast(tensor, ctx)


class Compression:
    """Compressors, with ``compress(tensor)`` and ``decompress(tensor, ctx)``."""

    none = NoneCompressor
    fp16 = FP16Compressor

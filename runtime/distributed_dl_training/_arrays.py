"""How numpy's arrays come to the collectives: they are what the engines take.

numpy has no bfloat16.  Arrays of the one of the package ml_dtypes travel as torch's do, and meet
those: results are of its dtype again.
"""

from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy

from distributed_dl_training._collectives import Local
from distributed_dl_training._core import Array
from distributed_dl_training._handle import ArrayHandle
from distributed_dl_training._memory import BFLOAT16

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Arrays:
    """numpy's adapter."""

    views = True
    handle: Any = ArrayHandle

    def read(self, tensor: "ArrayLike") -> Local:
        if type(tensor) is numpy.ndarray:
            array = tensor
        else:
            try:
                array = numpy.asarray(tensor)
            except Exception as error:  # __array__ may raise anything; it must be raised in step
                return Local(numpy.empty(0, dtype=numpy.void), (), "void", error)
        dtype = array.dtype
        name = _NAMES.get(dtype)
        if name is None:
            name = dtype.name if dtype.names is None else str(dtype)
            if dtype.hasobject or dtype.kind not in "biufcmMSUV":
                refusal = TypeError(f"dtype {dtype} cannot travel between ranks")
                return Local(numpy.empty(0, dtype=numpy.void), array.shape, name, refusal)
            if not dtype.isnative:
                array = array.astype(dtype.newbyteorder("="))
                name = array.dtype.name if dtype.names is None else str(array.dtype)
        shape = array.shape
        flat = array if len(shape) == 1 and array.flags.c_contiguous else array.ravel()
        if name == "bfloat16":
            flat = flat.view(BFLOAT16)
        return Local(flat, shape, name)

    def flat(self, tensor: Any, last: Any, in_place: bool) -> Optional[Array]:
        if type(tensor) is not numpy.ndarray or tensor.shape != last.shape:
            return None
        # Only what numpy has itself, in native byte order: these dtypes are one object each.
        if tensor.dtype is not last.dtype or tensor.dtype not in _NAMES:
            return None
        return tensor if tensor.ndim == 1 else tensor.reshape(-1)

    def write(self, tensor: Any) -> Optional[Array]:
        return None  # nothing in this module changes its arguments

    def make(self, flat: Array, shape: Tuple[int, ...], like: Any) -> Array:
        if flat.dtype == BFLOAT16:
            flat = flat.view(numpy.asarray(like).dtype)
        return flat if flat.shape == shape else flat.reshape(shape)

    def put(self, tensor: Any, value: Any) -> None:
        tensor[...] = value


ARRAYS = Arrays()
# numpy works a name out anew each time, which takes longer than anything else here.
_NAMES = {numpy.dtype(code): numpy.dtype(code).name for code in "?bBhHiIlLqQefdFDgG"}

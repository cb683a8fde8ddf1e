"""The arithmetic of allreduce: which operation suits which dtype, scaling, NaN and float16."""

from typing import Optional

import numpy

from distributed_dl_training._core import Array, Engine, Op

# Which kinds of dtype an operation takes.  Sums of bool are refused and not guessed: numpy
# adds them as "or", most people expect a count.  Averages of integers are refused because
# neither rounding nor another dtype would be what every caller expects.
_KINDS = {
    Op.SUM: "iufc",
    Op.PRODUCT: "iufc",
    Op.AVERAGE: "fc",
    Op.MIN: "biuf",
    Op.MAX: "biuf",
}
_WHY = {
    "b": "bool has only Min (all) and Max (any); convert it to an integer dtype to count",
    "i": "an integer average would have to round; use op=Sum, or convert to float",
    "u": "an integer average would have to round; use op=Sum, or convert to float",
    "c": "complex numbers have no order",
}
_REDUCIBLE = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_DTYPES = frozenset(numpy.dtype(code) for code in _REDUCIBLE)


def refusal(dtype: "numpy.dtype[numpy.generic]", op: Op, scaled: bool) -> Optional[TypeError]:
    """Return what forbids this reduction, or None.

    dtype: in native byte order.
    scaled: whether a prescale or postscale factor other than 1 was given.
    """
    if dtype not in _DTYPES:
        return TypeError(f"allreduce cannot reduce dtype {dtype}")
    if dtype.kind not in _KINDS[op]:
        return TypeError(
            f"allreduce with op={op.value} cannot reduce dtype {dtype}: {_WHY[dtype.kind]}"
        )
    if scaled and dtype.kind not in "fc":
        return TypeError(
            f"prescale_factor and postscale_factor cannot scale dtype {dtype}: convert to float"
        )
    return None


def reduced(engine: Engine, array: Array, op: Op, prescale: float, postscale: float) -> Array:
    """Return the reduction of all ranks' arrays, in the shape and dtype of ``array``; collective.

    The ranks must have agreed on shape, dtype and op, and ``refusal`` must have none.
    """
    # Always a copy, so that the caller's array stays as it is and MPI can work in place.
    work: Array = numpy.array(array, dtype=_working(array.dtype), order="C").reshape(-1)
    if work.size:
        if prescale != 1.0:
            numpy.multiply(work, prescale, out=work)
        if op in (Op.MIN, Op.MAX):
            _extreme(engine, work, op)
        else:
            engine.allreduce(work, Op.SUM if op is Op.AVERAGE else op)
        if op is Op.AVERAGE:
            numpy.divide(work, engine.size, out=work)
        if postscale != 1.0:
            numpy.multiply(work, postscale, out=work)
    return work.astype(array.dtype, copy=False).reshape(array.shape)


def _working(dtype: "numpy.dtype[numpy.generic]") -> "numpy.dtype[numpy.generic]":
    """Return the dtype to calculate in.

    MPI has no float16: it is calculated in float32, and rounded once at the end.  Bool travels
    as the integers 0 and 1.
    """
    if dtype == numpy.float16:
        return numpy.dtype(numpy.float32)
    if dtype == numpy.bool_:
        return numpy.dtype(numpy.uint8)
    return dtype


def _extreme(engine: Engine, work: Array, op: Op) -> None:
    """Reduce ``work`` in place by MIN or MAX; a NaN on any rank gives NaN, as in numpy.

    MPI leaves it open what becomes of NaN, and results may then differ between ranks.  Unless
    there is one, this costs one reduction of a single byte.
    """
    if work.dtype.kind != "f":
        engine.allreduce(work, op)
        return
    nans = numpy.isnan(work)
    any_nans = numpy.array([nans.any()], dtype=numpy.uint8)
    engine.allreduce(any_nans, Op.MAX)
    if any_nans[0]:
        work[nans] = 0
        engine.allreduce(nans.view(numpy.uint8), Op.MAX)
    engine.allreduce(work, op)
    if any_nans[0]:
        work[nans] = numpy.nan

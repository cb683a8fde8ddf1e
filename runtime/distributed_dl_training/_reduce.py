"""The arithmetic of allreduce: which operation suits which dtype, scaling, NaN and float16."""

import functools
from typing import Any, Callable, Optional

import numpy

from distributed_dl_training._core import Array, Engine, Op
from distributed_dl_training._memory import BFLOAT16

# Which kinds of dtype an operation takes.  Sums of bool are refused and not guessed: numpy
# adds them as "or", most people expect a count.  Averages of integers are refused because
# neither rounding nor another dtype would be what every caller expects.
_KINDS = {
    Op.SUM: "iufc",
    Op.PRODUCT: "iufc",
    Op.AVERAGE: "fc",
    Op.MIN: "biuf",
    Op.MAX: "biuf",
    Op.ADASUM: "f",
}
UFUNCS = {
    Op.SUM: numpy.add,
    Op.PRODUCT: numpy.multiply,
    Op.AVERAGE: numpy.add,
    Op.MIN: numpy.minimum,
    Op.MAX: numpy.maximum,
}
_WHY = {
    "b": "bool has only Min (all) and Max (any); convert it to an integer dtype to count",
    "i": "an integer average would have to round; use op=Sum, or convert to float",
    "u": "an integer average would have to round; use op=Sum, or convert to float",
    "c": "complex numbers have no order",
}
_REDUCIBLE = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_DTYPES = frozenset([numpy.dtype(code) for code in _REDUCIBLE] + [BFLOAT16])


def refusal(
    dtype: "numpy.dtype[Any]", op: Op, scaled: bool, horovod_rules: bool = False
) -> Optional[TypeError]:
    """Return what forbids this reduction, or None.

    dtype: in native byte order.
    scaled: whether a prescale or postscale factor other than 1 was given.
    horovod_rules: integers are averaged and scaled as ``scale`` says.
    """
    if horovod_rules and dtype.kind in "iu":
        op, scaled = Op.SUM if op is Op.AVERAGE else op, False
    text = _why_not(dtype, op, scaled)
    return None if text is None else TypeError(text)


@functools.lru_cache(maxsize=1024)  # it is asked for every tensor
def _why_not(dtype: "numpy.dtype[Any]", op: Op, scaled: bool) -> Optional[str]:
    if dtype not in _DTYPES:
        return f"allreduce cannot reduce dtype {dtype}"
    kind = _kind(dtype)
    if op is Op.ADASUM and kind != "f":
        return f"allreduce with op=Adasum reduces floating dtypes, not {dtype}: convert it"
    if kind not in _KINDS[op]:
        return f"allreduce with op={op.value} cannot reduce dtype {dtype}: {_WHY[kind]}"
    if scaled and kind not in "fc":
        return f"prescale_factor and postscale_factor cannot scale dtype {dtype}: convert to float"
    return None


def working(values: Array, engine: Engine) -> "numpy.dtype[Any]":
    """Return the dtype to calculate in.

    Unless they lie on a device and the engine sums them there, float16 and bfloat16 are calculated
    in float32 and rounded once at the end.  Bool travels as the integers 0 and 1.
    """
    dtype = values.dtype
    there = engine.halves and not isinstance(values, numpy.ndarray)
    if dtype in (numpy.float16, BFLOAT16) and not there:
        return numpy.dtype(numpy.float32)
    if dtype == numpy.bool_:
        return numpy.dtype(numpy.uint8)
    return dtype


def reduce(engine: Engine, values: Array, op: Op, prescale: float, postscale: float) -> None:
    """Reduce ``values``, at least one and in a working dtype, in place; collective."""
    scale(values, prescale)
    if op in (Op.MIN, Op.MAX):
        _extreme(engine, values, op)
    else:
        engine.allreduce(values, Op.SUM if op is Op.AVERAGE else op)
    finish(values, op, engine.size, postscale)


def finish(values: Array, op: Op, size: int, postscale: float) -> None:
    """Turn a sum over ``size`` ranks into what ``op`` says, and scale it, in place."""
    if op is Op.AVERAGE and size > 1:
        values /= size
    scale(values, postscale)


def scale(values: Array, factor: float) -> None:
    """Multiply in place; integers as Horovod does it: in float64, cut towards zero.

    Source: horovod/common/ops/collective_operations.h:89 of 0.28.1 (ScaleBufferCPUImpl).
    """
    if factor == 1.0:
        return
    if values.dtype.kind in "iu" and isinstance(values, numpy.ndarray):
        numpy.multiply(values, factor, out=values, dtype=numpy.float64, casting="unsafe")
    else:
        values *= factor


def _extreme(engine: Engine, work: Array, op: Op) -> None:
    """Reduce ``work`` in place by MIN or MAX; a NaN on any rank gives NaN, as in numpy.

    MPI leaves it open what becomes of NaN, and results may then differ between ranks.  Unless
    there is one, this costs one reduction of a single byte.
    """
    if _kind(work.dtype) != "f" or engine.size == 1:
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


def quiet_caller() -> Callable[..., Any]:
    """Return what calls a function in C so that numpy tells nothing of overflows; one at a time.

    The caller's thread may have made errors of what numpy tells: on one rank alone.
    """
    if int(numpy.__version__.split(".")[0]) < 2:
        return call_quietly
    import contextvars  # numpy 2 keeps it in one, and has Python 3.9 or later

    context = contextvars.Context()
    context.run(numpy.seterr, all="ignore")
    return context.run  # a tenth of the time that ``errstate`` takes


def call_quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it so that numpy tells nothing of overflows: one rank alone might make them errors."""
    with numpy.errstate(all="ignore"):
        return function(*arguments)


def _kind(dtype: "numpy.dtype[Any]") -> str:
    return "f" if dtype == BFLOAT16 else dtype.kind

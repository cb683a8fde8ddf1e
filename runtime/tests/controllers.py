"""Ranks with a controller, each in a thread, and what they ask for."""

from distributed_dl_training._agreement import Request
from distributed_dl_training._controller import Controller
from distributed_dl_training._core import Op, Threads
from distributed_dl_training._handle import Handle
from distributed_dl_training._settings import Settings
from distributed_dl_training._works import Allreduce

from fakes import Group

DEFAULT = Settings()


class Ours(Allreduce):
    """One that a weak reference can watch."""


def allreduce(name, values, op=Op.SUM, **facts):
    """Return a handle for values, reduced in place."""
    shape = values.shape
    arena, start = facts.pop("arena", None), facts.pop("start", 0)
    place = ("arena", start) if arena is not None else ()
    dtype = str(values.dtype)
    request = Request("allreduce", name, dtype, shape, op.value, place=place, **facts)
    return Handle(request, Ours([values], values, op, 1.0, 1.0).in_arena(arena, start))


def ranks(size, body, settings=DEFAULT, threads=Threads.MULTIPLE):
    """Run body(controller) on each rank; shut down in order unless it raises."""

    def one(engine):
        controller = Controller(engine, settings)
        result = body(controller)
        controller.shutdown()
        return result

    group = Group(size, threads)
    results = group.run(one)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results

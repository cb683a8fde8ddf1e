"""The numpy API on one rank, and the session, without MPI."""

import os
import subprocess
import sys

import numpy as np
import pytest

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _reduce, _session

from fakes import Group


@pytest.fixture
def engine():
    one = Group(1).engines[0]
    _session.start(one, abort_on_exception=True)
    yield one
    hvd.shutdown()


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("deliberate")


def test_needs_init():
    assert not hvd.is_initialized()
    for call in (hvd.size, hvd.rank, hvd.local_size, hvd.local_rank, hvd.barrier):
        with pytest.raises(hvd.NotInitializedError, match="init"):
            call()
    with pytest.raises(hvd.NotInitializedError):
        hvd.allreduce(1.0)
    with pytest.raises(hvd.NotInitializedError):
        hvd.broadcast(Unreadable(), root_rank="x")
    hvd.shutdown()


def test_session(engine):
    assert hvd.is_initialized() and hvd.mpi_threads_supported()
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    hvd.shutdown()
    assert engine.closed and not hvd.is_initialized()


@pytest.mark.parametrize("world, guard, aborts", [(2, True, 1), (2, False, 0), (1, True, 0)])
def test_uncaught_exception_aborts(monkeypatch, world, guard, aborts):
    shown, codes = [], []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    monkeypatch.setattr(_session, "_LAST_WORDS", 0)
    one = Group(1).engines[0]
    one.world_size = world
    one.abort = codes.append
    _session.start(one, guard)
    sys.excepthook(KeyError, KeyError("x"), None)
    assert (len(shown), codes) == (1, [1] * aborts)
    hvd.shutdown()
    sys.excepthook(KeyError, KeyError("x"), None)  # without a session it only passes on
    assert (len(shown), codes) == (2, [1] * aborts)


def test_result_is_new(engine):
    x = np.arange(6.0).reshape(2, 3)
    for got in (hvd.allreduce(x), hvd.broadcast(x, 0), hvd.allgather(x)):
        assert not np.shares_memory(got, x)
        np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize(
    "tensor, options, error",
    [
        (Unreadable(), {}, KeyError),
        (["a"], {}, TypeError),
        ([1, 2], {}, TypeError),
        ([True], {"op": hvd.Sum}, TypeError),
        ([1j], {"op": hvd.Max}, TypeError),
        ([1.0], {"op": "Sum"}, TypeError),
        ([1.0], {"postscale_factor": "2 apples"}, TypeError),
        ([1.0], {"prescale_factor": None}, TypeError),
        ([1], {"op": hvd.Sum, "prescale_factor": 2.0}, TypeError),
    ],
)
def test_refusals(engine, tensor, options, error):
    with pytest.raises(error):
        hvd.allreduce(tensor, **options)
    assert hvd.allreduce(1.5) == 1.5


def test_integer_average_says_what_to_do(engine):
    with pytest.raises(TypeError, match="op=Sum"):
        hvd.allreduce(np.arange(3))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_nan_reaches_every_rank(dtype):
    def body(engine):
        mine = np.array([1, engine.rank, np.nan if engine.rank == 1 else 2], dtype=dtype)
        return _reduce.reduced(engine, mine, hvd.Min, 1.0, 1.0)

    for got in Group(3).run(body):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, [1, 0, np.nan])


def test_float16_is_rounded_once():
    def body(engine):
        mine = np.array(2048 if engine.rank == 0 else 1, dtype="f2")
        return _reduce.reduced(engine, mine, hvd.Sum, 1.0, 1.0)

    assert [float(got) for got in Group(3).run(body)] == [2050.0] * 3  # not 2048, twice rounded


def test_without_mpi4py_the_error_says_what_to_do(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ModuleNotFoundError('gone', name='mpi4py')")
    code = (
        "import distributed_dl_training.numpy as hvd\n"
        "try:\n"
        "    hvd.init()\n"
        "except hvd.MPIUnavailableError as error:\n"
        "    print(error)\n"
    )
    path = os.pathsep.join([str(tmp_path)] + [one for one in sys.path if one])
    environ = dict(os.environ, PYTHONPATH=path)
    text = subprocess.check_output([sys.executable, "-c", code], env=environ).decode()
    assert "mpi4py is not installed" in text and "hint:" in text


def test_import_does_not_load_mpi():
    code = (
        "import sys, distributed_dl_training.numpy as hvd\n"
        "assert not [name for name in sys.modules if name.startswith('mpi4py')]\n"
        "assert hvd.__name__ == 'distributed_dl_training.numpy'\n"
        "assert 'ndarray' in dir(sys.modules['numpy'])\n"
    )
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(one for one in sys.path if one))
    subprocess.check_call([sys.executable, "-c", code], env=environ)

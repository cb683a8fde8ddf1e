"""The numpy API on one rank, and the session, without MPI."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _engines, _reduce, _session, _settings
from distributed_dl_training._settings import Settings

from fakes import Group


@pytest.fixture
def engine():
    one = Group(1).engines[0]
    _session.start(one, Settings(), abort_on_exception=True)
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
    assert hvd.is_initialized() and hvd.engine_name() == "fake"
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    hvd.shutdown()
    assert engine.closed and not hvd.is_initialized()


@pytest.mark.parametrize("world, guard, aborts", [(2, True, 1), (2, False, 0), (1, True, 0)])
def test_uncaught_exception_aborts(monkeypatch, world, guard, aborts):
    shown, codes = [], []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    one = Group(1).engines[0]
    one.world_size = world
    one.abort = codes.append
    _session.start(one, Settings(), guard)
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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nan_reaches_every_rank(dtype):
    def body(engine):
        mine = np.array([1, engine.rank, np.nan if engine.rank == 1 else 2], dtype=dtype)
        _reduce.reduce(engine, mine, hvd.Min, 1.0, 1.0)
        return mine

    for got in Group(3).run(body):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, [1, 0, np.nan])


def test_objects_that_cannot_be_pickled(engine):
    for call in (hvd.broadcast_object, hvd.allgather_object):
        with pytest.raises(Exception, match="pickle"):
            call(lambda: None)
        assert call([1])


def test_settings_from_variables():
    assert _settings.read({}) == Settings()
    both = {"DDLT_CACHE_CAPACITY": "5", "HOROVOD_CACHE_CAPACITY": "6"}
    assert _settings.read(both).cache_capacity == 5
    found = _settings.read({"HOROVOD_FUSION_THRESHOLD": "0", "DDLT_FUSION_THRESHOLD": ""})
    assert found.fusion_threshold == 0
    assert _settings.read({"DDLT_STALL_CHECK_TIME_SECONDS": "0.5"}).stall_check == 0.5
    for wrong in ("-1", "nan", "inf", "many", "1.5"):
        with pytest.raises(ValueError, match="DDLT_FUSION_THRESHOLD"):
            _settings.read({"DDLT_FUSION_THRESHOLD": wrong})


@pytest.mark.parametrize("name", ["HOROVOD_STALL_CHECK_DISABLE", "DDLT_STALL_CHECK_DISABLE"])
def test_stall_check_is_switched_off(name):
    """horovod/common/operations.cc of 0.28.1 reads HOROVOD_STALL_CHECK_DISABLE (common.h)."""
    limits = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "5", "DDLT_STALL_SHUTDOWN_TIME_SECONDS": "9"}
    off = _settings.read(dict(limits, **{name: "1"}))
    assert (off.stall_check, off.stall_limit) == (0.0, 0.0)
    on = _settings.read(dict(limits, **{name: "0"}))
    assert (on.stall_check, on.stall_limit) == (5.0, 9.0)


def test_mpi_threads_and_hierarchical_are_asked_for():
    """Neither is Horovod's default (operations.cc of 0.28.1)."""
    assert not Settings().mpi_threads_disable and not Settings().hierarchical
    assert _settings.read({"HOROVOD_MPI_THREADS_DISABLE": "1"}).mpi_threads_disable == 1
    assert _settings.read({"HOROVOD_HIERARCHICAL_ALLREDUCE": "1"}).hierarchical == 1


def test_settings_that_differ_are_told_on_all_ranks():
    def body(engine):
        settings = Settings(cache_capacity=5 + engine.rank)
        _settings.agree(engine, settings)

    for error in Group(3).run(body):
        assert isinstance(error, ValueError)
        assert "DDLT_CACHE_CAPACITY" in str(error) and "[5, 6, 7]" in str(error)
    assert Group(3).run(lambda engine: _settings.agree(engine, Settings())) == [Settings()] * 3


@pytest.mark.parametrize("soon", [{"stall_check": 2.5, "stall_limit": 0.0}, {"stall_limit": 2.5}])
def test_ranks_answer_as_soon_as_any_may_ask(soon):
    """Who may be asked after 2.5 seconds looks in time, whatever its own settings say."""

    def body(engine):
        never = Settings(stall_check=0.0, stall_limit=0.0)
        settings = _settings.agree(engine, Settings(**soon) if engine.rank == 1 else never)
        return settings.asked_after

    assert Group(3).run(body) == [2.5] * 3


def test_a_time_that_no_rank_lives_to_see_is_one():
    for_ever = Settings(stall_check=1e300, stall_limit=0.0)
    agreed = Group(2).run(lambda engine: _settings.agree(engine, for_ever))
    assert all(each.asked_after > 1e5 for each in agreed)


TORCHRUN = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "x", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    "environ, name",
    [
        ({"PMI_RANK": "0"}, "mpi"),
        ({"OMPI_COMM_WORLD_SIZE": "2", "RANK": "0"}, "mpi"),
        (TORCHRUN, "gloo"),
        (dict(TORCHRUN, PMI_RANK="0"), "mpi"),
        (dict(TORCHRUN, DDLT_ENGINE="single"), "single"),
        ({"RANK": "0"}, "single"),
        ({}, "single"),
    ],
)
def test_what_launched_the_job_means_the_engine(environ, name):
    assert _engines.choose(None, environ) == name


def test_wrong_engines():
    with pytest.raises(ValueError, match="DDLT_ENGINE"):
        _engines.choose(None, {"DDLT_ENGINE": "carrier pigeon"})
    with pytest.raises(ValueError, match="comm"):
        _engines.choose([0], {"DDLT_ENGINE": "gloo"})
    assert _engines.choose([0], {}) == "mpi"


def test_process_set_arguments(engine):
    for wrong, error in (([1], ValueError), ([0, 0], ValueError), (["x"], TypeError)):
        with pytest.raises(error):
            hvd.add_process_set(wrong)
    with pytest.raises(ValueError, match="already"):
        hvd.add_process_set(np.array([0]))
    with pytest.raises(ValueError, match="not there"):
        hvd.allreduce(1.0, process_set=hvd.ProcessSet([0]))


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
    environ = dict(os.environ, PYTHONPATH=path, DDLT_ENGINE="mpi")
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


def test_timeline(engine, tmp_path):
    path = tmp_path / "timeline.json"
    with pytest.raises(OSError, match="cannot be written"):
        hvd.start_timeline(str(tmp_path / "nowhere" / "timeline.json"))
    hvd.start_timeline(str(path), mark_cycles=True)
    hvd.allreduce(np.ones(2), name="gradient")
    with pytest.raises(TypeError):
        hvd.allreduce(np.ones(2, dtype="i4"), name="refused")
    hvd.stop_timeline()
    hvd.allreduce(np.ones(2), name="later")
    events = json.loads(path.read_text())
    rows = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    told = [(rows[each["tid"]], each["ph"], each["name"]) for each in events if each["ph"] in "BE"]
    assert "CYCLE_START" in [each["name"] for each in events if each["ph"] == "i"]
    phases = ["NEGOTIATE_ALLREDUCE", f"{engine.name.upper()}_ALLREDUCE"]
    assert [(ph, name) for row, ph, name in told if row == "allreduce.gradient"] == [
        ("B", phases[0]),
        ("E", phases[0]),
        ("B", phases[1]),
        ("E", phases[1]),
    ]
    assert [ph for row, ph, _ in told if row == "allreduce.refused"] == ["B", "E"]
    assert "later" not in path.read_text()


@pytest.mark.skipif(sys.version_info < (3, 7), reason="modules have no __getattr__ before 3.7")
def test_what_is_not_there_yet_says_so():
    with pytest.raises(AttributeError, match=r"numpy has no grouped_allgather: call"):
        _ = hvd.grouped_allgather
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = hvd.no_such_name
    assert not hasattr(hvd, "grouped_allgather")


def test_what_is_built(engine):
    for asked in (hvd.mpi_built, hvd.gloo_built, hvd.cuda_built, hvd.rocm_built):
        assert isinstance(asked(), bool)
    assert hvd.is_homogeneous() and not hvd.ddl_built() and not hvd.ccl_built()
    assert not hvd.mpi_enabled() and not hvd.gloo_enabled()

"""Modules, functions and classes of the API are pickled and copied; ``run`` depends on it."""

import copy
import importlib
import importlib.util
import os
import pickle
import pkgutil
import subprocess
import sys
import types

import pytest

import distributed_dl_training
from distributed_dl_training import _missing
from distributed_dl_training.launch import _function

import launcher
from launching import HOME, job_environ

# Those of frameworks that are refused have no names, others not without the framework.
ABSENT = {"jax", "mxnet"}
if importlib.util.find_spec("torch") is None:
    ABSENT.add("torch")
if importlib.util.find_spec("tensorflow") is None:
    ABSENT.update(("tensorflow", "keras"))
FOUND = [each.name for each in pkgutil.iter_modules(distributed_dl_training.__path__)]
PUBLIC = [name for name in FOUND if name[0] != "_" and name not in ABSENT]
MODULES = [f"distributed_dl_training.{name}" for name in PUBLIC]
ALIAS = os.path.join(HOME, "distributed_dl_training", "_alias")
needs_mpi = pytest.mark.skipif(launcher.why_not() is not None, reason=str(launcher.why_not()))


@pytest.fixture
def cloudpickle():
    return pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")


def _through_pickle(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copies", [_through_pickle, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("module", MODULES)
def test_public_names(module, copies):
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [n for n in dir(found) if callable(vars(found)[n])]
    values = {name: getattr(found, name) for name in names}
    ours = {
        name: value for name, value in values.items() if _home(value) == "distributed_dl_training"
    }
    assert ours
    for name, value in ours.items():
        assert copies(value) is value, name


def _home(value):
    return (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]


@pytest.mark.parametrize("module", [*MODULES, "distributed_dl_training"])
def test_modules_by_cloudpickle(cloudpickle, module):
    found = importlib.import_module(module)
    assert pickle.loads(cloudpickle.dumps(found)) is found
    assert pickle.loads(cloudpickle.dumps(lambda: found))() is found


def test_module_class_of_python_36(monkeypatch):
    """Where a module's class has to be changed, the module is pickled and copied by its name."""
    found = _missing.RefusingModule("refusing")
    monkeypatch.setitem(sys.modules, "refusing", found)
    _missing.refuse("refusing", {"absent": "use present"})
    assert [copies(found) for copies in (_through_pickle, copy.copy, copy.deepcopy)] == [found] * 3
    with pytest.raises(AttributeError, match="use present"):
        _ = found.absent
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = found.other


@pytest.mark.skipif(sys.version_info < (3, 7), reason="PEP 562 is of Python 3.7")
def test_modules_keep_their_class():
    for name in MODULES:
        assert type(importlib.import_module(name)) is types.ModuleType


PROGRAM = """
import sys
import distributed_dl_training.numpy as hvd
import horovod

def mean(base, scale=1):
    hvd.init()
    return float(hvd.allreduce([base + hvd.rank()])[0]) * scale

print(horovod.run(mean, args=(1.0,), kwargs={"scale": 2}, num_proc=2, use_mpi=True,
                  hosts="localhost:2", start_timeout=60, verbose=0, disable_cache=True,
                  output_filename=sys.argv[1], mpi_args="", network_interfaces=None))
print(horovod.run(lambda: hvd.Sum, num_proc=1, use_mpi=True)[0] is hvd.Sum)
"""


def _run_program(arguments, **options):
    environ = job_environ()
    environ["PYTHONPATH"] += os.pathsep + ALIAS
    return subprocess.run(
        [sys.executable, *arguments],
        env=environ,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        timeout=120,
        **options,
    ).stdout


@needs_mpi
@pytest.mark.parametrize("source", ["script", "notebook"])
def test_run_with_functions_of_main(cloudpickle, tmp_path, source):
    output = str(tmp_path / "output")
    if source == "script":  # from another folder than the working one
        path = tmp_path / "scripts" / "program.py"
        path.parent.mkdir()
        path.write_text(PROGRAM)
        out = _run_program([str(path), output])
    else:  # __main__ has no file
        out = _run_program(["-", output], input=PROGRAM)
    assert out.splitlines() == ["[3.0, 3.0]", "True"]
    assert sorted(os.listdir(output)) == ["rank.0", "rank.1"]


@needs_mpi
def test_run_in_another_thread(tmp_path):
    """Ray and Dask call functions in threads of theirs; helper modules lie beside the script."""
    (tmp_path / "helper.py").write_text("def name(): return __name__\n")
    (tmp_path / "program.py").write_text(
        "import threading, horovod, helper\n"
        "call = lambda: print(horovod.run(helper.name, num_proc=2, use_mpi=True))\n"
        "thread = threading.Thread(target=call)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    assert _run_program([str(tmp_path / "program.py")]).splitlines() == ["['helper', 'helper']"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"min_num_proc": 1}, "elastic jobs"),
        ({"max_np": 3}, "elastic jobs"),
        ({"hosts": "a:1", "hostfile": "b"}, "not both"),
        ({"use_gloo": True, "use_mpi": True}, "not both"),
    ],
)
def test_arguments_of_run_that_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        _function.run(len, **arguments)


def test_run_without_cloudpickle(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    function = types.FunctionType((lambda: 1).__code__, {"__name__": "__main__"}, "f")
    function.__module__ = "__main__"
    with pytest.raises(TypeError, match="cloudpickle"), pytest.warns(DeprecationWarning):
        _function.run(function, np=1, folder=str(tmp_path))
    assert os.listdir(str(tmp_path)) == []

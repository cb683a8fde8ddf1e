"""The aliases of Horovod and DDL: on, off, and never before a real one."""

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from launching import HOME, WITHOUT_TORCH, job_environ


class Environment(NamedTuple):
    """A virtual environment that has this copy of the runtime, and the base's packages."""

    python: str
    packages: str
    bin: str

    def run(self, *arguments: str, input: str = "", **environ: str) -> Any:
        clean = job_environ()
        del clean["PYTHONPATH"]
        clean.update(environ)
        return subprocess.run(
            [self.python, *arguments],
            input=input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean,
            cwd=os.path.dirname(self.bin),
            universal_newlines=True,
        )

    def alias(self, verb: str, name: str = "horovod") -> Any:
        return self.run("-m", "distributed_dl_training.alias", verb, name)

    def files(self) -> Any:
        return sorted(os.listdir(self.packages)), sorted(os.listdir(self.bin))


def make_environment(folder: str) -> Environment:
    subprocess.check_call([sys.executable, "-m", "venv", "--without-pip", folder])
    python = os.path.join(folder, "bin", "python")
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = subprocess.check_output([python, "-c", code], universal_newlines=True).strip()
    # What is installed beside pytest (numpy, maybe torch and mpi4py) is there too, but last.
    here = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    with open(os.path.join(packages, "aaa_base.pth"), "w") as stream:
        stream.write("\n".join(filter(None, [HOME, *here, WITHOUT_TORCH])) + "\n")
    return Environment(python, packages, os.path.join(folder, "bin"))


@pytest.fixture
def environment(tmp_path):
    return make_environment(str(tmp_path / "environment"))


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as stream:
        stream.write(text)


def test_off_until_enabled_and_off_again(environment):
    before = environment.files()
    assert environment.run("-c", "import horovod").returncode == 1
    done = environment.alias("status")
    assert "alias: disabled" in done.stdout and "takes nothing" in done.stdout

    done = environment.alias("enable")
    assert done.returncode == 0, done.stdout
    assert environment.files() != before
    done = environment.alias("status")
    assert "alias: enabled" in done.stdout and "takes this runtime" in done.stdout
    code = "import horovod; assert horovod.__ddlt_alias__; print(horovod.__version__)"
    assert environment.run("-c", code).stdout.startswith("0.28.1+ddlt.")
    assert environment.alias("enable").returncode == 0  # once more changes nothing

    done = environment.alias("disable")
    assert done.returncode == 0 and done.stdout.count("removed: ") == 2
    assert environment.files() == before
    assert environment.alias("disable").stdout == "nothing to do\n"
    assert environment.run("-c", "import horovod").returncode == 1


def test_version_is_one_that_programs_compare():
    packaging = pytest.importorskip("packaging.version", reason="packaging is not installed")
    from distributed_dl_training import alias

    assert packaging.Version(alias.version()) >= packaging.Version("0.28.1")
    assert packaging.Version(alias.version()) < packaging.Version("0.29")


def test_horovodrun(environment):
    assert environment.alias("enable").returncode == 0
    script = os.path.join(environment.bin, "horovodrun")
    command = [script, "--gloo", "-np", "2", "-H", "localhost:2", environment.python, "-c"]
    clean = job_environ()
    del clean["PYTHONPATH"]
    code = "import os, horovod; print(os.environ['RANK'], horovod.__ddlt_alias__)"
    out = subprocess.check_output([*command, code], env=clean, universal_newlines=True)
    assert sorted(out.splitlines()) == ["[0]<stdout>:0 True", "[1]<stdout>:1 True"]
    done = subprocess.run([script], env=clean, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 2 and done.stderr.startswith("horovodrun: error: no program")


def test_environment_with_a_space_in_its_name(tmp_path):
    environment = make_environment(str(tmp_path / ("a b" + "c" * 120)))
    assert environment.alias("enable").returncode == 0
    script = os.path.join(environment.bin, "horovodrun")
    assert subprocess.call([script, "--version"], env=job_environ()) == 0


@pytest.mark.parametrize(
    "path",
    [
        "horovod/__init__.py",
        "horovod-0.28.1.dist-info/METADATA",
        "horovod-0.18.2-py3.6.egg-info/PKG-INFO",
        "horovod.egg-link",
        "ddl/__init__.py",
        "ddl-1.5.1.dist-info/METADATA",
    ],
)
def test_a_real_one_is_never_shadowed(environment, path):
    write(os.path.join(environment.packages, path), "")
    before = environment.files()
    name = path[:3] if path.startswith("ddl") else "horovod"
    done = environment.alias("enable", name)
    assert done.returncode == 1 and environment.files() == before
    place = os.path.join(environment.packages, path.split("/")[0])
    assert f"a real {name} is installed: {place}" in done.stdout
    assert "Traceback" not in done.stdout
    assert f"import {name} takes the real one: {place}" in environment.alias("status", name).stdout


def test_a_folder_that_is_no_package_is_no_horovod(environment):
    write(os.path.join(os.path.dirname(environment.bin), "horovod", "notes.txt"), "")
    assert environment.alias("enable").returncode == 0
    assert environment.run("-c", "import horovod; print(horovod.__file__)").stdout.count("_alias")


@pytest.mark.parametrize("name", ["horovod", "ddl"])
def test_a_real_one_that_comes_later_is_named(environment, tmp_path, name):
    """It joins sys.path behind the alias, as the base's packages may: the import refuses."""
    assert environment.alias("enable", name).returncode == 0
    write(str(tmp_path / "other" / name / "__init__.py"), "")
    write(os.path.join(environment.packages, "zzz_late.pth"), str(tmp_path / "other") + "\n")
    done = environment.run("-c", f"import {name}")
    assert done.returncode == 1
    assert f"ImportError: a real {name} is installed" in done.stdout
    assert str(tmp_path / "other" / name) in done.stdout
    assert "takes the real one" in environment.alias("status", name).stdout


@pytest.mark.parametrize(("name", "without"), [("horovod", "ddl"), ("ddl", "horovod")])
def test_an_alias_enables_no_other(environment, name, without):
    assert environment.alias("enable", name).returncode == 0
    assert os.access(os.path.join(environment.bin, f"{name}run"), os.X_OK)
    assert f"import {name} takes this runtime" in environment.alias("status", name).stdout
    assert f"import {without} takes nothing" in environment.alias("status", without).stdout
    done = environment.run("-c", f"import {without}")
    assert f"No module named '{without}'" in done.stdout


def test_files_of_others_stay(environment):
    script = os.path.join(environment.bin, "horovodrun")
    write(script, "#!/bin/sh\n")
    done = environment.alias("enable")
    assert done.returncode == 1 and f"{script} is there already" in done.stdout
    assert environment.alias("disable").stdout == "nothing to do\n"
    with open(script) as stream:
        assert stream.read() == "#!/bin/sh\n"


def test_no_environment_of_its_own():
    """The alias is not for the Python of everybody."""
    base = os.path.join(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info))
    if not os.access(base, os.X_OK) or os.path.isdir(os.path.join(sys.base_prefix, "conda-meta")):
        pytest.skip(f"no plain base Python at {base}")
    done = subprocess.run(
        [base, "-m", "distributed_dl_training.alias", "enable", "horovod"],
        env=job_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    assert done.returncode == 1
    assert "no virtual or conda environment" in done.stdout or "a real horovod" in done.stdout


def test_packages_that_cannot_be_written(environment, tmp_path):
    """A file where the folder of scripts should be: root is not held up by permissions."""
    code = (
        "import sys\nfrom distributed_dl_training import alias\n"
        "place = alias.Place(alias.place('horovod').pth, sys.argv[1])\n"
        "alias.place = lambda name: place\n"
        "sys.exit(alias.main(['enable', 'horovod']))\n"
    )
    (tmp_path / "file").write_text("")
    before = environment.files()
    done = environment.run("-c", code, str(tmp_path / "file" / "horovodrun"))
    assert done.returncode == 1
    assert "error: cannot write " in done.stdout and "Traceback" not in done.stdout
    assert environment.files() == before


def refused_names():
    """Return the reasons that docs/api.md gives, by name."""
    with open(os.path.join(HOME, "docs", "api.md"), encoding="utf-8") as stream:
        section = stream.read().split("## Names of Horovod that are refused")[1]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    return {name: reason for names, reason in rows for name in names.replace("`", "").split(", ")}


def test_each_refused_name_gives_its_reason(environment):
    """Those of a framework only where that is installed."""
    assert environment.alias("enable").returncode == 0
    reasons = refused_names()
    for framework in ("torch", "tensorflow", "keras"):
        if importlib.util.find_spec(framework) is None:
            reasons = {n: why for n, why in reasons.items() if f".{framework}." not in n}
    code = (
        "import importlib, json, sys\n"
        "errors = {}\n"
        "for name in sys.stdin.read().split():\n"
        "    module, _, last = name.rpartition('.')\n"
        "    try:\n"
        "        try:\n"
        "            importlib.import_module(name)\n"
        "        except ModuleNotFoundError:\n"
        "            getattr(importlib.import_module(module), last)\n"
        "    except (AttributeError, ImportError) as error:\n"
        "        errors[name] = str(error)\n"
        "    if name in ('horovod.spark', 'horovod.torch.elastic'):\n"
        "        try:\n"
        "            importlib.import_module(name + '.common')\n"
        "        except ImportError as error:\n"
        "            assert str(error) == errors[name]\n"
        "print(json.dumps(errors))\n"
    )
    done = environment.run("-c", code, input=" ".join(reasons))
    assert done.returncode == 0, done.stdout
    errors = json.loads(done.stdout)
    assert len(reasons) > 20 and set(errors) == set(reasons)
    for name, reason in reasons.items():
        module, _, last = name.rpartition(".")
        assert errors[name] == f"{module} has no {last}: {reason} (docs/api.md)"


def test_documented_refusals_are_those_of_the_code():
    from distributed_dl_training import _missing

    assert refused_names() == {
        f"{module}.{name}": reason
        for module in _missing._REFUSED
        for name, reason in _missing.refused(module).items()
    }


def test_torch_has_the_names_of_ours(environment):
    found = subprocess.run(
        [sys.executable, "-c", "import distributed_dl_training.torch"],
        env=job_environ(),
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    if found.returncode:
        pytest.skip("distributed_dl_training.torch: " + found.stderr.strip().splitlines()[-1])
    assert environment.alias("enable").returncode == 0
    code = (
        "import horovod.torch as hvd, distributed_dl_training.torch as ours\n"
        "from horovod.torch.mpi_ops import allreduce\n"
        "from horovod.torch.compression import Compression\n"
        "assert hvd.allreduce is ours.allreduce is allreduce\n"
        "from distributed_dl_training.torch._horovod import NAMES\n"
        "names = [n for n in dir(ours) if n[0] != '_' and n not in NAMES]\n"
        "assert len(names) > 60 and all(getattr(hvd, n) is getattr(ours, n) for n in names)\n"
        "assert all(getattr(hvd, n) is NAMES[n] for n in NAMES)\n"
        # What programs written for Horovod 0.28.1 import, horovod/torch/__init__.py:33-56.
        "from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt\n"
        "from horovod.common.process_sets import ProcessSet, global_process_set\n"
        "from horovod.common.basics import HorovodBasics\n"
        "from horovod.runner.launch import run_commandline\n"
        "from horovod.torch.sync_batch_norm import SyncBatchNorm\n"
        "assert hvd.HorovodInternalError is HorovodInternalError\n"
        "assert issubclass(hvd.MismatchError, HorovodInternalError)\n"
        "assert hvd.ProcessSet([2, 0]).ranks == [0, 2] and hvd.ProcessSet([1]).size() is None\n"
        "hvd.check_extension('horovod.torch', 'HOROVOD_WITH_PYTORCH', '', 'mpi_lib_v2')\n"
        "assert hvd.SyncBatchNorm is SyncBatchNorm and hvd.Adasum.value == 'Adasum'\n"
        "assert HorovodBasics('x').is_initialized() is False\n"
        "for missing in ('elastic', 'nothing'):\n"
        "    try:\n"
        "        getattr(hvd, missing)\n"
        "    except AttributeError as error:\n"
        "        print(error)\n"
    )
    done = environment.run("-c", code)
    assert done.returncode == 0, done.stdout
    assert "no elastic: a lost rank ends the job" in done.stdout
    assert "has no attribute 'nothing'" in done.stdout


def test_what_is_built(environment):
    assert environment.alias("enable").returncode == 0
    code = (
        "from horovod.common.util import *\n"
        "assert isinstance(mpi_built(), bool) and isinstance(gloo_built(), bool)\n"
        "assert isinstance(nccl_built(True), int) and not ddl_built() and not ccl_built()\n"
        "assert [num_rank_is_power_2(n) for n in range(5)] == [False, True, True, False, True]\n"
        "assert split_list([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]]\n"
        "assert split_list([1], 3) == [[1], [], []]\n"
        "assert not extension_available('mxnet')\n"
    )
    done = environment.run("-c", code)
    assert done.returncode == 0, done.stdout


def test_run_calls_a_function_on_every_rank(environment):
    assert environment.alias("enable").returncode == 0
    code = (
        "import operator, os, horovod\n"
        "print(horovod.run(os.getenv, args=('RANK',), np=3, use_gloo=True))\n"
        "from horovod.runner import run\n"
        "try:\n"
        "    run(operator.truediv, (1, 0), np=1, use_gloo=True)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    done = environment.run("-c", code)
    assert "['0', '1', '2']" in done.stdout, done.stdout
    assert "ZeroDivisionError" in done.stdout
    assert "the ranks ended with exit code 1" in done.stdout


def test_private_names_that_horovods_tests_import(environment):
    assert environment.alias("enable").returncode == 0
    code = (
        "import os, threading\n"
        "from horovod.common.util import _cache, env\n"
        "from horovod.runner import _HorovodArgs\n"
        "from horovod.runner.util.threads import execute_function_multithreaded as execute\n"
        "from horovod.runner.util.threads import in_thread, on_event\n"
        "from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader\n"
        "numbers = iter((1, 2))\n"
        "once = _cache(lambda: next(numbers))\n"
        "assert (once(), once()) == (1, 1)\n"
        "with env(DDLT_A='1', DDLT_B=None):\n"
        "    assert os.environ['DDLT_A'] == '1' and 'DDLT_B' not in os.environ\n"
        "assert 'DDLT_A' not in os.environ\n"
        "assert _HorovodArgs().num_proc == 1 and _HorovodArgs().use_gloo is None\n"
        "assert execute(pow, [(2, 3), (3, 2)]) == {0: 8, 1: 9}\n"
        "seen, event = [], threading.Event()\n"
        "thread = on_event(event, seen.append, (1,), stop=threading.Event())\n"
        "in_thread(event.set).join()\n"
        "thread.join()\n"
        "assert seen == [1]\n"
        "class Loader(BaseDataLoader):\n"
        "    def _iterate(self):\n"
        "        yield from range(5)\n"
        "class Ahead(AsyncDataLoaderMixin, Loader):\n"
        "    def _process_batch(self, batch):\n"
        "        return 2 * batch\n"
        "for size in (0, 2):\n"
        "    assert [batch for batch in Ahead(size)] == [0, 2, 4, 6, 8]\n"
    )
    done = environment.run("-c", code)
    assert done.returncode == 0, done.stdout


def test_names_of_torch_that_programs_use(environment):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    assert environment.alias("enable").returncode == 0
    code = (
        "import torch, horovod.torch as hvd, distributed_dl_training.torch as ours\n"
        "from horovod.torch.compression import Compressor, NoneCompressor\n"
        "assert issubclass(NoneCompressor, Compressor) and Compressor.compress(1) == (1, None)\n"
        "assert hvd.mpi_ops.allreduce is hvd.allreduce\n"
        "hvd.init()\n"
        "for op, value in enumerate([3.0, 3.0, None, 3.0, 3.0, 3.0]):\n"
        "    if value is not None:\n"
        "        assert float(hvd.allreduce(torch.tensor([3.0]), op=op)) == value\n"
        "hvd.start_timeline(file_path='timeline.json', mark_cycles=True)\n"
        "hvd.stop_timeline()\n"
        "hvd.shutdown()\n"
        "ours.init()\n"
        "try:\n"
        "    ours.allreduce(torch.tensor([3.0]), op=1)\n"
        "except TypeError:\n"
        "    print('strict')\n"
    )
    done = environment.run("-c", code, DDLT_ENGINE="single")
    assert done.returncode == 0 and done.stdout == "strict\n", done.stdout

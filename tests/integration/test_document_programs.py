"""The programs of the seed documents on a real Horovod for TensorFlow.

Of each program only the lines differ that the document leaves out or that no Python can read; they
are held here by their numbers. It takes many minutes, so it runs when asked for:
``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from integration_tools import Done, Envbuild
from module_tools import AS_ROOT, in_lmod

from envbuilder import data
from tests.documents.document_rows import rows
from tests.documents.seed_lines import NAMED, seeds
from tests.documents.seed_programs import program

pytestmark = [pytest.mark.long]

SECONDS = 3600.0
RECIPE = "horovod-tf-cpu"
# Names a root in which that recipe was created before.
ROOT = "ENVBUILD_HOROVOD_TF_ROOT"
HVD = "import horovod.tensorflow as hvd"
# Document 004: the import has hyphens; model, data and end are left out; the API is that of
# TensorFlow 1; checkpoints go to a folder of the test.
HOOKS = {
    120: "import tensorflow.compat.v1 as tf; tf.disable_eager_execution()",
    121: HVD,
    132: "weight = tf.get_variable('w', [4]); "
    "loss = tf.reduce_sum((weight - tf.random.uniform([4], seed=hvd.rank())) ** 2)",
    140: "hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=20)]",
    143: "train_op = opt.minimize(loss, global_step=tf.train.get_or_create_global_step())",
    146: "checkpoint_dir = 'train_logs' if hvd.rank() == 0 else None",
    156: "    last = mon_sess.run([train_op, weight, tf.train.get_global_step()])",
}
# What each rank says of itself at the end: weights are equal only if the gradients were averaged.
REPORT = "print('rank', hvd.rank(), 'of', hvd.size(), [round(float(w), 4) for w in last[1]])\n"
# The program of document 004 with mpi4py is a beginning: where it is all, a rank that ends shuts
# Horovod, and with it MPI, down on those that have not read the size yet.
END = "print(hvd.size()); import tensorflow; hvd.allreduce(tensorflow.constant(1.0))"


@pytest.fixture(scope="module")
def root(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with a real Horovod for TensorFlow, published."""
    if os.environ.get(ROOT):
        return Path(os.environ[ROOT])
    if not all(shutil.which(each) for each in ("g++", "make", "mpicxx")):
        pytest.skip("g++, make and mpicxx build Horovod; not all of them are on PATH")
    folder, recipes = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("recipes")
    # Small messages, and time for a busy machine: the programs are the question, not the speed.
    recipe = yaml.safe_load((data.RECIPES / f"{RECIPE}.yaml").read_text(encoding="utf-8"))
    recipe["smoke"] = {"ranks": 2, "max-bytes": 65536, "timeout": 600}
    (recipes / f"{RECIPE}.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    words = ("create", RECIPE, "--recipes", recipes, "--site", "local", "--root", folder)
    done = envbuild(*words, timeout=SECONDS)
    assert done.code == 0, done.text
    return folder


@pytest.fixture(scope="module")
def documents() -> Path:
    folder = seeds()
    if folder is None:
        pytest.skip(f"needs the seed documents beside the checkout, or {NAMED}")
    return folder


def in_environment(root: Path, lines: list[str], folder: Path) -> Done:
    """Run lines in a new shell with the environment's module."""
    load = [f"module use '{root}/modulefiles'", f"module load {RECIPE}"]
    return in_lmod("bash", [*load, *lines], folder, {**AS_ROOT, "TF_CPP_MIN_LOG_LEVEL": "3"})


def launch_line(envbuild: Envbuild, root: Path, *options: str) -> str:
    words = ("launch", RECIPE, "--root", root, *options, "--", "python", "train.py")
    done = envbuild(*words)
    assert done.code == 0, done.text
    return done.out.strip()


def test_the_lines_for_python(root: Path, tmp_path: Path) -> None:
    lines = {row.theirs for row in rows() if row.theirs.startswith("python -c")}
    assert len(lines) == 2
    done = in_environment(root, [f"{line} && echo well" for line in sorted(lines)], tmp_path)
    assert (done.code, done.out.count("well")) == (0, 2), done.text
    assert re.search(r"^2\.12\.", done.out, re.MULTILINE), done.text


@pytest.mark.parametrize("launcher", ["horovodrun", ""])
def test_the_hooks_of_document_004(
    envbuild: Envbuild, root: Path, documents: Path, tmp_path: Path, launcher: str
) -> None:
    """By the line of document 001 and 004, and by the one that launch takes by itself."""
    assert len(HOOKS) <= 10
    text = program(documents, "004", 120, 156, HOOKS) + REPORT
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    options = ("--launcher", launcher, "-H", "localhost:2") if launcher else ("--ranks", "2")
    line = launch_line(envbuild, root, *options)
    assert ("horovodrun" in shlex.split(line)) == bool(launcher)
    done = in_environment(root, [line], tmp_path)
    assert done.code == 0, done.text
    said = sorted(re.findall(r"rank (\d) of (\d) (\[.*?\])", done.out))
    assert [(rank, size) for rank, size, _ in said] == [("0", "2"), ("1", "2")], done.text
    assert said[0][2] == said[1][2]
    # Rank 0 alone has saved.
    assert (tmp_path / "train_logs" / "checkpoint").is_file()


@pytest.mark.parametrize(
    ("first", "last", "edits", "report"),
    [
        (202, 211, {202: HVD}, END),
        (218, 228, {219: HVD}, ""),
    ],
    ids=["world", "split"],
)
def test_mpi4py_in_one_program_of_document_004(
    envbuild: Envbuild,
    root: Path,
    documents: Path,
    tmp_path: Path,
    first: int,
    last: int,
    edits: Mapping[int, str],
    report: str,
) -> None:
    text = program(documents, "004", first, last, edits) + report
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    line = launch_line(envbuild, root, "-H", "localhost:4")
    done = in_environment(root, [line], tmp_path)
    assert done.code == 0, done.text
    if report:
        assert re.findall(r"^4$", done.out, re.MULTILINE) == ["4"] * 4
        return
    pairs = sorted(
        re.findall(r"COMM_WORLD rank: (\d), Distributed-DL-training rank: (\d)", done.out)
    )
    assert pairs == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]

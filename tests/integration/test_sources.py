"""What is built from its sources, on a small extension in C: patched, cached, refused.

The extension is a component of a folder of the test's own, with sources in a folder that stands
for an index; numpy, mpi4py and the MPI come from the real one.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
from integration_tools import Done, Envbuild, run, unpack_bundle, without_network

pytestmark = pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("patch")),
    reason="gcc and patch compile and patch the extension; not both are on PATH",
)

SETUP = """\
from setuptools import Extension, setup

setup(name="answer-ext", version="1.0", ext_modules=[Extension("answer_ext", ["answer_ext.c"])])
"""

CODE = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *answer(PyObject *self, PyObject *none) {
    return PyLong_FromLong(ANSWER);
}

static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "answer_ext", NULL, -1, methods};

PyMODINIT_FUNC PyInit_answer_ext(void) { return PyModule_Create(&module); }
"""

# Without it the extension does not compile: ANSWER is nowhere defined.
PATCH = """\
Applies-to: answer-ext {range}

Says what the answer is.

--- a/answer_ext.c
+++ b/answer_ext.c
@@ -1,4 +1,5 @@
 #define PY_SSIZE_T_CLEAN
+#define ANSWER {answer}
 #include <Python.h>
{space}
 {third}
"""
THIRD = "static PyObject *answer(PyObject *self, PyObject *none) {"

COMPONENTS = """\
schema: 1
components:
  answer-ext:
    summary: A small extension
    pip: answer-ext
    import: answer_ext
    from-source: true
    build-needs: [{components: {setuptools: "*", wheel: "*", pyelftools: "*"}}]
"""

VERSIONS = """\
schema: 1
recorded: "2026-01-01"
source: the test
releases:
  answer-ext: [{version: "1.0", wheels: false}]
"""

ADVISORIES = """\
schema: 1
advisories:
  - id: ANSWER-001
    severity: error
    component: answer-ext
    affected: "*"
    summary: does not say what the answer is
    fix: the patch say-answer
    remedies: [{id: say-answer, kind: patch, name: say-answer, source: the test}]
    evidence: run
    sources: [the test]
"""

RECIPE = """\
schema: 1
name: answers
summary: With an extension that is compiled
arch: [x86_64, aarch64]
stack: {{python: ">=3.9", numpy: "*", mpi4py: ">=4", mpich: ">=4.2", answer-ext: "*"}}
find-links: ["file://{links}"]
smoke: {{ranks: 2, max-bytes: 65536}}
"""


class Extension:
    """The folder of recipes that knows the extension, and what runs the command with it."""

    def __init__(self, folder: Path, envbuild: Envbuild, cache: Path) -> None:
        self.folder = folder
        self.envbuild = envbuild
        self.cache = cache
        for below in ("knowledge", "patches", "links"):
            (folder / below).mkdir(parents=True)
        (folder / "knowledge" / "components.yaml").write_text(COMPONENTS)
        (folder / "knowledge" / "versions.yaml").write_text(VERSIONS)
        (folder / "knowledge" / "advisories.yaml").write_text(ADVISORIES)
        (folder / "answers.yaml").write_text(RECIPE.format(links=folder / "links"))
        self.patch()
        self.sources()

    def patch(self, range_: str = "==1.0", answer: str = "42", third: str = THIRD) -> None:
        text = PATCH.format(range=range_, answer=answer, third=third, space=" ")
        (self.folder / "patches" / "say-answer.patch").write_text(text)

    def sources(self) -> None:
        with tarfile.open(self.folder / "links" / "answer-ext-1.0.tar.gz", "w:gz") as archive:
            for name, text in (("setup.py", SETUP), ("answer_ext.c", CODE)):
                member = tarfile.TarInfo(f"answer-ext-1.0/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))

    def create(self, root: Path, *more: str) -> Done:
        return self.envbuild(
            *("create", "answers", "--recipes", self.folder, "--root", root, *more),
            env={"ENVBUILD_WHEEL_CACHE": str(self.cache)},
        )


@pytest.fixture
def extension(tmp_path: Path, envbuild: Envbuild) -> Extension:
    return Extension(tmp_path / "recipes", envbuild, tmp_path / "cache")


def build_log(root: Path) -> str:
    """Return the log of the last build."""
    logs = root.glob("answers/*.build/logs/*-build-answer-ext.log")
    return max(logs, key=lambda path: path.stat().st_mtime_ns).read_text()


def everything_said(done: Done, root: Path) -> str:
    """Return what a bundle's installation said, and what its steps did where that is kept."""
    logs = root.glob("answers/*.build/logs/*.log")
    return done.text + "".join(path.read_text() for path in logs)


def nothing_is_published(root: Path) -> bool:
    return not list(root.glob("modulefiles/answers/*.lua"))


@pytest.mark.long
def test_a_compile_error_then_built_and_built_again_from_the_cache(
    extension: Extension, tmp_path: Path
) -> None:
    extension.patch(answer="forty_two")
    done = extension.create(tmp_path / "one")
    assert done.code == 5, done.text
    assert "step build-answer-ext (build answer-ext 1.0) ended with exit code" in done.err
    assert "forty_two" in build_log(tmp_path / "one")
    assert nothing_is_published(tmp_path / "one")

    extension.patch()
    done = extension.create(tmp_path / "one")
    assert done.code == 0, done.text
    log = build_log(tmp_path / "one")
    assert "patching file answer_ext.c" in log
    assert "building answer-ext with" in log
    value = extension.envbuild("info", "answers", "--root", tmp_path / "one", "--json")
    info = json.loads(value.out)
    python = Path(info["prefix"]) / "bin" / "python"
    asked = run([python, "-c", "import answer_ext; print(answer_ext.answer())"])
    assert asked.out.strip() == "42"
    # What its library is and links is part of the evidence, and shown.
    told = extension.envbuild("info", "answers", "--root", tmp_path / "one")
    assert "built libraries\n  answer-ext\n    ok: linkage: answer_ext" in told.out
    facts = info["evidence"][-1]["build-facts"]
    assert {(each["component"], each["passed"]) for each in facts} == {("answer-ext", True)}

    # Another root: nothing is compiled, and what is found there is the same wheel.
    again = extension.create(tmp_path / "two")
    assert again.code == 0, again.text
    assert "from the cache: " in build_log(tmp_path / "two")


@pytest.mark.long
def test_a_patch_that_does_not_fit(extension: Extension, tmp_path: Path) -> None:
    extension.patch(third="static PyObject *reply(void) {")
    done = extension.create(tmp_path / "root")
    assert done.code == 5, done.text
    assert "say-answer.patch does not match " in done.err
    assert "answer_ext.c" in done.err
    assert "Hunk #1 FAILED at 1" in done.err
    assert nothing_is_published(tmp_path / "root")


def test_a_patch_for_another_release(extension: Extension, tmp_path: Path) -> None:
    extension.patch(range_=">=2")
    done = extension.create(tmp_path / "root")
    assert done.code == 2, done.text
    assert "the patch is for answer-ext >=2, not for answer-ext 1.0" in done.err
    assert nothing_is_published(tmp_path / "root")


@pytest.mark.long
def test_a_bundle_is_built_without_network(extension: Extension, tmp_path: Path) -> None:
    done = extension.create(tmp_path / "unused", "--bundle", "--output", str(tmp_path), "--json")
    assert done.code == 0, done.text
    told = json.loads(done.out)
    assert told["tier"] == "rendered"
    shutil.rmtree(extension.folder)
    unpack_bundle(told["archive"], tmp_path / "there")
    [folder] = (tmp_path / "there").iterdir()
    root = tmp_path / "site"
    # It is published also where the wheel that it builds cannot be kept.
    no_folder = tmp_path / "file"
    no_folder.touch()
    built = run(
        [*without_network(), "bash", folder / "install.sh", root],
        env={"ENVBUILD_WHEEL_CACHE": str(no_folder)},
    )
    assert built.code == 0, built.text
    assert f"the wheel in {no_folder}: " in everything_said(built, root)
    assert (root / "modulefiles" / "answers" / "1.lua").is_file()
    assert "/root-of-the-bundle" not in (root / "modulefiles" / "answers" / "1.lua").read_text()
    again = run(["bash", folder / "install.sh", root])
    assert again.code == 0, again.text
    assert "exactly this" in again.err

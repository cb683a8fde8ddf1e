"""Snapshots of real module trees under real Lmod."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from envbuilder.errors import EnvbuildError, MissingToolError, UsageError
from envbuilder.machine.detection import DetectionResult
from envbuilder.machine.modules.trees import changed_trees, tree_sha256
from envbuilder.model.site import Site, StatedModule

from .site_tools import (
    PRELOADS,
    TODAY,
    base_tree,
    environ,
    lmod_init,
    loaded_after,
    make_site,
    modulefiles,
    take,
    take_tree,
    taken_tree,
    tree_site,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=sorted(PRELOADS))
def live(request: pytest.FixtureRequest) -> tuple[Site, DetectionResult]:
    return tree_site(request.param), taken_tree(request.param)


def named(taken: DetectionResult) -> dict[str, StatedModule]:
    return {module.name: module for module in taken.snapshot.modules}


def brought(modules: dict[str, StatedModule], names: Iterable[str]) -> set[str]:
    """Return the names and all that they load, directly or not."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += modules[name].loads
    return found


def each_loaded(site: Site, sets: dict[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """Load each set of modules in an environment of its own; return what is loaded then."""
    lines = [f". {shlex.quote(str(site.module_init))}", f"module use {site.module_trees[0]}"]
    lines += [f"module load {name} || exit 1" for name in site.preload]
    for names in sets.values():
        lines.append(f'( module load {" ".join(names)} && printf "%s\\n" "$LOADEDMODULES" )')
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", "\n".join(lines)],
        env={**environ(), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = (set(line.split(":")) for line in done.stdout.splitlines())
    return dict(zip(sets, answers, strict=True))


def test_every_module_loads_what_its_snapshot_says(live: tuple[Site, DetectionResult]) -> None:
    site, taken = live
    modules = named(taken)
    sets = {
        name: (*(module.parents[0] if module.parents else ()), name)
        for name, module in modules.items()
    }
    expected = {name: brought(modules, (*site.preload, *names)) for name, names in sets.items()}
    assert each_loaded(site, sets) == expected


def test_nothing_is_wrong_with_the_trees(live: tuple[Site, DetectionResult]) -> None:
    _, taken = live
    snapshot = taken.snapshot
    assert taken.notes == ()
    assert snapshot.taken == "2026-11-21"
    assert snapshot.kind == "live"
    assert (snapshot.module_system or "").startswith("Lmod ")
    assert changed_trees(snapshot) == ()


def test_what_another_environment_opens_is_out_of_reach(live: tuple[Site, DetectionResult]) -> None:
    site, taken = live
    assert [name for name in named(taken) if name.startswith("modenv/")] == list(site.preload)
    assert not any("scs5" in tree.path for tree in taken.snapshot.trees)


def test_the_toolchain_of_2018b() -> None:
    taken = taken_tree("taurus-ml")
    modules = named(taken)
    nccl = modules["NCCL/2.3.7-fosscuda-2018b"]
    assert nccl.loads == ("fosscuda/2018b",)
    assert nccl.home == "/sw/installed/NCCL/2.3.7-fosscuda-2018b"
    assert nccl.conflicts == ("NCCL",)
    assert nccl.parents == ()
    assert "OpenMPI/3.1.1-gcccuda-2018b" in brought(modules, [nccl.name])
    assert modules["SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4"].home == (
        "/sw/installed/SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4"
    )


def test_the_parents_in_a_hierarchy() -> None:
    taken = taken_tree("taurus-alpha")
    parents = {name: module.parents for name, module in named(taken).items()}
    opened = (("GCC/10.2.0", "CUDA/11.1.1", "OpenMPI/4.0.5"),)
    assert parents["GCC/10.2.0"] == ()
    assert parents["CUDA/11.1.1"] == (("GCC/10.2.0",),)
    assert parents["OpenMPI/4.0.5"] == (("GCC/10.2.0", "CUDA/11.1.1"),)
    assert parents["Python/3.8.6"] == (("GCCcore/10.2.0",),)
    assert parents["Horovod/0.21.1-TensorFlow-2.4.1"] == opened
    assert parents["PyTorch/1.7.1"] == opened
    trees = [tree.path for tree in taken.snapshot.trees]
    assert str(base_tree("taurus-alpha")) in trees
    assert any(tree.endswith("MPI/GCC-CUDA/10.2.0-11.1.1/OpenMPI/4.0.5") for tree in trees)


def test_without_its_preload_the_hierarchy_begins_higher() -> None:
    site = make_site(lmod_init(), base_tree("taurus-alpha"))
    modules = named(take(site, environ(), TODAY))
    assert modules["GCC/10.2.0"].parents == (("modenv/hiera",),)
    assert {"modenv/hiera", "modenv/scs5"} <= set(modules)


def test_a_caller_with_loaded_modules_makes_no_difference() -> None:
    site = tree_site("taurus-ml")
    loud = environ(
        LOADEDMODULES="modenv/ml:fosscuda/2018b:GCC/7.3.0-2.30",
        MODULEPATH="/nowhere",
        __LMOD_REF_COUNT_PATH="/usr/bin:1",
        BASH_ENV=str(site.module_init),
    )
    assert take(site, loud, TODAY) == taken_tree("taurus-ml")


def test_odd_modules(tmp_path: Path) -> None:
    tree = modulefiles(
        tmp_path,
        {
            "Good/1.lua": 'setenv("GOOD_ROOT", "/sw/good")\nfamily("mpi")\n',
            "Good/2.lua": "",
            "Good/.modulerc.lua": 'module_version("Good/1", "default")\n',
            "Bare/1.lua": 'load("Good")\nload(atleast("Good", "2"))\n',
            "Hidden/.1.lua": "",
            "Unused/1.lua": "",
            "Unused/.modulerc.lua": 'hide_version("Unused/1")\n',
            "Needs/1.lua": 'prereq_any("Good/1", "Good/2")\ndepends_on("Hidden/.1")\n',
            "Swaps/1.lua": 'unload("Good/1")\ntry_load("Absent/1")\n',
            "Tcl/1": "#%Module1.0\nmodule load Good/2\nconflict Tcl\nsetenv EBROOTTCL /sw/tcl\n",
            "Talks/1.lua": 'print("{not json")\nio.stderr:write("load(\'x\')\\n")\n',
            "README": "no module",
            "Loads/1.lua": 'if not isloaded("Good/1") then load("Good/1") end\n',
        },
    )
    taken = take_tree(tree)
    modules = named(taken)
    assert modules["Good/1"].home == "/sw/good"
    assert modules["Good/1"].families == ("mpi",)
    assert [name for name, module in modules.items() if module.default] == ["Good/1"]
    assert modules["Bare/1"].loads == ("Good/1", "Good/2")
    assert modules["Needs/1"].parents == (("Good/1",), ("Good/2",))
    assert modules["Needs/1"].loads == ("Hidden/.1",)
    assert modules["Swaps/1"].conflicts == ("Good/1",)
    assert modules["Swaps/1"].loads == ()
    assert modules["Tcl/1"].loads == ("Good/2",)
    assert modules["Tcl/1"].home == "/sw/tcl"
    assert modules["Loads/1"].loads == ("Good/1",)
    assert "Talks/1" in modules
    assert "README" not in modules
    (note,) = taken.notes
    assert note.startswith("module Unused/1 ")


def test_broken_modules_are_named_and_the_others_are_there(tmp_path: Path) -> None:
    good = {f"Good/{number}.lua": f'setenv("A", "{number}")\n' for number in range(150)}
    bad = {
        "Syntax/1.lua": 'setenv("A"\n',
        "Refuses/1.lua": 'LmodError("no licence on this node")\n',
        "Forbidden/1.lua": 'io.popen("true")\n',
        "Lost/1.lua": 'load("Absent/7")\n',
        "LostToo/1.lua": 'load("Lost/1")\n',
        "OnSyntax/1.lua": 'depends_on("Syntax/1")\n',
    }
    taken = take_tree(modulefiles(tmp_path, {**good, **bad}))
    assert set(named(taken)) == {name.removesuffix(".lua") for name in good}
    notes = taken.notes
    assert len(notes) == len(bad)
    refuses, lost, lost_too, syntax = (
        next(note for note in notes if note.startswith(f"module {name}/1 "))
        for name in ("Refuses", "Lost", "LostToo", "Syntax")
    )
    assert refuses.endswith(": no licence on this node")
    assert "Absent/7" in lost
    assert "Lost/1" in lost_too
    assert ": Unable to load" in syntax


def test_one_name_behind_two_compilers(tmp_path: Path) -> None:
    opens = 'prepend_path("MODULEPATH", "{}")\n'
    files = {f"core/GCC/{n}.lua": opens.format(tmp_path / f"gcc{n}") for n in (8, 10)}
    files |= {f"gcc{n}/FFTW/3.lua": f'setenv("EBROOTFFTW", "/sw/{n}")\n' for n in (8, 10)}
    modulefiles(tmp_path, files)
    taken = take_tree(tmp_path / "core")
    both = [each for each in taken.snapshot.modules if each.name == "FFTW/3"]
    assert [(each.parents, each.home) for each in both] == [
        ((("GCC/10",),), "/sw/10"),
        ((("GCC/8",),), "/sw/8"),
    ]
    assert taken.notes == ()
    older = take(make_site(lmod_init(), tmp_path / "core", preload=("GCC/8",)), environ(), TODAY)
    assert (named(older)["FFTW/3"].home, older.notes) == ("/sw/8", ())


def test_one_name_behind_nothing_and_behind_a_compiler(tmp_path: Path) -> None:
    files = {
        "core/GCC/8.lua": f'prepend_path("MODULEPATH", "{tmp_path}/gcc8")\n',
        "core/zlib/1.lua": 'setenv("EBROOTZLIB", "/sw/core")\n',
        "gcc8/zlib/1.lua": 'setenv("EBROOTZLIB", "/sw/8")\n',
    }
    modulefiles(tmp_path, files)
    taken = take_tree(tmp_path / "core")
    both = [each for each in taken.snapshot.modules if each.name == "zlib/1"]
    assert [(each.parents, each.home) for each in both] == [
        ((("GCC/8",),), "/sw/8"),
        ((), "/sw/core"),
    ]
    assert taken.notes == ()


def test_a_python_that_a_module_brings(tmp_path: Path) -> None:
    program = tmp_path / "sw" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    tree = modulefiles(
        tmp_path / "tree", {"Python/3.9.lua": f'prepend_path("PATH", "{program.parent}")\n'}
    )
    assert named(take_tree(tree))["Python/3.9"].python == str(program)


def test_an_empty_tree(tmp_path: Path) -> None:
    assert named(take_tree(tmp_path)) == {}


def refusal(site: Site) -> EnvbuildError:
    with pytest.raises(EnvbuildError) as caught:
        take(site, environ(), TODAY)
    return caught.value


def test_what_is_not_there(tmp_path: Path) -> None:
    init = lmod_init()
    error = refusal(make_site(init, tmp_path / "gone"))
    assert error.id == "modules.tree-missing"
    assert f"{tmp_path}/gone" in str(error)
    error = refusal(make_site(init, tmp_path, preload=("modenv/ml",)))
    assert isinstance(error, UsageError)
    assert error.id == "modules.preload-failed"
    assert "modenv/ml" in str(error)
    assert isinstance(refusal(make_site(str(tmp_path / "init"), tmp_path)), MissingToolError)
    plain = Site(schema_=1, name="here", summary="x", arch=("x86_64",))
    assert refusal(plain).id == "modules.not-configured"


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "nothing"),
        ('{"GCC":{"/t/GCC/1.lua":{"fullName":"GCC/1","mpath":"/t"', "malformed JSON"),
    ],
    ids=["an Lmod that does not know the format", "cut off"],
)
def test_an_answer_that_is_none(tmp_path: Path, printed: str, said: str) -> None:
    (tmp_path / "spider").write_text(f"#!/bin/sh\nprintf '%s' '{printed}'\n")
    (tmp_path / "spider").chmod(0o755)
    real = lmod_init()
    init = tmp_path / "init"
    init.write_text(f". {shlex.quote(real)}\nLMOD_DIR={shlex.quote(str(tmp_path))}\n")
    tree = modulefiles(tmp_path / "tree", {"GCC/1.lua": ""})
    error = refusal(make_site(str(init), tree))
    assert error.id == "modules.spider-failed"
    assert said in str(error)


def test_looking_changes_nothing(tmp_path: Path) -> None:
    tree = modulefiles(tmp_path / "tree", {"A/1.lua": 'setenv("A", "1")\n'})
    home = tmp_path / "home"
    home.mkdir()
    before = tree_sha256(tree)
    taken = take(make_site(lmod_init(), tree), environ(HOME=str(home)), TODAY)
    assert set(named(taken)) == {"A/1"}
    assert tree_sha256(tree) == before
    assert list(home.iterdir()) == []


def test_the_order_of_the_notes_is_what_really_happens() -> None:
    # The notes of the site load Open MPI first and what drags in another one after it.
    site = tree_site("taurus-ml")
    loaded = loaded_after(site, "OpenMPI/3.1.4-gcccuda-2018b", "NCCL/2.3.7-fosscuda-2018b")
    assert "OpenMPI/3.1.1-gcccuda-2018b" in loaded
    assert "OpenMPI/3.1.4-gcccuda-2018b" not in loaded
    loaded = loaded_after(site, "NCCL/2.3.7-fosscuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b")
    assert "OpenMPI/3.1.4-gcccuda-2018b" in loaded

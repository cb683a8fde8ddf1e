"""Reading what module systems show of a modulefile. The texts are theirs, recorded."""

from __future__ import annotations

from envbuilder.machine.modules.modulefile_effects import Effects, Load, of_lmod, of_tcl

LINE = "-" * 76


def lmod(body: str, path: str = "/tree/A/1.lua") -> Effects:
    text = f"{LINE}\n   {path}:\n{LINE}\n{body}\n"
    return of_lmod(text)[path]


def tcl(body: str, path: str = "/tree/A/1") -> Effects:
    return of_tcl(f"{LINE}\n{path}:\n\n{body}\n{LINE}\n")[path]


def test_a_module_of_easybuild() -> None:
    found = lmod(
        'help([[\nDescription\n===========\nload("not/this")\n]])\n'
        'whatis("Name: NCCL")\nconflict("NCCL")\nload("fosscuda/2018b")\n'
        'prepend_path("CPATH","/sw/NCCL/include")\nprepend_path("PATH","/a:/b")\n'
        'setenv("EBROOTNCCL","/sw/NCCL")\n'
    )
    assert found.loads == (Load(("fosscuda/2018b",)),)
    assert found.conflicts == ("NCCL",)
    assert found.variables == {"EBROOTNCCL": "/sw/NCCL"}
    assert found.folders("PATH") == ("/a", "/b")


def test_every_way_to_load() -> None:
    found = lmod(
        'load("A","B/2")\nalways_load("C/1")\ndepends_on("D/1")\ntry_load("E")\n'
        'load_any("F/1","G/1")\nload(atleast("H","1.2"))\nload(between("I","1","<3"),latest("J"))\n'
    )
    assert found.loads == (
        Load(("A",)),
        Load(("B/2",)),
        Load(("C/1",)),
        Load(("D/1",)),
        Load(("E",), optional=True),
        Load(("F/1", "G/1")),
        Load(("H",), lowest="1.2"),
        Load(("I",), lowest="1", highest="3"),
        Load(("J",)),
    )


def test_what_must_be_loaded_before_and_what_goes() -> None:
    found = lmod('prereq("A/1","B/1")\nprereq_any("C/1","D/1")\nfamily("mpi")\nunload("E")\n')
    assert found.needs == (
        (Load(("A/1",)),),
        (Load(("B/1",)),),
        (Load(("C/1",)), Load(("D/1",))),
    )
    assert found.families == ("mpi",)
    assert found.unloads == ("E",)


def test_text_in_a_value_is_no_call() -> None:
    found = lmod(
        'setenv("X","a\nload("fake/2")")\nwhatis("a\nload("fake/3")")\npushenv("CC","gcc "x" [[]]")'
    )
    assert found.loads == ()
    assert found.variables == {"X": 'a\nload("fake/2")', "CC": 'gcc "x" [[]]'}


def test_several_modules_and_words_around_them() -> None:
    text = (
        f"a greeting of the site\n{LINE}\n   /t/A/1.lua:\n{LINE}\nload("
        f'"X/1")\n\n{LINE}\n   /t/B/1:\n{LINE}\nfamily("c")\n\nLmod Warning: something\n'
    )
    found = of_lmod(text)
    assert set(found) == {"/t/A/1.lua", "/t/B/1"}
    assert found["/t/A/1.lua"].loads == (Load(("X/1",)),)
    assert found["/t/B/1"].families == ("c",)


def test_nothing_shown() -> None:
    assert of_lmod("Lmod has detected the following error: no\n") == {}
    assert of_tcl("ERROR: Unable to locate a modulefile for 'x'\n") == {}


def test_tcl_calls() -> None:
    found = tcl(
        "module-whatis\t{Description: some text}\nconflict\tA\nmodule\t\tload B/1 C/1\n"
        "depends-on\tD/1\nprereq\t\tE/1 E/2\nprepend-path\tPATH {/with space/bin}\n"
        "prepend-path\t-d , LIST a,b\nappend-path\tMODULEPATH /t2\nsetenv\t\tEBROOTA {/a b}\n"
        "setenv\t\tX {a\nmodule load fake/1}\nfamily\t\tmpi\nmodule\t\tswap F/1 F/2\n"
        "module\t\tunload G/1\nmodule\t\ttry-load H/1\nmodule\t\tuse /t3\n"
    )
    assert found.loads == (
        Load(("B/1",)),
        Load(("C/1",)),
        Load(("D/1",)),
        Load(("F/2",)),
        Load(("H/1",), optional=True),
    )
    assert found.needs == ((Load(("E/1",)), Load(("E/2",))),)
    assert found.conflicts == ("A",)
    assert found.families == ("mpi",)
    assert found.unloads == ("F/1", "G/1")
    assert found.variables == {"EBROOTA": "/a b", "X": "a\nmodule load fake/1"}
    assert found.folders("PATH") == ("/with space/bin",)
    assert found.folders("LIST") == ()
    assert found.folders("MODULEPATH") == ("/t2", "/t3")


def test_a_broken_tcl_module() -> None:
    found = tcl('Module ERROR: invalid command name "this"\n      while executing\n  "this is"')
    assert found.broken == 'invalid command name "this"'

"""The zoo: environments that are broken in one way each, and healthy ones of many makers.

``BROKEN`` and ``HEALTHY`` say how each is made from a copy of the first one. What lies beside the
environment, in the folder that holds it, is the machine's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
import zoo
from zoo import Made, as_conda, record

from envbuilder.target_tools import manifest
from envbuilder.target_tools.distributions import INSIDE

Break = Callable[[Made], object]


def other_machine(data: bytes) -> bytes:
    """Return an ELF file as one of ppc64le: e_machine is at offset 18."""
    return data[:18] + (21).to_bytes(2, "little") + data[20:]


def relink_python(made: Made, target: str = "/nowhere/bin/python3") -> None:
    for name in ("python", "python3", f"python{zoo.SERIES}"):
        (made.prefix / "bin" / name).unlink(missing_ok=True)
    (made.prefix / "bin" / "python").symlink_to(target)


def upgrade_python(made: Made) -> None:
    newer = made.prefix.parent / "python3.99"
    shutil.copy2(Path(sys.executable).resolve(), newer)
    relink_python(made, str(newer))


def remove_idna(made: Made) -> None:
    shutil.rmtree(made.metadata("idna"))
    shutil.rmtree(made.packages / "idna")


def field(name: str, key: str, value: str) -> Break:
    """Return what gives a field of a distribution's metadata another value."""

    def change(made: Made) -> None:
        lines = (made.metadata(name) / "METADATA").read_text().splitlines()
        kept = [line for line in lines if not line.startswith(f"{key}:")]
        made.say(name, "METADATA", "\n".join([*kept[:1], f"{key}: {value}", *kept[1:]]))

    return change


def another_wheel(made: Made) -> None:
    text = "Wheel-Version: 1.0\nTag: cp27-cp27mu-manylinux1_x86_64\n"
    made.say("markupsafe", "WHEEL", text)


def fork_of_yaml(made: Made) -> None:
    made.install("yaml-fork", "1", record="yaml/__init__.py,sha256=AAAA,3\n")


def newer_glibc(made: Made) -> None:
    made.edit(made.extension(), lambda data: data.replace(b"GLIBC_2.2.5\0", b"GLIBC_9.99\0\0"))


def newer_processor(made: Made) -> None:
    """A module that says, as linkers write it, that it needs a level which no processor has."""
    module = zoo.compile_c(made.packages / f"fast{zoo.SUFFIX}", "", "-Wl,-z,x86-64-v4")
    note = b"\x02\x80\x00\xc0\x04\x00\x00\x00"
    head, found, tail = module.read_bytes().partition(note)
    assert found
    made.write(module, head + note + (1 << 8).to_bytes(4, "little") + tail[4:])


def conda_of_a_newer_processor(made: Made) -> None:
    record_ = {"name": "_x86_64-microarch-level", "version": "9", "build": "0", "depends": []}
    made.write(made.prefix / "conda-meta" / "_x86_64-microarch-level-9-0.json", json.dumps(record_))


def missing_library(made: Made) -> None:
    library = zoo.compile_c(made.prefix / "libgone.so.1", soname="libgone.so.1")
    zoo.module_with(made, "needs", library)
    library.unlink()


def mpis(made: Made) -> tuple[Path, Path]:
    outside = made.prefix.parent
    one = zoo.make_mpi(outside / "ompi", "Open MPI v4.1.4", "libmpi.so.40")
    return one, zoo.make_mpi(outside / "mpich", "MPICH Version", "libmpi.so.12")


def two_modules_with_an_mpi_each(made: Made) -> None:
    one, other = mpis(made)
    zoo.module_with(made, "first", one)
    zoo.module_with(made, "second", other)


def two_modules_with(one: str, other: str) -> Break:
    """Return what makes two modules, each with a library of its own."""

    def make(made: Made) -> None:
        for folder, soname in (("one", one), ("other", other)):
            library = zoo.compile_c(made.prefix.parent / folder / soname, soname=soname)
            zoo.module_with(made, folder, library)

    return make


def one_module_with_two_mpis(made: Made) -> None:
    one, other = mpis(made)
    between = zoo.compile_c(
        made.prefix.parent / "libbetween.so", "", str(other), f"-Wl,-rpath,{other.parent}"
    )
    zoo.module_with(made, "both", one, between)


def script_for(python: str) -> Break:
    """Return what adds a script that starts a Python."""
    return lambda made: made.write(made.prefix / "bin" / "tool", f"#!{python}\nimport sys\n")


def script_of_another_environment(made: Made) -> None:
    other = made.prefix.parent / "other"
    made.write(other / "pyvenv.cfg", "home = /usr/bin\n")
    made.write(other / "bin" / "python", "")
    quotes = "'" * 3
    text = f'#!/bin/sh\n{quotes}exec\' {other}/bin/python "$0" "$@"\n\' {quotes}\n'
    made.write(made.prefix / "bin" / "tool", text)


def library_of_an_older_release(made: Made) -> None:
    library = made.prefix.parent / "release" / "libcolour.so.1"
    zoo.compile_release(library, "COLOUR_1", "COLOUR_2")
    zoo.module_using(made, "colours", library, "colour_2")
    library.unlink()
    zoo.compile_release(library, "COLOUR_1")


def launcher_of_another_mpi(made: Made) -> None:
    one, _ = mpis(made)
    zoo.module_with(made, "first", one)
    words = ["gcc", "-x", "c", "-", "-o", str(made.prefix / "bin" / "mpiexec")]
    text = 'const char *who = "HYDRA build details:"; int main(void) { return 0; }'
    subprocess.run(words, input=text, text=True, check=True)


def module_shell(made: Made) -> dict[str, str]:
    """Return a shell with the modules Python and tools, which has its packages on PYTHONPATH."""
    outside = made.prefix.parent
    info = Made(outside / "tools").install("tools", "1.0")
    info.parent.rename(outside / "packages")
    files = [outside / "trees" / name for name in ("Python/3.11.7", "tools/1.0")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("#%Module\n")
    return {
        "LOADEDMODULES": "Python/3.11.7:tools/1.0",
        "_LMFILES_": ":".join(map(str, files)),
        "PATH": f"{made.prefix}/bin",
        "PYTHONPATH": str(outside / "packages"),
    }


def conda(*changes: Break) -> Break:
    """Return what makes a conda environment, and then breaks it."""

    def make(made: Made) -> None:
        as_conda(made)
        for change in changes:
            change(made)

    return make


def remove(name: str) -> Break:
    """Return what removes a file or folder of the environment."""

    def change(made: Made) -> None:
        path = made.prefix / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def remove_package(name: str) -> Break:
    return remove(f"lib/python{zoo.SERIES}/site-packages/{name}")


def edit(name: str, change: Callable[[bytes], bytes]) -> Break:
    return lambda made: made.edit(made.packages / name, change)


def pip_over_conda(made: Made) -> None:
    shutil.rmtree(made.metadata("pyyaml"))
    made.edit(made.packages / "yaml" / "loader.py", lambda data: data + b"\n")
    made.install("PyYAML", "9.0")


def in_shell(**changes: str | None) -> Break:
    """Return what loads the modules and then changes the shell; {outside} is the machine."""

    def make(made: Made) -> dict[str, str]:
        shell = module_shell(made)
        for name, value in changes.items():
            shell[name] = (value or "").format(outside=made.prefix.parent, **shell)
        return shell

    return make


def module_gone(made: Made) -> dict[str, str]:
    shell = module_shell(made)
    Path(shell["_LMFILES_"].rpartition(":")[2]).unlink()
    return shell


def module_damaged(made: Made) -> dict[str, str]:
    shell = module_shell(made)
    (made.prefix.parent / "packages" / "tools-1.0.dist-info" / "METADATA").write_text("")
    return shell


def launcher(made: Made) -> Path:
    """Make an mpiexec of MPICH's kin beside the environment; return its folder."""
    folder = made.prefix.parent / "hydra"
    folder.mkdir()
    words = ["gcc", "-x", "c", "-", "-o", str(folder / "mpiexec")]
    text = 'const char *who = "HYDRA build details:"; int main(void) { return 0; }'
    subprocess.run(words, input=text, text=True, check=True)
    return folder


def modules_of_two_mpis(made: Made) -> dict[str, str]:
    shell = module_shell(made)
    one, _ = mpis(made)
    path = f"{shell['PATH']}:{launcher(made)}"
    return {**shell, "PATH": path, "LD_LIBRARY_PATH": str(one.parent)}


def launcher_on_path(made: Made) -> dict[str, str]:
    one, _ = mpis(made)
    zoo.module_with(made, "first", one)
    return {"PATH": str(launcher(made))}


def older_yaml(made: Made, folder: str) -> Path:
    """Make a folder of packages outside, with an older PyYAML."""
    path = made.prefix.parent / folder
    path.parent.mkdir(parents=True, exist_ok=True)
    return Made(made.prefix.parent / "other").install("PyYAML", "1.0").parent.rename(path)


def on_pythonpath(made: Made) -> dict[str, str]:
    return {"PYTHONPATH": str(older_yaml(made, "path"))}


def of_the_user(made: Made) -> dict[str, str]:
    """An older release in the user's own folder hides that of the Python below."""
    older_yaml(made, f"home/.local/lib/python{zoo.SERIES}/site-packages")
    base = zoo.base_python(made.prefix.parent / "base")
    base.install("PyYAML", "6.0")
    text = f"home = {base.prefix}/bin\ninclude-system-site-packages = true\n"
    made.write(made.prefix / "pyvenv.cfg", f"{text}version = {zoo.SERIES}.0\n")
    shutil.rmtree(made.metadata("pyyaml"))
    shutil.rmtree(made.packages / "yaml")
    return {"HOME": str(made.prefix.parent / "home")}


def overruled(made: Made) -> dict[str, str]:
    own = zoo.compile_c(made.packages / "tool.libs" / "libown.so.1", soname="libown.so.1")
    paths = ["-Wl,-rpath,$ORIGIN/tool.libs", "-Wl,--enable-new-dtags"]
    zoo.compile_c(made.packages / f"tool{zoo.SUFFIX}", "", str(own), *paths)
    other = zoo.compile_c(made.prefix.parent / "other" / own.name, soname=own.name)
    return {"LD_LIBRARY_PATH": str(other.parent)}


def older_on_path(made: Made) -> dict[str, str]:
    """An older release of a library comes first on LD_LIBRARY_PATH."""
    new, old = (made.prefix.parent / each / "libcolour.so.1" for each in ("new", "old"))
    zoo.compile_release(new, "COLOUR_1", "COLOUR_2")
    zoo.compile_release(old, "COLOUR_1")
    text = "int colour_2(void); int use(void) { return colour_2(); }"
    zoo.compile_c(made.packages / f"colours{zoo.SUFFIX}", text, str(new))
    return {"LD_LIBRARY_PATH": f"{old.parent}:{new.parent}"}


PYTHON_MODULE = """
extern int colour_2(void);
void *PyInit_colours(void) { return colour_2() ? 0 : (void *)1; }
"""


def symbol_without(*there: str, link: bool = True) -> Break:
    """Return what makes a module that calls colour_2, and a library that has other functions."""

    def make(made: Made) -> None:
        library = made.prefix.parent / "sw" / "libcolour.so.1"
        text = "".join(f"int {name}(void) {{ return 1; }}\n" for name in {"colour_2", *there})
        zoo.compile_c(library, text, soname=library.name)
        words = [str(library), f"-Wl,-rpath,{library.parent}"] if link else []
        zoo.compile_c(made.packages / f"colours{zoo.SUFFIX}", PYTHON_MODULE, *words)
        text = "".join(f"int {name}(void) {{ return 1; }}\n" for name in there)
        library.unlink()
        zoo.compile_c(library, text, soname=library.name)

    return make


def link_as_text(made: Made) -> None:
    zoo.compile_c(made.packages / "tool.libs" / "libtool.so.1.2")
    made.write(made.packages / "tool.libs" / "libtool.so.1", "libtool.so.1.2")


def added(name: str, version: str, tag: str, *fields: str) -> Break:
    """Return what installs a package in another folder, which a .pth file adds."""

    def make(made: Made) -> None:
        other = Made(made.prefix.parent / "group")
        text = f"Wheel-Version: 1.0\nTag: {tag}\n"
        made.write(other.install(name, version).joinpath("WHEEL"), text)
        made.write(made.packages / "group.pth", f"# ours\n{other.packages}\n")
        made.install("above", "1.0", *fields)

    return make


def egg_in_front(made: Made) -> None:
    """An egg that setup.py install put in front of a release by pip."""
    egg = made.packages / "idna-1.0-py3.egg"
    made.write(egg / "EGG-INFO" / "PKG-INFO", "Metadata-Version: 1.0\nName: idna\nVersion: 1.0\n")
    made.write(egg / "idna" / "__init__.py", "")
    text = "./idna-1.0-py3.egg\nimport sys; p = getattr(sys, '__egginsert', 0)\n"
    made.write(made.packages / "easy-install.pth", text)


def module_of_old_release(made: Made) -> None:
    os.utime(made.write(made.packages / "yaml" / "old.py", "import yaml.gone\n"), (1e9, 1e9))


def without_prefix_on_path(made: Made) -> dict[str, str]:
    """An activation whose PATH a login script set back."""
    python = made.prefix.parent / "usr" / "python3"
    made.write(python, "#!/bin/sh\n").chmod(0o755)
    return {"VIRTUAL_ENV": str(made.prefix), "PATH": str(python.parent)}


def python_without_ctypes(made: Made) -> None:
    """A base Python of which lib-dynload lacks two modules."""
    base = zoo.base_python(made.prefix.parent / "base").prefix
    source = Path(sysconfig.get_path("stdlib"))
    copied = Path(
        shutil.copytree(source / "lib-dynload", base / "lib" / source.name / "lib-dynload")
    )
    for path in [*copied.glob("_ctypes.*"), *copied.glob("_bz2.*")]:
        path.unlink()
    made.write(made.prefix / "pyvenv.cfg", f"home = {base}/bin\nversion = {zoo.SERIES}.0\n")


def home_of(variable: str, library: str, there: str | None) -> Break:
    """Return what sets HOROVOD_*_HOME: to a folder with *there*, beside a *library* in use."""

    def make(made: Made) -> dict[str, str]:
        soname = ".".join(library.split(".")[:3])
        used = zoo.compile_c(made.prefix / "own" / library, soname=soname)
        link = used.with_name(soname)
        if link != used:
            link.symlink_to(used.name)
        zoo.module_with(made, "framework", link)
        home = made.prefix.parent / "home"
        (home / "lib").mkdir(parents=True)
        if there is not None:
            (home / "lib" / there).write_text("")
        return {variable: str(home)}

    return make


def base_with(one: str, other: str) -> Break:
    """Return what makes a module with a library, and one in the Python below with another."""

    def make(made: Made) -> None:
        base = zoo.base_python(made.prefix.parent / "base")
        libraries = []
        for folder, soname in (("one", one), ("other", other)):
            library = made.prefix.parent / folder / soname
            who = "Open MPI" if soname.endswith("40") else "MPICH Version"
            libraries.append(zoo.make_mpi(library.parent, who, soname))
        zoo.module_with(made, "first", libraries[0])
        zoo.module_with(base, "second", libraries[1])
        text = f"home = {base.prefix}/bin\ninclude-system-site-packages = true\n"
        made.write(made.prefix / "pyvenv.cfg", f"{text}version = {zoo.SERIES}.0\n")

    return make


def two_mpis_of(one: str, other: str) -> Break:
    def make(made: Made) -> None:
        for name, text, soname in (
            ("first", one, "libmpi.so.40"),
            ("second", other, "libmpi.so.12"),
        ):
            zoo.module_with(made, name, zoo.make_mpi(made.prefix.parent / name, text, soname))

    return make


def needs_through_another(made: Made) -> None:
    gone = zoo.compile_c(made.prefix.parent / "libgone.so.1", soname="libgone.so.1")
    between = zoo.compile_c(made.prefix.parent / "libbetween.so", "", str(gone))
    zoo.module_with(made, "needs", between)
    gone.unlink()


def optional_module(
    made: Made, module: str = "numba/np/ufunc/tbbpool", soname: str = "libtbb.so.12"
) -> None:
    """Add a module that its package can do without, such as numba's layer for TBB."""
    library = zoo.compile_c(made.prefix / soname, soname=soname)
    zoo.module_with(made, module, library)
    library.unlink()


def published(made: Made) -> None:
    """Record the environment as one that was published."""
    folder = Path(f"{made.prefix}.evidence")
    folder.mkdir()
    manifest.write(folder / "manifest.json", manifest.record(made.prefix, "published"))


def published_and(change: Break) -> Break:
    def make(made: Made) -> None:
        published(made)
        change(made)

    return make


def asked(**stack: str) -> Break:
    """Return what writes a recipe for the environment beside it."""

    def make(made: Made) -> None:
        made.install("numpy", "2.2.1")
        recipe = {"schema": 1, "name": "asked", "summary": "x", "arch": ["x86_64"]}
        recipe |= {"stack": {"python": "*", **stack}, "packages": ["distributed-dl-training"]}
        made.install("distributed-dl-training", "1.0")
        (made.prefix.parent / "asked.yaml").write_text(yaml.safe_dump(recipe))

    return make


def site(arch: str, glibc: str) -> Break:
    """Return what writes a site beside the environment."""

    def make(made: Made) -> None:
        value = {"schema": 1, "name": "there", "summary": "x", "arch": [arch]}
        value["facts"] = {"glibc": glibc}
        (made.prefix.parent / "there.yaml").write_text(yaml.safe_dump(value))

    return make


def components(**versions: str) -> Break:
    """Return what installs the metadata of components by their names on the index."""

    def make(made: Made) -> None:
        for name, version in versions.items():
            made.install(name, version)

    return make


def built_for_nothing(made: Made) -> None:
    """A Horovod that was built for an MPI, where there is none."""
    folder = made.install("horovod", "0.28.1")
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    flags = {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_PYTORCH": "1"}
    made.write(folder / INSIDE, json.dumps({"facts": {"flags": flags}}))


def horovod_beside(torch: str, *, abi: int = 1) -> Break:
    """Return what installs a PyTorch of another release or ABI than Horovod was built for."""
    return lambda made: zoo.install_horovod(made, zoo.install_torch(made, torch, abi))


def of_an_extra(made: Made) -> None:
    made.install("asking", "1", "Requires-Dist: idna[made-up]")
    text = (made.metadata("idna") / "METADATA").read_text()
    extra = 'Requires-Dist: nowhere ; extra == "made_up"'
    made.say("idna", "METADATA", text.replace("\n\n", f"\n{extra}\n\n", 1))


def egg_beside(made: Made) -> None:
    folder = made.packages / "packaging-19.0.egg-info"
    made.write(folder / "PKG-INFO", "Metadata-Version: 1.0\nName: packaging\nVersion: 19.0\n")


def python_loop(made: Made) -> None:
    relink_python(made, "python")


def series_moved(made: Made) -> None:
    (made.prefix / "lib" / f"python{zoo.SERIES}").rename(made.prefix / "lib" / "python3.9")


def wheel_tag(tag: str) -> Break:
    return lambda made: made.say("markupsafe", "WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")


def requires(name: str, text: str) -> Break:
    """Return what adds a requirement to a distribution."""
    return field(name, "X-None", f"0\nRequires-Dist: {text}")


def cut_library(made: Made) -> None:
    whole = zoo.compile_c(made.prefix.parent / "whole.so")
    made.write(made.prefix / "lib" / "libcut.so.1", whole.read_bytes()[:900])


def class_of_elf(data: bytes) -> bytes:
    """Return an ELF file as one of s390x, which is big endian."""
    return data[:18] + (22).to_bytes(2, "little") + data[20:]


def depends(made: Made) -> None:
    record(made, "tool", [], ["python_abi >=2,<3|4.*", "pyyaml 1.*"])


def chmod(name: str, mode: int) -> Break:
    """Return what gives a file of the packages other permissions, as its own copy."""

    def change(made: Made) -> None:
        path = made.packages / name
        made.write(path, path.read_bytes()).chmod(mode)
        later = path.stat().st_mtime - 1e6
        os.utime(path, (later, later))

    return change


def own_python(made: Made) -> Path:
    """Make bin/python a copy of the base Python beside the environment, with its home."""
    base = made.prefix.parent / "base"
    program = base / "bin" / f"python{zoo.SERIES}"
    real = Path(sys.executable).resolve()
    made.write(program, real.read_bytes()).chmod(0o755)
    made.write(base / "lib" / f"python{zoo.SERIES}" / "os.py", "")
    relink_python(made, str(program))
    config(made, home=str(program.parent), version=f"{zoo.SERIES}.0")
    return program


def config(made: Made, **keys: str) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in keys.items())
    made.write(made.prefix / "pyvenv.cfg", text)


def not_executable(made: Made) -> None:
    own_python(made).chmod(0o644)


def cut_python(made: Made) -> None:
    program = own_python(made)
    made.write(program, program.read_bytes()[:3000]).chmod(0o755)


def python_without_its_library(made: Made) -> None:
    """A Python that needs a library which is gone; gcc links it as it links libpython."""
    program = own_python(made)
    library = zoo.compile_c(program.with_name("libpython3.so"), soname="libpython3.so")
    words = ["gcc", "-Wl,--no-as-needed", "-x", "c", "-", "-x", "none", str(library)]
    program.unlink()
    text = "int main(void) { return 0; }"
    subprocess.run([*words, "-o", str(program)], input=text, text=True, check=True)
    library.unlink()


def no_standard_library(made: Made) -> None:
    shutil.rmtree(own_python(made).parent.parent / "lib")


def python_of_ppc64le(made: Made) -> None:
    program = own_python(made)
    made.write(program, other_machine(program.read_bytes())).chmod(0o755)


def other_python_first(made: Made) -> dict[str, str]:
    folder = zoo.base_python(made.prefix.parent / "base").prefix / "bin"
    (folder / "python").symlink_to("python3")
    return {"VIRTUAL_ENV": str(made.prefix), "PATH": f"{folder}:{made.prefix}/bin"}


def packages_of_an_older_python(made: Made) -> None:
    folder = made.prefix / "lib" / "python3.5" / "site-packages"
    shutil.copytree(made.metadata("idna"), folder / "idna-1.dist-info")


def shell(**variables: str) -> Break:
    """Return what sets variables of the shell; {outside} is the machine."""
    return lambda made: {n: v.format(outside=made.prefix.parent) for n, v in variables.items()}


def pythonpath_with(name: str) -> Break:
    """Return what puts a folder with a file on PYTHONPATH."""

    def make(made: Made) -> dict[str, str]:
        file = made.write(made.prefix.parent / name, "VALUE = 1\n")
        return {"PYTHONPATH": str(file.parent)}

    return make


def of_ppc64le_on_library_path(made: Made) -> dict[str, str]:
    library = zoo.compile_c(made.prefix.parent / "power" / "libpower.so")
    made.write(library, other_machine(library.read_bytes()))
    return {"LD_LIBRARY_PATH": str(library.parent)}


def preload(made: Made) -> dict[str, str]:
    with_library("-Wl,-rpath,$ORIGIN/tool.libs", inside=True)(made)
    library = made.prefix.parent / "other" / "libown.so.1"
    zoo.compile_c(library, soname="libown.so.1")
    return {"LD_PRELOAD": str(library)}


def prefix_of_another_mpi(made: Made) -> dict[str, str]:
    one, _ = mpis(made)
    zoo.module_with(made, "first", one)
    other = made.prefix.parent / "openmpi-3.1"
    other.mkdir()
    return {"OPAL_PREFIX": str(other)}


def easybuild(root: str, version: str, module: str = "OpenMPI/4.1.4-GCC-11.3.0") -> Break:
    """Return what sets the variables of a module of EasyBuild; another one is loaded."""

    def make(made: Made) -> dict[str, str]:
        folder = made.prefix.parent / root
        (folder / "bin").mkdir(parents=True)
        variables = {"EBROOTOPENMPI": str(folder), "EBVERSIONOPENMPI": version}
        return {**variables, "LOADEDMODULES": module, "PATH": f"{folder}/bin"}

    return make


def module_file(text: str) -> Break:
    """Return what loads a module whose file has a text."""

    def make(made: Made) -> dict[str, str]:
        file = made.write(made.prefix.parent / "tools" / "1.0", text)
        return {"LOADEDMODULES": "tools/1.0", "_LMFILES_": str(file)}

    return make


def link_to_nothing(made: Made) -> None:
    (made.prefix / "lib" / "libgone.so.1").symlink_to("libgone.so.1.2")


def runpath_gone(made: Made) -> dict[str, str]:
    one, _ = mpis(made)
    zoo.module_with(made, "first", one)
    other = made.prefix.parent / "ompi-5" / one.name
    other.parent.mkdir()
    one.rename(other)
    one.parent.rmdir()
    return {"LD_LIBRARY_PATH": str(other.parent)}


def other_suffix(made: Made) -> None:
    zoo.compile_c(made.packages / "fast.cpython-35m-x86_64-linux-gnu.so")


def no_record(made: Made) -> None:
    for name in ("RECORD", "INSTALLER"):
        (made.metadata("idna") / name).unlink()


def bytecode_alone(made: Made) -> None:
    made.write(made.packages / "gone" / "__pycache__" / "core.cpython-311.pyc", "")


def pth_to_nothing(made: Made) -> None:
    made.write(made.packages / "ours.pth", f"{made.prefix.parent}/gone\n")


def editable_to_nothing(made: Made) -> None:
    folder = made.install("mine", "1", record="mine-1.dist-info/METADATA,,\n")
    url = {"url": f"file://{made.prefix.parent}/gone%20now", "dir_info": {"editable": True}}
    made.write(folder / "direct_url.json", json.dumps(url))


def modules_of(*recorded: str, beside: str) -> Break:
    """Return what installs a package with modules, and puts one that no record has beside them."""

    def make(made: Made) -> None:
        made.install("tool", "1", record="".join(f"{name},sha256=AAAA,\n" for name in recorded))
        for name in (*recorded, beside):
            path = made.packages / name
            made.write(path, "") if name.endswith(".py") else zoo.compile_c(path)
            if name in recorded:
                os.utime(path, (1, 1))

    return make


def with_nul(name: str, begin: int) -> Break:
    """Return what fills a module with NUL bytes from a place on; its size and time stay."""

    def make(made: Made) -> None:
        path = made.packages / name
        data, times = path.read_bytes(), path.stat()
        made.write(path, data[:begin] + b"\0" * (len(data) - begin))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return make


def at_start(name: str, data: bytes | str, pth: str = "") -> Break:
    """Return what writes a file that Python runs at start, by itself or by a line of a .pth."""

    def make(made: Made) -> None:
        made.write(made.packages / name, data)
        if pth:
            made.write(made.packages / "start.pth", pth)

    return make


def user_customize(made: Made) -> dict[str, str]:
    text = f"home = {zoo.base_python(made.prefix.parent / 'base').prefix}/bin\n"
    text += f"include-system-site-packages = true\nversion = {zoo.SERIES}.0\n"
    made.write(made.prefix / "pyvenv.cfg", text)
    folder = f"home/.local/lib/python{zoo.SERIES}/site-packages"
    made.write(made.prefix.parent / folder / "usercustomize.py", "import sys\nsys.path.append(\n")
    return {"HOME": f"{made.prefix.parent}/home", "PYTHONNOUSERSITE": ""}


def horovod_of(*built: str, there: Sequence[str]) -> Break:
    """Return what installs a Horovod with extensions for frameworks, and frameworks beside it."""

    def make(made: Made) -> None:
        made.install("horovod", "0.28.1")
        for name in ("torch", "tensorflow", "mxnet"):
            made.write(made.packages / "horovod" / name / "__init__.py", "")
        for name in built:
            zoo.compile_c(made.packages / "horovod" / name / f"mpi_lib{zoo.SUFFIX}")
        for name in there:
            made.install(name, "2.1.2")
            made.write(made.packages / name / "__init__.py", "")

    return make


def activate_of_another(made: Made) -> None:
    made.write(made.prefix / "bin" / "activate", 'VIRTUAL_ENV="/nowhere/venv"\n')


def closed_folder(made: Made) -> None:
    (made.packages / "yaml").chmod(0o700)


def cuda_of_two_series(made: Made) -> None:
    made.install("nvidia-nccl-cu11", "2.21.5")
    made.install("nvidia-cublas-cu12", "12.1.3.1")


def yaml_on_pythonpath(made: Made) -> dict[str, str]:
    folder = made.prefix.parent / "path"
    made.write(folder / "yaml" / "__init__.py", "")
    return {"PYTHONPATH": str(folder)}


def program_of_ppc64le(made: Made) -> None:
    program = Path(sys.executable).resolve().read_bytes()
    made.write(made.prefix / "bin" / "tool", other_machine(program))


def importing_pkg_resources(made: Made) -> None:
    made.install("setuptools", "99.0", record="setuptools/__init__.py,,\n")
    made.write(made.packages / "setuptools" / "__init__.py", "")
    made.install("old", "1", record="old/__init__.py,,\n")
    made.write(made.packages / "old" / "__init__.py", "import pkg_resources\n")


def vision_of_another_build(made: Made) -> None:
    made.install("torch", "2.13.0+cu130")
    made.install("torchvision", "0.28.0+cpu")


def version_of_another_torch(made: Made) -> None:
    zoo.install_torch(made, "2.13.0+cpu")
    made.write(made.packages / "torch" / "version.py", "__version__ = '2.12.0+cpu'\n")


def horovod_record(text: str) -> Break:
    """Return what writes the metadata.json of a Horovod that was built for PyTorch."""

    def make(made: Made) -> None:
        zoo.install_horovod(made, zoo.install_torch(made))
        made.write(made.packages / "horovod" / "metadata.json", text)

    return make


def conda_package(**keys: str) -> Break:
    """Return what adds the record of a package for linux-64."""

    def make(made: Made) -> None:
        value = {"name": "tool", "version": "1.0", "build": "0", "subdir": "linux-64", **keys}
        name = f"{value['name']}-{value['version']}-{value['build']}.json"
        made.write(made.prefix / "conda-meta" / name, json.dumps(value))

    return make


def history(*lines: str) -> Break:
    text = "".join(f"{line}\n" for line in ("==> 2026-01-01 00:00:00 <==", *lines))
    return lambda made: made.write(made.prefix / "conda-meta" / "history", text)


@dataclass(frozen=True)
class Way:
    """How an environment is broken, and what is found; *also*: what comes with it.

    ``make`` returns the shell in which it is looked at, None: the tests'. ``options``: of validate.
    """

    make: Break
    wanted: str
    also: frozenset[str] = frozenset()
    compiled: bool = False
    loaded: bool = False
    recipe: bool = False
    site: bool = False


_CHANGED = frozenset({"package.changed"})
_GONE = frozenset({"package.gone"})
_C = {"compiled": True}

BROKEN: dict[str, Way] = {
    # The Python of it
    "interpreter removed": Way(relink_python, "python.missing"),
    "interpreter a link to itself": Way(python_loop, "python.missing"),
    "Python upgraded": Way(
        upgrade_python, "python.other-version", frozenset({"python.other-home"})
    ),
    "packages of another Python": Way(
        series_moved, "python.other-version", frozenset({"package.other-abi"})
    ),
    "moved": Way(script_for("/nowhere/venv/bin/python3"), "python.moved"),
    "moved, and activate as before": Way(activate_of_another, "python.moved"),
    "copied": Way(script_of_another_environment, "python.moved"),
    "Python without execute permission": Way(not_executable, "python.missing"),
    "interpreter truncated": Way(cut_python, "python.damaged"),
    "libpython gone": Way(python_without_its_library, "python.library-missing", **_C),
    "standard library removed": Way(no_standard_library, "python.standard-library-missing"),
    "pyvenv.cfg of another folder": Way(
        lambda made: config(made, home=str(made.prefix.parent), version=f"{zoo.SERIES}.1"),
        "python.other-home",
    ),
    "pyvenv.cfg of another Python": Way(
        lambda made: config(made, home=str(Path(sys.executable).resolve().parent), version="3.5.1"),
        "python.other-version",
        frozenset({"package.python-unmet", "package.other-abi"}),
    ),
    "pyvenv.cfg empty": Way(lambda made: config(made), "python.config-missing"),
    "pyvenv.cfg removed": Way(
        lambda made: (
            (made.prefix / "pyvenv.cfg").unlink(),
            made.write(made.prefix / "bin" / "activate", ""),
        ),
        "python.config-missing",
    ),
    "packages of an older Python beside": Way(packages_of_an_older_python, "python.left-over"),
    "interpreter of ppc64le": Way(
        python_of_ppc64le,
        "python.other-machine",
        frozenset({"library.other-machine", "package.other-machine"}),
    ),
    "another Python first on PATH": Way(other_python_first, "python.hidden"),
    # What packages require
    "package removed": Way(remove_idna, "package.requirement-missing"),
    "requirement of an extra": Way(of_an_extra, "package.requirement-missing"),
    "new requirement": Way(requires("idna", "nowhere>=2"), "package.requirement-missing"),
    "package downgraded": Way(field("idna", "Version", "1.0"), "package.requirement-unmet"),
    "requirement raised": Way(requires("idna", "packaging>=9999"), "package.requirement-unmet"),
    "for a newer Python": Way(field("idna", "Requires-Python", ">=4"), "package.python-unmet"),
    "for an older Python": Way(field("idna", "Requires-Python", "<3"), "package.python-unmet"),
    "wheel of another Python": Way(another_wheel, "package.other-abi"),
    "wheel of PyPy": Way(wheel_tag("pp39-pypy39_pp73-linux_x86_64"), "package.other-abi"),
    "stable wheel of a newer Python": Way(
        wheel_tag("cp399-abi3-manylinux1_x86_64"), "package.other-abi"
    ),
    # Files of packages
    "empty METADATA": Way(
        lambda made: made.write(made.metadata("packaging") / "METADATA", ""), "package.damaged"
    ),
    "METADATA without a version": Way(
        lambda made: made.write(made.metadata("packaging") / "METADATA", "Name: packaging\n\n"),
        "package.damaged",
    ),
    "METADATA removed": Way(
        lambda made: (made.metadata("packaging") / "METADATA").unlink(), "package.damaged", _GONE
    ),
    "RECORD that is no table": Way(
        lambda made: made.write(made.metadata("packaging") / "RECORD", "a" * 200_000),
        "package.damaged",
    ),
    "two releases": Way(lambda made: made.install("packaging", "20.0"), "package.twice"),
    "an egg beside it": Way(egg_beside, "package.twice"),
    "file removed": Way(remove_package("yaml/loader.py"), "package.gone"),
    "package's folder removed": Way(remove_package("idna"), "package.gone"),
    "file edited": Way(edit("yaml/loader.py", lambda data: data + b"\n"), "package.changed"),
    "file emptied": Way(edit("yaml/loader.py", lambda data: b""), "package.changed"),
    "file edited, as long as before": Way(
        edit("yaml/loader.py", lambda data: data.swapcase()), "package.changed"
    ),
    "lines of Windows": Way(
        edit("yaml/nodes.py", lambda data: data.replace(b"\n", b"\r\n")), "package.changed"
    ),
    "install interrupted": Way(no_record, "package.interrupted"),
    "upgrade interrupted": Way(lambda made: (made.packages / "~dna").mkdir(), "package.left-over"),
    "bytecode of a removed package": Way(bytecode_alone, "package.left-over"),
    "folder of a .pth gone": Way(pth_to_nothing, "package.editable-gone"),
    "folder of an editable package gone": Way(editable_to_nothing, "package.editable-gone"),
    "wheel of aarch64": Way(
        wheel_tag(f"cp{zoo.SERIES.replace('.', '')}-abi3-manylinux2014_aarch64"),
        "package.other-machine",
    ),
    "program of ppc64le": Way(program_of_ppc64le, "package.other-machine"),
    "setuptools without pkg_resources": Way(
        importing_pkg_resources, "package.pkg-resources-missing"
    ),
    "file closed to others": Way(chmod("yaml/loader.py", 0o600), "package.other-owner"),
    "folder closed to others": Way(closed_folder, "package.other-owner"),
    "older extension before that of abi3": Way(
        modules_of("tool/core.abi3.so", beside=f"tool/core{zoo.SUFFIX}"),
        "package.overwritten",
        **_C,
    ),
    "extension of abi3 before one without a tag": Way(
        modules_of("tool/core.so", beside="tool/core.abi3.so"), "package.overwritten", **_C
    ),
    "extension before a module": Way(
        modules_of("tool/core.py", beside=f"tool/core{zoo.SUFFIX}"),
        "package.overwritten",
        frozenset({"package.left-over"}),
        **_C,
    ),
    "folder before a module": Way(
        modules_of("tool.py", beside="tool/__init__.py"), "package.overwritten"
    ),
    "module of NUL bytes": Way(with_nul("yaml/nodes.py", 0), "package.source-damaged"),
    "module that ends in NUL bytes": Way(with_nul("yaml/loader.py", 512), "package.source-damaged"),
    "sitecustomize.py with marks of a merge": Way(
        at_start("sitecustomize.py", "import sys\n<<<<<<< HEAD\n"), "package.source-damaged"
    ),
    "sitecustomize.py in Latin-1": Way(
        at_start("sitecustomize.py", b"# f\xfcr alle\n"), "package.source-damaged"
    ),
    "usercustomize.py cut off": Way(user_customize, "package.source-damaged"),
    ".pth in UTF-16": Way(
        at_start("ours.pth", "import sys\n".encode("utf-16")), "package.source-damaged"
    ),
    ".pth with a line of another shell": Way(
        at_start("ours.pth", "import sys; if sys.flags.isolated: pass\n"), "package.source-damaged"
    ),
    "module of a .pth cut off": Way(
        at_start("starter.py", "def start(:\n", "import starter\n"), "package.source-damaged"
    ),
    "folder inside of a package, before a module": Way(
        lambda made: made.write(made.packages / "yaml" / "loader" / "__init__.py", ""),
        "package.overwritten",
    ),
    "module of an older release": Way(module_of_old_release, "package.left-over"),
    "egg of an older release in front": Way(
        egg_in_front, "package.twice", frozenset({"package.*"})
    ),
    ".pth of another machine": Way(
        added("below", "1.0", "cp311-cp311-linux_ppc64le"), "package.other-machine"
    ),
    "activated, without PATH": Way(without_prefix_on_path, "python.hidden"),
    "script named as a module of Python": Way(
        lambda made: made.write(made.prefix / "bin" / "shutil.py", ""), "python.module-hidden"
    ),
    "Python without ctypes": Way(
        python_without_ctypes, "python.module-missing", frozenset({"python.other-home"})
    ),
    "two packages, one file": Way(fork_of_yaml, "package.overwritten"),
    "published, then edited": Way(
        published_and(edit("yaml/loader.py", lambda data: data + b"\n")),
        "published.changed",
        _CHANGED,
    ),
    "published, then a file more": Way(
        published_and(lambda made: made.write(made.packages / "more.py", "")), "published.changed"
    ),
    # conda
    "conda: file edited": Way(
        conda(edit("yaml/loader.py", lambda data: data.swapcase())), "package.changed"
    ),
    "conda: file removed": Way(conda(remove_package("yaml/loader.py")), "package.gone"),
    "conda: package removed by force": Way(
        conda(remove("conda-meta/python_abi-1.0-0_cp311.json")), "conda.requirement-missing"
    ),
    "conda: package downgraded by force": Way(conda(depends), "conda.requirement-unmet"),
    "conda: another build than required": Way(
        conda(
            lambda made: (made.prefix / "conda-meta" / "python_abi-1.0-0_cp311.json").unlink(),
            lambda made: record(made, "python_abi", [], build="0_cp310"),
        ),
        "conda.requirement-unmet",
    ),
    "conda: pip over it": Way(conda(pip_over_conda), "conda.replaced-by-pip"),
    "conda: record empty": Way(
        conda(lambda made: made.write(made.prefix / "conda-meta" / "bad-1-0.json", "")),
        "conda.damaged",
    ),
    "conda: record without a name": Way(
        conda(lambda made: made.write(made.prefix / "conda-meta" / "bad-1-0.json", "{}")),
        "conda.damaged",
    ),
    "conda: package of linux-aarch64": Way(
        conda(conda_package(subdir="linux-aarch64")), "conda.other-machine"
    ),
    "conda: two records of a package": Way(
        conda(conda_package(), conda_package(version="2.0")), "conda.twice"
    ),
    "conda: request without a package": Way(
        conda(history("# update specs: ['pyyaml', 'numpy=1.26']")), "conda.requested-missing"
    ),
    "conda: another release than requested": Way(
        conda(history('# update specs: ["pyyaml=0.9=py_0"]')), "conda.requested-unmet"
    ),
    "conda: another release than pinned": Way(
        conda(lambda made: made.write(made.prefix / "conda-meta" / "pinned", "pyyaml 5.*\n")),
        "conda.requested-unmet",
    ),
    "conda: record of another package": Way(
        conda(
            conda_package(),
            lambda made: (made.prefix / "conda-meta" / "tool-1.0-0.json").rename(
                made.prefix / "conda-meta" / "tool-0.9-0.json"
            ),
        ),
        "conda.half-done",
    ),
    # Libraries
    "extension truncated": Way(
        lambda made: made.edit(made.extension(), lambda data: data[:1000]),
        "library.damaged",
        _CHANGED,
    ),
    "extension empty": Way(
        lambda made: made.edit(made.extension(), lambda data: b""), "library.damaged", _CHANGED
    ),
    "extension that is a page of HTML": Way(
        lambda made: made.edit(made.extension(), lambda data: b"<html>404</html>"),
        "library.damaged",
        _CHANGED,
    ),
    "library of the environment truncated": Way(cut_library, "library.damaged", **_C),
    "extension of ppc64le": Way(
        lambda made: made.edit(made.extension(), other_machine), "library.other-machine", _CHANGED
    ),
    "extension of s390x": Way(
        lambda made: made.edit(made.extension(), class_of_elf), "library.other-machine", _CHANGED
    ),
    "extension for a newer glibc": Way(newer_glibc, "library.newer-glibc", _CHANGED),
    "extension for a newer processor": Way(newer_processor, "library.newer-processor", **_C),
    "conda: packages for a newer processor": Way(
        conda(conda_of_a_newer_processor), "library.newer-processor"
    ),
    "link to a library that is gone": Way(link_to_nothing, "library.damaged"),
    "folder of the MPI gone, another MPI loaded": Way(runpath_gone, "library.runpath-gone", **_C),
    "module of Python 3.5": Way(other_suffix, "package.other-abi", **_C),
    "library removed": Way(missing_library, "library.missing", **_C),
    "library of a library removed": Way(needs_through_another, "library.missing", **_C),
    "no TBB for numba": Way(optional_module, "library.missing", **_C),
    "library of an older release": Way(
        library_of_an_older_release, "library.version-missing", **_C
    ),
    "module linked without its library": Way(
        symbol_without(link=False), "library.symbol-missing", **_C
    ),
    "library without a function": Way(symbol_without("colour_1"), "library.symbol-missing", **_C),
    "link that became text": Way(link_as_text, "library.damaged", **_C),
    "older release on LD_LIBRARY_PATH": Way(older_on_path, "library.version-missing", **_C),
    "LD_LIBRARY_PATH over RUNPATH": Way(overruled, "library.overruled", **_C),
    # One process
    "two MPIs": Way(two_modules_with_an_mpi_each, "mpi.two-in-process", **_C),
    "Intel MPI and Spectrum MPI": Way(
        two_mpis_of("IBM Spectrum MPI", "Intel(R) MPI Library"), "mpi.two-in-process", **_C
    ),
    "two MPIs in one module": Way(one_module_with_two_mpis, "mpi.two-in-process", **_C),
    "another MPI in the Python below": Way(
        base_with("libmpi.so.40", "libmpi.so.12"), "mpi.two-in-process", **_C
    ),
    "two NCCLs": Way(two_modules_with("libnccl.so.2", "libnccl.so.2"), "nccl.two-in-process", **_C),
    "packages of two series of CUDA": Way(cuda_of_two_series, "cuda.two-in-process"),
    "CUDA of two series": Way(
        two_modules_with("libcudart.so.11.0", "libcudart.so.12"), "cuda.two-in-process", **_C
    ),
    "two OpenMPs": Way(two_modules_with("libomp.so", "libiomp5.so"), "openmp.two-in-process", **_C),
    "OpenMP of a wheel and of the system": Way(
        two_modules_with("libomp-a1b2c3d4.so.5", "libomp.so.5"), "openmp.two-in-process", **_C
    ),
    "launcher of another MPI": Way(launcher_of_another_mpi, "mpi.other-launcher", **_C),
    "launcher of another MPI on PATH": Way(launcher_on_path, "mpi.other-launcher", **_C),
    # The shell
    "package on PYTHONPATH": Way(on_pythonpath, "path.pythonpath"),
    "package of the user": Way(of_the_user, "path.user-site"),
    "HOROVOD_NCCL_HOME without NCCL": Way(
        home_of("HOROVOD_NCCL_HOME", "libnccl.so.2.3.7", None), "horovod.home-empty", **_C
    ),
    "HOROVOD_NCCL_HOME of another release": Way(
        home_of("HOROVOD_NCCL_HOME", "libnccl.so.2.3.7", "libnccl.so.2.18.3"),
        "horovod.other-home",
        **_C,
    ),
    "HOROVOD_CUDA_HOME of another release": Way(
        home_of("HOROVOD_CUDA_HOME", "libcudart.so.12.4.99", "libcudart.so.11.8.89"),
        "horovod.other-home",
        **_C,
    ),
    "variable with a missing folder": Way(
        shell(CUDA_HOME="{outside}/cuda-9"), "variable.target-missing"
    ),
    "preloaded library gone": Way(
        shell(LD_PRELOAD="{outside}/libgone.so"), "variable.target-missing"
    ),
    "variable that was not expanded": Way(shell(PYTHONPATH="~/packages"), "variable.malformed"),
    "packages of Python 3.5 on PYTHONPATH": Way(
        pythonpath_with("python3.5/site-packages/tool.py"), "variable.other-python"
    ),
    "module of the standard library on PYTHONPATH": Way(
        pythonpath_with("mine/random.py"), "variable.hides"
    ),
    "libraries of ppc64le on LD_LIBRARY_PATH": Way(
        of_ppc64le_on_library_path, "variable.other-machine", **_C
    ),
    "package on PYTHONPATH, without metadata": Way(yaml_on_pythonpath, "variable.hides"),
    "library preloaded": Way(preload, "variable.hides", **_C),
    "PYTHONHOME": Way(shell(PYTHONHOME="{outside}"), "variable.left-over"),
    "PIP_TARGET": Way(shell(PIP_TARGET="{outside}/target"), "variable.left-over"),
    "OPAL_PREFIX of another Open MPI": Way(prefix_of_another_mpi, "variable.left-over", **_C),
    "EBROOT of another release": Way(easybuild("OpenMPI/3.1.4", "3.1.4"), "module.other-root"),
    "EBROOT that remains": Way(
        easybuild("OpenMPI/4.1.4", "4.1.4", "GCC/11.3.0"), "module.other-root"
    ),
    "modulefile empty": Way(module_file(""), "module.damaged"),
    "module without its bin": Way(
        lambda made: easybuild("OpenMPI/4.1.4", "4.1.4")(made) | {"PATH": "/usr/bin"},
        "module.half-loaded",
    ),
    "modules: file gone": Way(module_gone, "module.gone", loaded=True),
    "modules: package damaged": Way(module_damaged, "package.damaged", loaded=True),
    "modules: two releases": Way(
        in_shell(LOADEDMODULES="tools/1.0:tools/2.0", _LMFILES_=""),
        "module.two-releases",
        loaded=True,
    ),
    "modules: library folder gone": Way(
        in_shell(LD_LIBRARY_PATH="{outside}/gone"), "module.folder-gone", loaded=True
    ),
    "modules: package folder gone": Way(
        in_shell(PYTHONPATH="{outside}/gone"), "module.folder-gone", loaded=True
    ),
    "modules: two MPIs": Way(modules_of_two_mpis, "module.other-mpi", compiled=True, loaded=True),
    # What is known, what was asked for, where it is to run
    "NumPy 2 with an older PyTorch": Way(
        components(torch="2.2.0", numpy="2.0.1"), "PY-003", frozenset({"PY-*"})
    ),
    "torchvision of another build": Way(
        vision_of_another_build, "framework.other-build", frozenset({"PY-*", "PT-*"})
    ),
    "version.py of another PyTorch": Way(version_of_another_torch, "framework.other-record", **_C),
    "Horovod's record damaged": Way(
        horovod_record("{"), "horovod.record-damaged", frozenset({"HVD-*"}), **_C
    ),
    "Horovod's record without PyTorch": Way(
        horovod_record("{}"), "horovod.record-damaged", frozenset({"HVD-*"}), **_C
    ),
    "Horovod without an extension for PyTorch": Way(
        horovod_of("tensorflow", there=["torch"]),
        "horovod.other-framework",
        frozenset({"HVD-*", "PY-*", "PT-*", "TORCH-*"}),
        **_C,
    ),
    "Horovod without any extension": Way(
        horovod_of(there=["torch"]),
        "horovod.other-framework",
        frozenset({"HVD-*", "PY-*", "PT-*", "TORCH-*"}),
    ),
    "Horovod of MXNet beside TensorFlow": Way(
        horovod_of("mxnet", there=["tensorflow"]),
        "horovod.other-framework",
        frozenset({"HVD-*", "TF-*", "PY-*"}),
        **_C,
    ),
    "Horovod for another PyTorch": Way(
        horovod_beside("2.14.0+cpu"), "horovod.other-framework", frozenset({"HVD-*"}), **_C
    ),
    "Horovod of the other C++ ABI": Way(
        horovod_beside(zoo.TORCH, abi=0), "horovod.other-abi", frozenset({"HVD-*"}), **_C
    ),
    "Horovod built for an MPI that is not there": Way(
        built_for_nothing, "HVD-120", frozenset({"HVD-*"})
    ),
    "recipe: another release": Way(asked(numpy=">=2.3"), "recipe.other-version", recipe=True),
    "recipe: not there": Way(asked(pytorch=">=2"), "recipe.component-missing", recipe=True),
    "site: another architecture": Way(site("ppc64le", "9.9"), "site.other-arch", site=True),
    "site: an older glibc": Way(site("x86_64", "2.1"), "library.newer-glibc", site=True),
}


def nothing(made: Made) -> None:
    """Leave it as it is."""


def with_library(*options: str, inside: bool) -> Break:
    """Return what adds a module whose library is found by the linker's *options*."""

    def make(made: Made) -> None:
        outside = made.prefix.parent / "sw"
        library = zoo.compile_c(
            (made.packages / "tool.libs" if inside else outside) / "libown.so.1",
            soname="libown.so.1",
        )
        zoo.compile_c(made.packages / f"tool{zoo.SUFFIX}", "", str(library), *options)

    return make


def on_library_path(made: Made) -> dict[str, str]:
    with_library(inside=False)(made)
    return {"LD_LIBRARY_PATH": str(made.prefix.parent / "sw")}


def same_mpi_twice(made: Made) -> None:
    one, _ = mpis(made)
    for name in ("first", "second"):
        zoo.module_with(made, name, one)


def variants_of_mpi4py(made: Made) -> dict[str, str]:
    """mpi4py's wheels have a module for each family of MPI; that of the launcher is imported."""
    one, other = mpis(made)
    for name, library in (("openmpi", one), ("mpich", other)):
        zoo.compile_c(
            made.packages / "mpi4py" / f"MPI.{name}{zoo.SUFFIX}",
            "",
            str(library),
            f"-Wl,-rpath,{library.parent}",
        )
    return {"PATH": str(launcher(made))}


def environments_in_sources(made: Made) -> dict[str, str]:
    """A folder of sources on PYTHONPATH has environments in it, with modules of another MPI."""
    one, other = mpis(made)
    zoo.module_with(made, "first", other)
    sources = made.prefix.parent / "sources"
    for name in (".venv", "env"):
        made.write(sources / name / "pyvenv.cfg", "home = /usr/bin\n")
        module = sources / name / "lib/site-packages" / f"second{zoo.SUFFIX}"
        zoo.compile_c(module, "", str(one), f"-Wl,-rpath,{one.parent}")
    return {"PYTHONPATH": str(sources), "PATH": str(launcher(made))}


def version_calculated(made: Made) -> None:
    made.write(made.packages / "jaxlib" / "__init__.py", "")
    made.write(made.packages / "jaxlib" / "version.py", "__version__ = str(0.4)\n")
    made.install("jaxlib", "0.4")


def newer_library(made: Made) -> None:
    library = made.prefix.parent / "release" / "libcolour.so.1"
    zoo.compile_release(library, "COLOUR_1")
    zoo.module_using(made, "colours", library, "colour_1")
    library.unlink()
    zoo.compile_release(library, "COLOUR_1", "COLOUR_2")


def foreign(made: Made) -> None:
    """One for ppc64le, all of it: its Python and its extensions."""
    python = made.prefix.parent / "base" / "bin" / f"python{zoo.SERIES}"
    made.write(python, other_machine(Path(sys.executable).resolve().read_bytes()))
    python.chmod(0o755)
    relink_python(made, str(python))
    config = f"home = {python.parent}\nversion = {zoo.SERIES}.0\n"
    made.write(made.prefix / "pyvenv.cfg", config)
    library = python.parent.parent / "lib" / f"python{zoo.SERIES}" / "os.py"
    made.write(library, "")
    for path in made.packages.rglob("*.so"):
        made.write(path, other_machine(path.read_bytes()))
    for name in ("PyYAML", "MarkupSafe", "charset_normalizer"):
        (folder,) = made.packages.glob(f"{name.lower()}-*.dist-info")
        rows = (folder / "RECORD").read_text().splitlines()
        kept = [f"{row.split(',')[0]},," if ".so," in row else row for row in rows]
        made.write(folder / "RECORD", "\n".join(kept) + "\n")
        tags = (folder / "WHEEL").read_text().replace("_x86_64", "_ppc64le")
        made.say(folder.name.partition("-")[0], "WHEEL", tags)


def editable(made: Made) -> None:
    """A package that lies in its author's folder, as pip install -e has it."""
    source = made.prefix.parent / "source"
    record_ = "__editable__.mine-1.pth,,\nmine-1.dist-info/METADATA,,\n"
    made.install("mine", "1", "Requires-Dist: idna", record=record_)
    made.write(made.packages / "__editable__.mine-1.pth", f"{source}\n")
    made.write(source / "mine.py", "VALUE = 1\n")


def old_egg(made: Made) -> None:
    """A package that setup.py install laid down: an egg-info without RECORD."""
    folder = made.packages / "old-1.0-py3.egg-info"
    made.write(folder / "PKG-INFO", "Metadata-Version: 1.0\nName: old\nVersion: 1.0\n")
    made.write(made.packages / "old.py", "VALUE = 1\n")


def distutils_egg(made: Made) -> None:
    """A package of distutils: its egg-info is a file."""
    text = "Metadata-Version: 1.0\nName: old\nVersion: 1.0\n"
    made.write(made.packages / "old-1.0-py3.egg-info", text)


def bytecode_gone(made: Made) -> None:
    rows = ["one/__pycache__/a.cpython-311.pyc", "two.pyc", "tool-1.data/data/bin/tool"]
    made.install("tool", "1", record="".join(f"{row},sha256=AAAA,1\n" for row in rows))


def driver_missing(made: Made) -> None:
    """A login node has no driver's library."""
    library = zoo.compile_c(made.prefix / "libcuda.so.1", soname="libcuda.so.1")
    zoo.module_with(made, "gpu", library)
    library.unlink()


def system_packages(made: Made) -> None:
    base = zoo.base_python(made.prefix.parent / "base")
    base.install("below", "1.0")
    text = f"home = {base.prefix}/bin\ninclude-system-site-packages = true\n"
    made.write(made.prefix / "pyvenv.cfg", f"{text}version = {zoo.SERIES}.0\n")
    made.install("above", "1.0", "Requires-Dist: below")


HEALTHY: dict[str, Way] = {
    "a package in a folder of a .pth": Way(
        added("below", "1.0", "py3-none-any", "Requires-Dist: below>=1"), ""
    ),
    "a file that a package wrote in its folder": Way(
        lambda made: made.write(made.packages / "yaml" / "cache.py", ""), ""
    ),
    "a module with all of its symbols": Way(symbol_without("colour_2"), "", **_C),
    "a script in bin": Way(lambda made: made.write(made.prefix / "bin" / "convert.py", ""), ""),
    "venv of Python": Way(nothing, ""),
    "venv with packages of the system": Way(system_packages, ""),
    "conda, and pip on top": Way(conda(), ""),
    "published by envbuild": Way(published, ""),
    "of ppc64le, all of it": Way(foreign, ""),
    "an editable package": Way(editable, ""),
    "a package of setup.py": Way(old_egg, ""),
    "a module beside its extension": Way(
        modules_of("tool/core.py", f"tool/core{zoo.SUFFIX}", beside="tool/more.py"), "", **_C
    ),
    "a module that an extension hides": Way(
        modules_of(f"tool/core{zoo.SUFFIX}", beside="tool/core.py"), "", **_C
    ),
    "a sitecustomize.py in Latin-1 that says so": Way(
        at_start("sitecustomize.py", b"# coding: latin-1\n# f\xfcr alle\n"), ""
    ),
    "a .pth of folders and lines of code": Way(
        at_start("ours.pth", "# ours\n\nimport sys; sys.path.append('x')\n./more (1)\n"), ""
    ),
    "a package of distutils": Way(distutils_egg, ""),
    "bytecode that is gone": Way(bytecode_gone, ""),
    "a script of sh": Way(script_for("/bin/sh"), ""),
    "a script by env": Way(script_for("/usr/bin/env python"), ""),
    "a wheel with its libraries": Way(
        with_library("-Wl,-rpath,$ORIGIN/tool.libs", inside=True), "", **_C
    ),
    "a wheel that loads its libraries itself": Way(with_library(inside=True), "", **_C),
    "a library by LD_LIBRARY_PATH": Way(on_library_path, "", **_C),
    "a library of a later release": Way(newer_library, "", **_C),
    "two modules with one MPI": Way(same_mpi_twice, "", **_C),
    "mpi4py with a module for each MPI": Way(variants_of_mpi4py, "", **_C),
    "environments in a folder of sources": Way(environments_in_sources, "", **_C),
    "a version that is calculated": Way(version_calculated, ""),
    "a driver that only GPU nodes have": Way(driver_missing, "", **_C),
    "loaded modules": Way(in_shell(), "", loaded=True),
    "as the recipe asks": Way(asked(numpy=">=2,<3"), "", recipe=True),
    "fit for the site": Way(site("x86_64", "9.9"), "", site=True),
}

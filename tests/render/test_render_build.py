"""The rendered build.sh, run from end to end with tiny wheels, where paths are unpleasant.

ENVBUILD_TEST_PYTHONS=/path/to/python3.6:/path/to/python3.12 runs it with these as well.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from render_cases import STEPS, build_files, make_plan, make_steps, standard_edits
from render_tools import clean_env, lmod_folder, modulecmd, need, run
from render_wheels import make_wheel, make_wheels, module, write_runtime

from envbuilder import data
from envbuilder.build import sources
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Modules
from envbuilder.model.site import ModuleSystem
from tests.pythons import NAMED

pytestmark = pytest.mark.integration

PYTHONS = (sys.executable, *NAMED)


@dataclass(frozen=True)
class Site:
    """A build folder and the folder of wheels that its lock points at."""

    folder: Path
    prefix: Path
    wheels: Path

    def build(self, *steps: str, **caller: str) -> subprocess.CompletedProcess[str]:
        """Run build.sh from elsewhere, with no network and these variables set."""
        env = clean_env(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0", **caller)
        return run([need("bash"), str(self.folder / "build.sh"), *steps], env=env, cwd=Path("/"))

    def marks(self) -> set[str]:
        return {path.name for path in (self.folder / "state").iterdir()}

    def python(self, code: str) -> str:
        done = run(
            [str(self.prefix / "bin" / "python"), "-c", code], env=clean_env(), cwd=Path("/")
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


# With these in its path an environment gets pip by ensurepip, which takes seconds more.
SPECIAL = 'it\'s a "root"'


def make_site(
    tmp_path: Path,
    python: str = sys.executable,
    modules: Modules | None = None,
    name: str = "it's a root",
) -> Site:
    """Write a build folder in a place that is 150 characters long, with spaces and quotes."""
    base = tmp_path / name
    folder = base / "build folder"
    prefix = base / ("x" * max(1, 150 - len(str(base)) - 1))
    assert len(str(prefix)) >= 150
    artifacts = make_wheels(base / "my wheels")
    plan = make_plan(
        python=python,
        environment=standard_edits(TINY="yes"),
        modules=modules or Modules(),
        steps=make_steps(*(("modules",) if modules else ()), *STEPS),
    )
    write_runtime(folder / "runtime")
    sources.copy(data.TARGET_TOOLS, folder / data.TARGET_TOOLS.name)
    for name, text in build_files(
        Lock(plan=plan, artifacts=artifacts), BuildFolders(prefix, folder)
    ).items():
        (folder / name).write_text(text, encoding="utf-8")
    return Site(folder, prefix, base / "my wheels")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return a build that ended; tests copy it before they change anything."""
    site = make_site(tmp_path_factory.mktemp("built"))
    done = site.build()
    assert done.returncode == 0, done.stdout + done.stderr
    return site


@pytest.mark.parametrize("python", PYTHONS)
def test_all_steps_with_a_hostile_caller(python: str, tmp_path: Path) -> None:
    site = make_site(tmp_path, python, name=SPECIAL)
    old = tmp_path / "old"
    (old / "tinyone").mkdir(parents=True)
    (old / "tinyone" / "__init__.py").write_text("raise SystemExit('poison')", encoding="utf-8")
    configuration = tmp_path / "home" / ".config" / "pip" / "pip.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[install]\ntarget = /nowhere\n[global]\nno-binary = :all:\n")
    done = site.build(
        HOME=str(tmp_path / "home"),
        PYTHONPATH=str(old),
        PYTHONHOME="/nowhere",
        PIP_TARGET="/nowhere",
        PIP_REQUIRE_VIRTUALENV="0",
        VIRTUAL_ENV="/nowhere",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.marks() == {f"{step}.done" for step in STEPS}
    assert "3 of 3 " in done.stdout
    record = "import json, os, distributed_dl_training as d; f = os.path.dirname(d.__file__); "
    told = site.python(record + "print(open(os.path.join(f, 'build_record.json')).read())")
    assert json.loads(told) == {"tinyone": "1.0"}
    # pip's cache is not used; what is kept is ours.
    assert [each.name for each in (tmp_path / "home" / ".cache").iterdir()] == ["envbuild"]
    compiled = "import tinyone, os; print(*os.listdir(os.path.dirname(tinyone.__cached__)))"
    assert site.python(f"import sys; sys.dont_write_bytecode = True; {compiled}")
    tools = "import importlib.util as u; print(u.find_spec('tiny_backend'))"
    assert site.python(tools) == "None"
    again = site.build()
    assert again.returncode == 0
    assert again.stderr.splitlines() == [f"== {step}: done before" for step in STEPS]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.long
def test_a_dollar_in_the_path_works_or_is_refused(python: str, tmp_path: Path) -> None:
    asked = "import sys; print(int(sys.version_info >= (3, 10)))"
    is_new = run([python, "-c", asked], env=clean_env(), cwd=tmp_path).stdout.strip() == "1"
    site = make_site(tmp_path, python, name="root of $HOME")
    done = site.build()
    if is_new:
        assert done.returncode == 0, done.stdout + done.stderr
        assert site.python("import tinyone; print(tinyone.__file__)").startswith(str(site.prefix))
    else:
        assert done.returncode == 1
        assert "Python before 3.10 " in done.stderr
        assert not site.prefix.exists()


def test_list_help_and_unknown_steps(built: Site) -> None:
    listed = built.build("--list")
    assert listed.stdout.startswith("venv\t")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == list(STEPS)
    for words in (("nonsense",), ("venv fetch",), ("venv", "nonsense"), ("",), ("--all",)):
        refused = built.build(*words)
        assert refused.returncode == 2
        assert f" '{words[-1]}'; " in refused.stderr
        assert "\nvenv\t" in refused.stderr
        assert refused.stdout == ""


def test_a_step_that_runs_again_makes_the_later_ones_due(built: Site) -> None:
    done = built.build("install")
    assert done.returncode == 0, done.stderr
    assert built.marks() == {"venv.done", "fetch.done", "install.done"}
    rest = built.build()
    assert rest.returncode == 0, rest.stderr
    ran = [line for line in rest.stderr.splitlines() if line.startswith("== ")]
    assert ran[-2:] == ["== runtime", "== check"]


def copied(site: Site, tmp_path: Path) -> Site:
    """Return a copy of the build folder and its wheels; the prefix stays where it is."""
    shutil.copytree(site.folder, tmp_path / "copy of build", symlinks=True)
    return Site(tmp_path / "copy of build", site.prefix, site.wheels)


def test_a_copied_build_folder_builds_without_its_sources(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    shutil.move(copy.wheels, tmp_path / "away")
    try:
        shutil.rmtree(copy.folder / "state")
        done = copy.build()
    finally:
        shutil.move(tmp_path / "away", copy.wheels)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in wheelhouse/" in done.stderr


def test_marks_of_another_lock_count_for_nothing(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    (copy.folder / "state" / "check.done").write_text("0" * 64, encoding="utf-8")
    done = copy.build()
    assert done.stderr.splitlines()[-1] == "== check"


def test_a_fetched_file_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    make_wheel(site.wheels, "tinyone", "1.0", module("1.0 but evil"))
    done = site.build()
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "step fetch failed" in done.stderr
    assert site.marks() == {"venv.done"}


@pytest.mark.long
def test_a_file_that_went_bad_is_refused_and_fetched_again(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    wheel = copy.folder / "wheelhouse" / "tinyone-1.0-py3-none-any.whl"
    wheel.write_bytes(b"broken")
    refused = copy.build("install")
    assert refused.returncode != 0
    assert "step install failed" in refused.stderr
    mended = copy.build("fetch", "install", "runtime", "check")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert "new virtualenv" in mended.stderr


def test_an_install_that_was_killed_half_way_is_started_over(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    # What a pip leaves that was killed: the metadata's folder without its list of files.
    where = "import tinyone, os; print(os.path.dirname(os.path.dirname(tinyone.__file__)))"
    site_packages = Path(copy.python(where))
    for folder in site_packages.glob("*.dist-info"):
        if folder.name.startswith(("tiny", "distributed")):
            (folder / "RECORD").unlink()
    (copy.folder / "state" / "install.begun").touch()
    done = copy.build("install", "runtime", "check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_runtime_install_that_was_killed_is_written_over(built: Site) -> None:
    where = "import tinyone, os; print(os.path.dirname(os.path.dirname(tinyone.__file__)))"
    info = Path(built.python(where)) / "distributed_dl_training-0.1.0.dist-info"
    (info / "RECORD").unlink()
    done = built.build("runtime", "check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (info / "RECORD").is_file()


def test_a_published_prefix_is_not_changed(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    mode = copy.prefix.stat().st_mode
    copy.prefix.chmod(0o555)
    try:
        for step in ("venv", "install", "runtime"):
            refused = copy.build(step)
            assert refused.returncode == 1
            assert "published and read-only" in refused.stderr
        assert copy.build("check").returncode == 0
    finally:
        copy.prefix.chmod(mode)


def test_a_folder_with_a_colon_is_refused(built: Site, tmp_path: Path) -> None:
    shutil.copytree(built.folder, tmp_path / "a:b")
    refused = Site(tmp_path / "a:b", built.prefix, built.wheels).build()
    assert refused.returncode == 2
    assert "contains ':'" in refused.stderr


def test_shell_runs_commands_in_the_steps_environment(built: Site) -> None:
    code = "import sys, os; print(sys.prefix, os.environ['TINY'], os.getcwd(), sep='|')"
    done = run(
        [need("bash"), str(built.folder / "shell.sh"), "python", "-c", code],
        env=clean_env(PYTHONPATH="/old"),
        cwd=Path("/"),
    )
    assert done.stdout == f"{built.prefix}|yes|{built.folder}\n"


def expect_check_to_fail(site: Site, *lines: str) -> None:
    done = site.build("check")
    assert done.returncode == 1, done.stdout
    for line in lines:
        assert f"{line}\n" in done.stderr
    assert "check.done" not in site.marks()


def test_what_was_imported_just_before_counts_once(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    before = copy.folder / "imported.json"
    before.write_text(json.dumps({"tinyone": "/elsewhere/tinyone.py"}))
    expect_check_to_fail(copy, "/elsewhere/tinyone.py")
    assert not before.exists()
    assert copy.build("check").returncode == 0


def test_a_file_that_was_lost_is_named(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    where = Path(copy.python("import tinyone; print(tinyone.__file__)"))
    text = where.read_text(encoding="utf-8")
    try:
        where.write_text("import nothing_like_that\n", encoding="utf-8")
        expect_check_to_fail(copy, "import tinyone fails")
        where.write_text("import os; os.kill(os.getpid(), 4)\n", encoding="utf-8")
        expect_check_to_fail(copy, "by signal 4")
    finally:
        where.write_text(text, encoding="utf-8")


def test_a_pth_file_that_puts_a_copy_in_front_is_named(built: Site, tmp_path: Path) -> None:
    copy = copied(built, tmp_path)
    other = tmp_path / "other"
    (other / "tinyone").mkdir(parents=True)
    (other / "tinyone" / "__init__.py").touch()
    # A line of code may put a folder first, a plain line puts it last.
    site_packages = Path(copy.python("import tinyone; print(tinyone.__file__)")).parent.parent
    pth = site_packages / "front.pth"
    pth.write_text(f"{other}\nimport sys; sys.path.insert(0, {str(other)!r})\n", encoding="utf-8")
    try:
        expect_check_to_fail(
            copy,
            f" {other}/tinyone/__init__.py",
            f"  {other} is added by {pth}",
        )
    finally:
        pth.unlink()


def write_modules(system: ModuleSystem, tmp_path: Path, bundle: Path) -> Modules:
    """Write a tree with a module that puts *bundle* into PYTHONPATH; return how to load it."""
    if system == "lmod":
        init = lmod_folder() / "init" / "bash"
        ending, text = ".lua", 'prepend_path("PYTHONPATH", {})\n'
    else:
        init = tmp_path / "init.sh"
        command = f"{need('tclsh')} {modulecmd()} bash"
        init.write_text(f'module() {{ eval "$({command} "$@")"; }}\n', encoding="utf-8")
        ending, text = "", "#%Module1.0\nprepend-path PYTHONPATH {}\n"
    for name, path in {"Bundle/2": bundle, "Other/1": Path("/apps/other")}.items():
        (tmp_path / "tree" / f"{name}{ending}").parent.mkdir(parents=True)
        (tmp_path / "tree" / f"{name}{ending}").write_text(text.format(json.dumps(str(path))))
    loads = ("Bundle/2", "Other/1")
    trees = (str(tmp_path / "tree"),)
    return Modules(system=system, init=str(init), trees=trees, loads=loads, final=loads)


@pytest.mark.parametrize("system", ["lmod", "tcl"])
@pytest.mark.sample(1)
def test_a_modules_copy_that_shadows_a_pin_is_an_error_that_names_it(
    system: ModuleSystem, tmp_path: Path
) -> None:
    bundle = tmp_path / "apps" / "sci py"
    wheel = make_wheel(tmp_path, "tinyone", "0.9", module("0.9"))
    shutil.unpack_archive(tmp_path / wheel.filename, bundle, "zip")
    modules = write_modules(system, tmp_path, bundle)
    site = make_site(tmp_path, modules=modules)
    expect_shadowed(site.build(), f"0.9 in {bundle}", bundle)
    # A copy that somebody unpacked by hand says no version.
    shutil.rmtree(bundle / "tinyone-0.9.dist-info")
    expect_shadowed(site.build("check"), f"{bundle}/tinyone/__init__.py", bundle)


def expect_shadowed(done: subprocess.CompletedProcess[str], found: str, bundle: Path) -> None:
    assert done.returncode == 1
    assert f"Python finds {found}\n" in done.stderr
    assert f"  {bundle} is in PYTHONPATH, " in done.stderr
    assert "module Bundle/2\n" in done.stderr
    assert "2 of 3 " in done.stdout
    assert "step check failed" in done.stderr


@pytest.mark.long
def test_a_pin_is_installed_even_where_the_base_python_has_it(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    assert site.build("venv").returncode == 0
    base = tmp_path / "base"
    for wheel in site.wheels.glob("tiny*.whl"):
        shutil.unpack_archive(wheel, base, "zip")
    # To pip and to Python a folder on the path, behind the virtualenv's own, like the base's.
    where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    (Path(site.python(where)) / "base.pth").write_text(f"{base}\n", encoding="utf-8")
    assert site.python("import tinyone; print(tinyone.__file__)").startswith(str(base))
    expect_check_to_fail(
        site,
        f"not installed in {site.prefix}",
        f"  1.0 is in {base}",
    )
    done = site.build("fetch", "install", "runtime", "check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.python("import tinyone; print(tinyone.__file__)").startswith(str(site.prefix))

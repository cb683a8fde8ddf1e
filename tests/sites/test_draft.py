"""The draft of a site document: what a machine shows, in a document that loads."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml

from envbuilder.commands.sites import draft_site
from envbuilder.documents.load import load_site
from envbuilder.errors import MissingToolError, UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.machine.modules.shell import start
from envbuilder.model.site import Site, SiteLauncher
from envbuilder.reporter import Report
from envbuilder.workflow.context import Context
from envbuilder.workflow.entries import entries
from tests.shipped import read_shipped

from .site_tools import base_tree, environ, lmod_init


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_shipped().value


def tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def drafted(folder: Path, known: Knowledge, variables: dict[str, str]) -> tuple[str, Site]:
    reporter = Report(out=io.StringIO(), err=io.StringIO())
    context = Context(variables, folder, lambda: datetime.now(timezone.utc), reporter)
    text = draft_site(context, "our-cluster.yaml")
    path = folder / "our-cluster.yaml"
    path.write_text(text)
    return text, load_site(path, known, entries()).value


def test_it_loads_and_holds_what_was_found(tmp_path: Path, known: Knowledge) -> None:
    text, site = drafted(tmp_path, known, environ())
    assert site.name == "our-cluster"
    assert site.facts.kernel is not None
    assert site.facts.glibc is not None
    assert "# base: " in text


def test_a_comment_is_a_key_once_its_mark_is_gone(tmp_path: Path, known: Knowledge) -> None:
    text, _ = drafted(tmp_path, known, environ())
    marked = ("#   gpu: ", "#   network: ")
    lines = [
        line.removeprefix("# ") if line.startswith(marked) else line for line in text.splitlines()
    ]
    plain = yaml.safe_load("\n".join(lines))
    assert plain["facts"]["gpu"] == ["sm_70"]
    assert "network" in plain["facts"]


def test_slurm_and_what_its_srun_offers(tmp_path: Path, known: Knowledge) -> None:
    tool(tmp_path / "bin", "sbatch", "echo slurm 22.05")
    # As Slurm 23.11 says it.
    offers = "MPI plugin types are...\n\tnone\n\tpmix\n\tcray_shasta\n\tpmi2\n"
    offers += "specific pmix plugin versions available: pmix_v4,pmix_v5"
    tool(tmp_path / "bin", "srun", f"echo '{offers}' >&2")
    variables = environ(PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    _, site = drafted(tmp_path, known, variables)
    assert site.scheduler == "slurm"
    assert site.launcher == SiteLauncher(kind="srun", command=("srun", "--mpi=pmix"))
    assert site.facts.pmi == ("pmi2", "pmix", "pmix_v4", "pmix_v5")


def test_an_srun_without_a_protocol(tmp_path: Path, known: Knowledge) -> None:
    tool(tmp_path / "bin", "sbatch", "exit 0")
    tool(tmp_path / "bin", "srun", "exit 1")
    variables = environ(PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    _, site = drafted(tmp_path, known, variables)
    assert site.launcher == SiteLauncher(kind="srun", command=("srun",))


def without_schedulers(folder: Path) -> Path:
    """Return a folder with the system's programs but for a real scheduler's."""
    programs = folder / "programs"
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in ("sbatch", "srun", "bsub", "qsub"):
            (programs / program.name).symlink_to(program)
    return programs


def test_lsf_with_jsrun(tmp_path: Path, known: Knowledge) -> None:
    tool(tmp_path / "bin", "bsub", "exit 0")
    tool(tmp_path / "bin", "jsrun", "exit 0")
    variables = environ(PATH=f"{tmp_path}/bin:{without_schedulers(tmp_path)}")
    _, site = drafted(tmp_path, known, variables)
    assert site.scheduler == "lsf"
    assert site.launcher == SiteLauncher(kind="jsrun", command=("jsrun",))


@pytest.mark.parametrize(
    ("version", "scheduler"), [("pbs_version = 2022.1.1", "pbs"), ("Version: 6.1.2", None)]
)
def test_the_qsub_of_pbs_and_of_others(
    version: str, scheduler: str | None, tmp_path: Path, known: Knowledge
) -> None:
    tool(tmp_path / "bin", "qsub", f"echo {version}")
    variables = environ(PATH=f"{tmp_path}/bin:{without_schedulers(tmp_path)}")
    text, site = drafted(tmp_path, known, variables)
    assert site.scheduler == scheduler
    assert ("\n# scheduler: " in text) == (scheduler is None)


def test_the_gpu_of_this_node(tmp_path: Path, known: Knowledge) -> None:
    tool(
        tmp_path / "bin",
        "nvidia-smi",
        'case "$*" in *compute_cap*) printf "7.0\\n7.0\\n";; *) echo 440.33.01;; esac',
    )
    variables = environ(PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    text, site = drafted(tmp_path, known, variables)
    assert "#   gpu: [sm_70]" in text
    if not Path("/proc/driver/nvidia/version").exists():
        assert site.facts.driver == "440.33.01"


@pytest.mark.integration
def test_the_trees_before_any_module_is_loaded(tmp_path: Path, known: Knowledge) -> None:
    init = lmod_init()
    base, opened = base_tree("taurus-ml"), base_tree("taurus-ml").parents[1] / "ml" / "all"
    # As the environment of a shell in which modenv/ml is loaded.
    variables = environ(MODULEPATH=f"{base}", LOADEDMODULES="modenv/ml")
    text, site = drafted(tmp_path, known, variables)
    assert site.module_system == "lmod"
    assert site.module_init == init
    assert site.module_trees == (str(base),)
    assert str(opened) not in text
    assert site.snapshot == "our-cluster.snapshot.json"


@pytest.mark.integration
def test_without_trees_it_says_so(tmp_path: Path, known: Knowledge) -> None:
    lmod_init()
    text, site = drafted(tmp_path, known, environ(MODULEPATH=""))
    assert site.module_trees == ()
    assert "# module-trees: [/path]" in text


def test_a_broken_module_command_is_told_and_not_an_empty_modulepath(tmp_path: Path) -> None:
    """As Lmod without its Tcl library: every call fails on stderr and returns 0."""
    said = "lua: error loading module 'tcl2lua': libtcl8.6.so: cannot open shared object file"
    init = tmp_path / "init"
    init.write_text(f'module() {{ echo "{said}" >&2; }}\n', encoding="utf-8")
    site = Site(
        schema_=1,
        name="broken",
        summary="A module system that lacks a library",
        arch=("x86_64",),
        module_system="lmod",
        module_init=str(init),
        module_trees=(str(tmp_path),),
    )
    with pytest.raises(MissingToolError) as caught:
        start(site, {"PATH": "/usr/bin:/bin"})
    assert caught.value.id == "modules.trees-not-used"
    assert f"source {init}; module --version" in caught.value.problems[0].hints[0]


def test_an_init_file_that_ends_the_shell_is_no_module_system(tmp_path: Path) -> None:
    (tmp_path / "init").write_text("echo goodbye >&2\nexit 0\n")
    site = Site(
        schema_=1,
        name="here",
        summary="A site of the tests",
        arch=("x86_64",),
        module_system="lmod",
        module_init=str(tmp_path / "init"),
    )
    with pytest.raises(UsageError) as raised:
        start(site, {"PATH": "/usr/bin:/bin"})
    assert raised.value.id == "modules.start-failed"

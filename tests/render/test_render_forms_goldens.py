"""Every form as a whole: in full for one plan without modules and one with, by hash for the others.

ENVBUILD_UPDATE_GOLDENS=1 rewrites goldens, hashes and modulefiles/; read the difference before
committing it. modulefiles/ has the trees in Lua; those in Tcl are compared by hash.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from render_cases import CASES, Case, prefix_of
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.cli import app
from envbuilder.commands.render import forms
from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.job import Job
from envbuilder.render.subject import RenderInput, UnlockedPlan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.texts import image_parts, job_parts
from tests import goldens
from tests.shipped import read_shipped

pytestmark = pytest.mark.thorough

GOLDENS = Path(__file__).parent / "goldens" / "forms"
HASHES = GOLDENS / "SHA256SUMS"
MODULEFILES = Path(__file__).parents[2] / "modulefiles"
TCL_HASHES = GOLDENS.parent / "modulefiles"

# Where a site's staff would put roots: below what the site's documentation calls project space.
BASES = {
    "debian-ppc64le": "/opt/envbuild",
    "taurus-ml": "/projects/envbuild",
    "taurus-alpha": "/projects/envbuild",
    "taurus-scs5": "/projects/envbuild",
    "summit": "/ccs/proj/envbuild",
}
FORMS = forms()
PROGRAM = ("mpiexec", "-n", "2", "python", "my_program.py")


def shipped() -> Iterator[tuple[str, str, str]]:
    """Yield recipe, site and architecture of what the shipped recipes are documented for."""
    for path in sorted(data.RECIPES.glob("*.yaml")):
        documented = yaml.safe_load(path.read_text(encoding="utf-8")).get("documented-for", {})
        for arch, site in sorted(documented.items()):
            yield path.stem, site, arch


SITES = sorted({site for _, site, _ in shipped()} - {"taurus-scs5"})


def root(site: str, arch: str) -> str:
    return f"{BASES[site]}/{site}/{arch}"


def run(form: str, recipe: str, site: str, arch: str) -> tuple[int, str]:
    """Return exit code and output of ``envbuild render``; of a refusal, what it says."""
    words = ["render", recipe, "--site", site, "--arch", arch, "--root", root(site, arch)]
    done = CliRunner().invoke(app, [*words, "--as", form], env={"COLUMNS": "80"})
    return done.exit_code, done.stdout if done.exit_code == 0 else done.stderr


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read_shipped().value


def forms_of(case: Case, knowledge: Knowledge, *, locked: bool) -> dict[str, str]:
    """Return the text of every form, or its refusal, by file name."""
    job = Job(case.lock.plan.recipe, nodes=1, ranks_per_node=2, minutes=30)
    subject = RenderInput(
        source=case.lock if locked else UnlockedPlan(case.lock.plan),
        places=case.places,
        knowledge=knowledge,
        prefix=prefix_of(case.lock.plan),
        runtimes=RUNTIMES,
        tree=Path("/software/modulefiles"),
    )
    texts = {}
    for form in FORMS:
        file = FORMS[form].file_of(case.lock.plan)
        try:
            if FORMS[form].needs == "planned-image":
                subject = replace(subject, image=image_parts(case.lock.plan, knowledge))
            elif FORMS[form].needs == "job":
                subject = replace(subject, job=job_parts(form, job, PROGRAM))
            texts[file] = FORMS[form].render(subject)
        except UsageError as error:
            texts[f"{file}.refused"] = f"{error}\n"
    return texts


@pytest.mark.parametrize("locked", [True, False], ids=["lock", "plan"])
def test_allreduce_on_a_machine_without_modules(locked: bool, knowledge: Knowledge) -> None:
    folder = GOLDENS / f"allreduce-local-{'lock' if locked else 'plan'}"
    goldens.compare_folder(folder, forms_of(CASES[0], knowledge, locked=locked))


def test_horovod_nccl_on_taurus_ml() -> None:
    texts = {}
    for form in FORMS:
        code, text = run(form, "horovod-nccl", "taurus-ml", "ppc64le")
        name = FORMS[form].file.format(name="horovod-nccl")
        # A refusal without the lines before it, which say how the site was chosen.
        said = text if code == 0 else text[text.index("error: ") :]
        texts[name if code == 0 else f"{name}.refused"] = said
        assert code in (0, 2)
    goldens.compare_folder(GOLDENS / "horovod-nccl-taurus-ml", texts)
    # Its image would need TensorFlow and Open MPI that only the site has.
    assert [name for name in texts if name.endswith(".refused")] == [
        "conda-explicit.txt.refused",
        "conda-lock.yml.refused",
        "pixi.lock.refused",
        "horovod-nccl.def.refused",
        "Dockerfile.refused",
    ]


def test_all_other_combinations_by_hash(knowledge: Knowledge) -> None:
    texts = {
        f"{case.name}-{'lock' if locked else 'plan'}/{name}": text
        for case in CASES[1:]
        for locked in (True, False)
        for name, text in forms_of(case, knowledge, locked=locked).items()
    }
    compare_hashes(HASHES, texts)


def compare_hashes(file: Path, texts: Mapping[str, str]) -> None:
    """Compare the sha256 of texts with a list of sha256sum."""
    sums = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    lines = [f"{number}  {name}\n" for name, number in sorted(sums.items())]
    goldens.compare(file, "".join(lines))


@cache
def tree(site: str) -> dict[str, str]:
    """Return what ``envbuild module render`` writes for a site: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--site", site, "--base", BASES[site], "--output", folder]
        done = CliRunner().invoke(app, ["module", "render", *words], env={"COLUMNS": "80"})
        assert done.exit_code == 0, done.stderr
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_text("utf-8") for path in files}


@pytest.mark.parametrize("site", SITES)
def test_the_modulefiles_that_are_checked_in(site: str) -> None:
    """A recipe that cannot be planned there has none; another test says which those are."""
    texts = {name: text for name, text in tree(site).items() if name.startswith("lua/")}
    goldens.compare_folder(MODULEFILES / site, texts)


@pytest.mark.parametrize("site", SITES)
def test_the_modulefiles_in_tcl_by_hash(site: str) -> None:
    texts = {name: text for name, text in tree(site).items() if name.startswith("tcl/")}
    compare_hashes(TCL_HASHES / f"{site}.sha256", texts)


def test_every_documented_site_has_its_tree() -> None:
    assert sorted(path.name for path in MODULEFILES.iterdir()) == sorted(SITES)
    assert sorted(path.stem for path in TCL_HASHES.iterdir()) == sorted(SITES)


def test_a_module_of_the_tree_is_the_form() -> None:
    code, text = run("lua", "ddl", "summit", "ppc64le")
    first, _, rest = text.partition("\n")
    assert (code, rest) == (0, tree("summit")["lua/ddl/1.lua"])
    assert first.startswith("-- ddl ")

"""An environment keeps the documents that it was built from, and the user's roots are known."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.base import canonical_json
from envbuilder.cli import app
from envbuilder.cli.session import open_session
from envbuilder.errors import UsageError
from envbuilder.root.used import remember_root, used_roots
from envbuilder.target_tools.root.layout import Home
from envbuilder.target_tools.root.store import open_root
from envbuilder.workflow.context import Context
from envbuilder.workflow.inputs import input_texts, with_inputs
from envbuilder.workflow.load import load, plan_recipe
from envbuilder.workflow.plan_options import PlanOptions
from tests.cli.published import PROGRAMS, planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

SITE = """\
schema: 1
name: ours
summary: A cluster that ships with nothing
arch: [x86_64, aarch64, ppc64le]
launcher: {kind: srun, command: [srun]}
scheduler: slurm
snapshot: ours.snapshot.json
"""


def run(*words: object, **env: str | None) -> Result:
    names = ("SLURM_JOB_ID", "LSB_JOBID", "ENVBUILD_SITE", "ENVBUILD_ROOT")
    variables = {**dict.fromkeys(names), **env, "COLUMNS": "80"}
    return CliRunner().invoke(app, [str(word) for word in words], env=variables)


def context() -> Context:
    return open_session(as_json=True, recipes=None).context


def texts_of(choice: PlanOptions) -> dict[str, str]:
    inputs = load(choice, context())
    return input_texts(inputs, plan_recipe(inputs, context()).plan)


def write(build: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = build / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Documents:
    """A recipe with the name of a shipped one, and a site; both are given by path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recipe, self.site = folder / "allreduce.yaml", folder / "ours.yaml"
        text = run("recipes", "show", "allreduce").stdout
        self.recipe.write_text(text.replace('mpi4py: ">=4"', 'mpi4py: "==4.0.*"'), "utf-8")
        self.site.write_text(SITE, encoding="utf-8")
        snapshot = load(PlanOptions("allreduce", site="local"), context()).snapshot
        (folder / "ours.snapshot.json").write_text(canonical_json(snapshot.plain()), "utf-8")

    @property
    def choice(self) -> PlanOptions:
        return PlanOptions(str(self.recipe), site=str(self.site))


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    (tmp_path / "mine").mkdir()
    return Documents(tmp_path / "mine")


class Environment:
    """An environment that was built from documents that are gone."""

    def __init__(self, root: Path, documents: Documents) -> None:
        self.root = root
        plan = planned(str(documents.recipe), "--site", str(documents.site))
        version = publish_plan(root, plan, PROGRAMS)
        self.home, self.id = Home(root, "allreduce"), version.id
        self.build = self.home.build(version.id)
        write(self.build, texts_of(documents.choice))
        self.recipe_text = documents.recipe.read_text(encoding="utf-8")
        shutil.rmtree(documents.folder)

    def __call__(self, verb: str, *words: object) -> Result:
        return run(verb, "--root", self.root, *words)


@pytest.fixture
def environment(documents: Documents, tmp_path: Path) -> Environment:
    return Environment(tmp_path / "root", documents)


def test_documents_given_by_path_are_found_again(environment: Environment) -> None:
    known = with_inputs(context(), environment.home, environment.id)
    inputs = load(PlanOptions("allreduce", site="ours"), known)
    assert inputs.recipe.value.stack["mpi4py"] == "==4.0.*"
    assert inputs.site.name == "ours"
    assert inputs.snapshot.interpreters


def test_verbs_use_the_documents_that_the_environment_keeps(environment: Environment) -> None:
    live = environment("diff", "allreduce", "live", "--json")
    assert live.exit_code == 0, live.stderr
    why = environment("why", "mpi4py", "allreduce", "--json")
    assert why.exit_code == 0, why.stderr
    assert "from the lock alone" not in why.stderr
    assert json.loads(why.stdout)["environment"] == "allreduce/1"
    launch = environment("launch", "allreduce", "--ranks", "2", "--nodes", "1", "--", "train.py")
    assert launch.exit_code == 0, launch.stderr
    assert "srun" in launch.stdout
    assert environment("render", "allreduce", "--as", "slurm").exit_code == 0


def test_info_prints_them(environment: Environment) -> None:
    assert environment("info", "allreduce", "--as", "recipe").stdout == environment.recipe_text
    assert environment("info", "allreduce", "--as", "site").stdout == SITE
    shutil.rmtree(environment.build / "inputs")
    missing = environment("info", "allreduce", "--as", "site", "--json")
    assert (missing.exit_code, problem_ids(missing.stdout)) == (2, ["environment.no-input"])


def test_a_shipped_recipe_that_is_newer_counts_before_the_kept_one(tmp_path: Path) -> None:
    texts = texts_of(PlanOptions("allreduce", site="local"))
    assert [*texts] == ["inputs/named/allreduce.yaml"]
    old = texts["inputs/named/allreduce.yaml"].replace('mpi4py: ">=4"', 'mpi4py: "==4.0.*"')
    home = Home(tmp_path, "allreduce")
    write(home.build("0" * 12), {"inputs/named/allreduce.yaml": old})
    known = with_inputs(context(), home, "0" * 12)
    inputs = load(PlanOptions("allreduce", site="local"), known)
    assert inputs.recipe.value.stack["mpi4py"] == ">=4"


def test_a_document_that_others_may_write_does_not_count(environment: Environment) -> None:
    site = environment.build / "inputs/given/sites/ours.yaml"
    site.chmod(0o666)
    done = environment("launch", "allreduce", "--ranks", "2", "--nodes", "1", "--", "train.py")
    assert done.exit_code == 2
    assert f"warning: ignored {environment.build}/inputs/given: " in done.stderr


def test_a_document_that_changes_meanwhile_is_refused(documents: Documents) -> None:
    inputs = load(documents.choice, context())
    plan = plan_recipe(inputs, context()).plan
    documents.site.write_text(SITE + "# another text\n", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        input_texts(inputs, plan)
    assert raised.value.id == "document.changed"


def test_documents_of_another_text_than_the_lock_s_are_not_kept(documents: Documents) -> None:
    plan = plan_recipe(load(documents.choice, context()), context()).plan
    for file in (documents.recipe, documents.site):
        file.write_text(file.read_text(encoding="utf-8") + "# another text\n", encoding="utf-8")
    assert input_texts(load(documents.choice, context()), plan) == {}


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """A user whose sites have no roots."""
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_DATA_HOME": str(tmp_path / "data")}


def test_the_root_that_was_used_is_found(state: dict[str, str], tmp_path: Path) -> None:
    assert run("list", **state).exit_code == 2
    for name in ("one", "gone"):
        open_root(tmp_path / name, "local", platform.machine())
        remember_root(tmp_path / name, state)
    shutil.rmtree(tmp_path / "gone")
    done = run("list", "--json", **state)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["root"] == str(tmp_path / "one")
    assert str(tmp_path / "one") in done.stderr
    open_root(tmp_path / "two", "local", platform.machine())
    remember_root(tmp_path / "two", state)
    several = run("list", "--json", **state)
    assert (several.exit_code, problem_ids(several.stdout)) == (2, ["root.ambiguous"])
    assert str(tmp_path / "one") in several.stderr
    # A root that is named, or the site's own, counts before.
    assert run("list", "--root", tmp_path / "one", **state).exit_code == 0


def test_the_list_of_roots_is_short_and_may_be_damaged(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    for number in range(60):
        remember_root(Path(f"/roots/{number}"), state)
    assert used_roots(state)[0] == Path("/roots/59")
    assert len(used_roots(state)) == 50
    remember_root(Path("/roots/30"), state)
    assert used_roots(state)[:2] == (Path("/roots/30"), Path("/roots/59"))
    (tmp_path / "envbuild" / "roots").write_bytes(b"\xff\0not a path\n")
    assert used_roots(state) == ()
    assert used_roots({}) == ()

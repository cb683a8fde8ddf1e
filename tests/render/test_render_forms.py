"""What environment.yml, requirements, definition file and Dockerfile say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from form_grammars import MATCH_SPEC, parse_definition
from form_tools import PYTHON, hostile_plan, parsed_dockerfile, pin, render
from render_cases import CASES, TAURUS, make_plan, shipped_knowledge, standard_edits

from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.plan import Edit, Plan, SourceBuild

PLAIN, MODULES, HOSTILE_CASE, SWAP = CASES


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return shipped_knowledge()


class TestEnvironmentYml:
    def load(self, plan: Plan, knowledge: Knowledge) -> Any:
        return yaml.safe_load(render("environment.yml", plan, knowledge))

    def test_it_is_what_conda_env_create_reads(self, knowledge: Knowledge) -> None:
        read = self.load(PLAIN.lock.plan, knowledge)
        assert read == {
            "name": "allreduce",
            "channels": ["conda-forge", "nodefaults"],
            "dependencies": ["python=3.11", "numpy==1.26.4", "mpich==5.0.2"],
            "variables": {"PYTHONNOUSERSITE": "1"},
        }

    @pytest.mark.parametrize("case", [PLAIN, MODULES, SWAP], ids=lambda case: case.name)
    def test_every_dependency_is_a_match_spec(self, case: Any, knowledge: Knowledge) -> None:
        read = self.load(case.lock.plan, knowledge)
        specs = [each for each in read["dependencies"] if isinstance(each, str)]
        assert specs
        assert [spec for spec in specs if not MATCH_SPEC.fullmatch(spec)] == []

    @pytest.mark.parametrize("wrong", ["numpy = 1", "numpy==", "numpy==1-2", "Numpy", "a b", "=1"])
    def test_the_grammar_can_refuse(self, wrong: str) -> None:
        assert not MATCH_SPEC.fullmatch(wrong)

    def test_local_versions_and_hyphens_are_not_conda_s(self, knowledge: Knowledge) -> None:
        plan = make_plan(
            pins=(PYTHON, pin("pytorch", "2.13.0+cpu", "pip"), pin("cmake", "3.1-rc1", "pip"))
        )
        assert self.load(plan, knowledge)["dependencies"][1:] == [
            "pytorch==2.13.0",
            "cmake==3.1_rc1",
        ]

    def test_pip_takes_what_only_pip_has(self, knowledge: Knowledge) -> None:
        only_pip = knowledge.components["numpy"].model_copy(update={"conda": None})
        components = {**knowledge.components, "numpy": only_pip}
        plan = make_plan(packages=("pandas>=2",), pip_indexes=("https://index.example/simple",))
        read = self.load(plan, knowledge.model_copy(update={"components": components}))
        assert read["dependencies"] == [
            "python=3.11",
            "mpich==5.0.2",
            "pip",
            {"pip": ["--index-url https://index.example/simple", "numpy==1.26.4", "pandas>=2"]},
        ]

    def test_what_modules_bring_is_left_out_and_named(self, knowledge: Knowledge) -> None:
        nccl = pin("nccl", "2.3.7", "module", "NCCL/2.3.7-fosscuda-2018b")
        plan = make_plan(
            modules=TAURUS, pins=(PYTHON, nccl, pin("numpy", "1.26.4", "pip", "numpy"))
        )
        text = render("environment.yml", plan, knowledge)
        # With modules, a conda package could bring an MPI or CUDA of its own.
        assert yaml.safe_load(text)["dependencies"] == [
            "python=3.10",
            "pip",
            {"pip": ["numpy==1.26.4"]},
        ]
        assert "#   module use /sw/modules/env\n" in text
        assert text.index("module load modenv/ml") < text.index(
            "module unload OpenMPI/3.1.1-gcccuda-2018b"
        )
        assert "#   nccl@2.3.7 <- module:NCCL/2.3.7-fosscuda-2018b\n" in text

    def test_what_is_built_comes_with_its_command(self, knowledge: Knowledge) -> None:
        build = SourceBuild(
            component="horovod",
            version="0.28.1",
            flags={"HOROVOD_WITH_MPI": "1", "HOROVOD_MPICXX_SHOW": "a b'c"},
            patches=("horovod-0.28.1-torch-cxx17",),
        )
        plan = make_plan(pins=(PYTHON, pin("horovod", "0.28.1", "build")), builds=(build,))
        text = render("environment.yml", plan, knowledge)
        assert yaml.safe_load(text)["dependencies"] == ["python=3.10"]
        assert (
            "#   env HOROVOD_WITH_MPI=1 'HOROVOD_MPICXX_SHOW=a b'\"'\"'c' pip install --no-deps "
            "--no-build-isolation --no-cache-dir --no-binary=horovod horovod==0.28.1\n"
        ) in text
        assert "with the patch horovod-0.28.1-torch-cxx17" in text

    def test_what_has_no_conda_package_is_named_as_yours_to_bring(
        self, knowledge: Knowledge
    ) -> None:
        """The kernel's side of InfiniBand is in no channel; what a module brings comes from it."""
        mine = pin("mofed", "5.4", "system"), pin("cuda", "11.7.0", "module")
        text = render("environment.yml", make_plan(pins=(PYTHON, *mine)), knowledge)
        assert yaml.safe_load(text)["dependencies"] == ["python=3.10"]
        outside = " ".join(line.lstrip("# ") for line in text.splitlines() if line[:1] == "#")
        assert str(mine[0]) in outside
        assert str(mine[1]) in outside

    @pytest.mark.parametrize("value", ["it's", 'say "x"', "$(x)", "`x`", "a\\b", "a!b", "a\nb"])
    def test_conda_s_activation_never_gets_what_a_shell_would_run(
        self, value: str, knowledge: Knowledge
    ) -> None:
        plan = make_plan(environment=standard_edits(SETTING=value))
        with pytest.raises(UsageError, match="SETTING") as caught:
            render("environment.yml", plan, knowledge)
        assert caught.value.id == "variable.shell-character"

    def test_edits_that_conda_cannot_make_are_named(self, knowledge: Knowledge) -> None:
        edits = (Edit(kind="prepend", name="MANPATH", value="/a b"), Edit(kind="unset", name="X"))
        text = render("environment.yml", make_plan(environment=edits), knowledge)
        assert "#   prepend MANPATH '/a b'\n" in text
        assert "variables" not in yaml.safe_load(text)


class TestRequirements:
    def test_without_a_lock_it_has_the_pins_and_says_why_there_are_no_hashes(
        self, knowledge: Knowledge
    ) -> None:
        plan = make_plan(packages=("pandas>=2",), find_links=("https://wheels.example/",))
        text = render("requirements", plan, knowledge)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert lines == [
            "--find-links https://wheels.example/",
            "numpy==1.26.4",
            "mpich==5.0.2",
            "pandas>=2",
        ]
        assert "without a lock" in text

    def test_with_a_lock_every_line_has_its_hash(self, knowledge: Knowledge) -> None:
        text = render("requirements", PLAIN.lock.plan, knowledge, lock=PLAIN.lock)
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert [line.split(" --hash=sha256:")[0] for line in lines] == [
            "mpich==5.0.2",
            "numpy==1.26.4",
            "torch==2.13.0+cpu",
        ]
        assert "without a lock" not in text

    @pytest.mark.parametrize(
        "name", ["--index-url=https://evil.example", "a\nb", "a; ${X}", "-e ."]
    )
    def test_no_line_is_an_option(self, name: str, knowledge: Knowledge) -> None:
        plan = make_plan(packages=(name,))
        with pytest.raises(UsageError) as caught:
            render("requirements", plan, knowledge)
        assert caught.value.id in ("requirement.invalid-syntax", "requirement.unsafe-character")


class TestDefinition:
    @pytest.mark.parametrize("case", [PLAIN, MODULES, HOSTILE_CASE], ids=lambda case: case.name)
    def test_it_is_one_that_apptainer_reads(self, case: Any, knowledge: Knowledge) -> None:
        text = render("def", case.lock.plan, knowledge)
        read = parse_definition(text)
        assert read.header == {"bootstrap": "docker", "from": "amd64/debian:12"}
        assert list(read.sections) == [
            *("help", "labels", "files", "post", "environment", "runscript", "test"),
        ]
        name = case.lock.plan.recipe
        assert read.labels()["org.opencontainers.image.title"] == name
        assert read.labels()["org.opencontainers.image.description"] == case.lock.plan.summary
        assert read.sections["files"].split() == ["build", f"/opt/envbuild/{name}.build"]

    def test_the_hybrid_model_names_the_mpi_that_the_host_needs(self, knowledge: Knowledge) -> None:
        read = parse_definition(render("def", PLAIN.lock.plan, knowledge))
        assert "mpiexec -n 8 apptainer exec allreduce.sif python" in read.sections["help"]
        assert "MPICH 5.x" in read.sections["help"]

    @pytest.mark.parametrize(
        "wrong",
        [
            "Bootstrap: docker\nFrom: a\n%pots\n",
            "Bootstrap: docker\nFrom: a\nbootstrap: docker\n%post\n",
            "Bootstrap docker\n%post\n",
            "Bootstrap: docker\nFrom: a\n%post\n echo {{ name }}\n",
            "Bootstrap: docker\nFrom: a\n%post\n%help\n%post\n",
        ],
    )
    def test_the_grammar_can_refuse(self, wrong: str) -> None:
        with pytest.raises(ValueError, match=r"section|stage|header|argument"):
            parse_definition(wrong)

    @pytest.mark.parametrize("section", ["post", "environment", "runscript", "test"])
    def test_sh_parses_every_script(self, section: str, knowledge: Knowledge) -> None:
        read = parse_definition(render("def", hostile_plan(), knowledge))
        done = subprocess.run(
            ["sh", "-n"], input=read.sections[section], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


class TestDockerfile:
    def test_the_image_that_runs_has_no_compiler(
        self, knowledge: Knowledge, tmp_path: Path
    ) -> None:
        build = SourceBuild(component="horovod", version="0.28.1")
        plan = make_plan(pins=(PYTHON, pin("openmpi", "4.1.2", "system")), builds=(build,))
        read = parsed_dockerfile(render("dockerfile", plan, knowledge), tmp_path)
        assert read.parent_images == ["amd64/ubuntu:22.04", "amd64/ubuntu:22.04"]
        runs = [each["value"] for each in read.structure if each["instruction"] == "RUN"]
        assert "g++" in runs[0]
        assert "libopenmpi-dev" in runs[0]
        assert re.findall(r"[\w+.-]+", runs[-1].split("recommends")[1].split("&&")[0]) == [
            "openmpi-bin",
            "python3",
        ]
        copies = [each["value"] for each in read.structure if each["instruction"] == "COPY"]
        assert copies[-1] == "--from=build /opt/envbuild/ /opt/envbuild/"

    def test_the_environment_is_that_of_the_prefix(
        self, knowledge: Knowledge, tmp_path: Path
    ) -> None:
        text = render("dockerfile", PLAIN.lock.plan, knowledge)
        read = parsed_dockerfile(text, tmp_path)
        assert read.envs["VIRTUAL_ENV"] == "/opt/envbuild/allreduce"
        assert 'ENV PATH="/opt/envbuild/allreduce/bin${PATH:+:$PATH}"' in text


@pytest.mark.parametrize("form", ["script", "lua", "tcl", "requirements", "def", "dockerfile"])
def test_what_is_rendered_without_a_lock_says_so(form: str, knowledge: Knowledge) -> None:
    plan = PLAIN.lock.plan
    marks = ("not-locked", "without a lock")
    assert any(mark in render(form, plan, knowledge) for mark in marks)
    assert not any(mark in render(form, plan, knowledge, lock=PLAIN.lock) for mark in marks)

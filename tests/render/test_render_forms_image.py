"""What a plan becomes inside an image, and which plans cannot be one."""

from __future__ import annotations

import json

import pytest
from form_tools import PYTHON, pin, render
from render_cases import CASES, make_plan, prefix_of, shipped_knowledge

from envbuilder.errors import UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.plan import Lock, Modules, Pin, Plan, SourceBuild
from envbuilder.model.site import SiteLauncher
from envbuilder.render.container import render_image
from envbuilder.render.image import Image, bases, make_image
from envbuilder.render.subject import Renderable, RenderInput, UnlockedPlan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.launch_requests import plan_in_image
from envbuilder.workflow.texts import image_parts

PLAIN, MODULES = CASES[:2]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return shipped_knowledge()


def image_of(plan: Plan, knowledge: Knowledge) -> Image:
    return make_image(plan, knowledge, prefix_of(plan))


def files_of(source: Renderable, knowledge: Knowledge) -> dict[str, str]:
    prefix, parts = prefix_of(source.plan), image_parts(source.plan, knowledge)
    return render_image(RenderInput(source, PLAIN.places, knowledge, prefix, RUNTIMES), parts)


class TestImage:
    def test_the_base_has_the_python_of_the_plan(self, knowledge: Knowledge) -> None:
        names = {
            each.python: image_of(
                make_plan(pins=(pin("python", f"{each.python}.1", "system"),)), knowledge
            ).build_base
            for each in bases().bases
        }
        assert names["3.6"] == "amd64/ubuntu:18.04"
        assert names["3.11"] == "amd64/debian:12"
        assert len(set(names.values())) == len(names)

    @pytest.mark.parametrize(
        ("arch", "base"),
        [("ppc64le", "ppc64le/debian:12"), ("aarch64", "arm64v8/debian:12")],
    )
    def test_the_base_names_the_architecture(
        self, arch: str, base: str, knowledge: Knowledge
    ) -> None:
        assert image_of(make_plan(arch=arch), knowledge).build_base == base

    def test_a_python_that_no_image_has(self, knowledge: Knowledge) -> None:
        plan = make_plan(pins=(pin("python", "3.7.4", "module"),))
        with pytest.raises(UsageError, match=r"python 3\.7") as caught:
            image_of(plan, knowledge)
        assert caught.value.id == "image.no-base"

    def cuda_plan(self, cuda: str, arch: str = "x86_64", *more: Pin) -> Plan:
        return make_plan(arch=arch, pins=(PYTHON, *more), brought=(pin("cuda", cuda, "module"),))

    def test_cuda_takes_nvidia_s_image_of_its_series(self, knowledge: Knowledge) -> None:
        image = image_of(
            self.cuda_plan("12.1.105", "x86_64", pin("nccl", "2.18.3", "module")), knowledge
        )
        assert image.build_base == "nvidia/cuda:12.1.1-devel-ubuntu22.04"
        assert image.run_base == "nvidia/cuda:12.1.1-runtime-ubuntu22.04"
        assert "libnccl-dev=2.18.3-1+cuda12.1" in image.build_packages
        assert "libnccl2=2.18.3-1+cuda12.1" in image.run_packages

    def test_ppc64le_has_images_of_its_own(self, knowledge: Knowledge) -> None:
        old = pin("python", "3.6.6", "module")
        plan = make_plan(arch="ppc64le", pins=(old,), brought=(pin("cuda", "10.1.243", "module"),))
        image = image_of(plan, knowledge)
        assert image.build_base == "nvidia/cuda-ppc64le:10.1-devel-ubuntu18.04"
        with pytest.raises(UsageError, match=r"cuda 12\.1\.0") as caught:
            image_of(self.cuda_plan("12.1.0", "ppc64le"), knowledge)
        assert caught.value.id == "image.components-missing"

    def test_modules_become_packages_of_the_same_series(self, knowledge: Knowledge) -> None:
        plan = make_plan(
            pins=(
                PYTHON,
                pin("openmpi", "4.1.4", "module", "OpenMPI/4.1.4-GCC-11.3.0"),
                pin("cmake", "3.24.3", "module"),
                pin("gcc", "11.3.0", "module"),
            ),
            modules=MODULES.lock.plan.modules,
            steps=MODULES.lock.plan.steps,
            launcher=SiteLauncher(kind="srun", command=("srun",)),
        )
        image = image_of(plan, knowledge)
        inside = image.plan
        assert inside.modules == Modules()
        assert "modules" not in [step.id for step in inside.steps]
        assert inside.python == "/usr/bin/python3"
        assert [str(each) for each in inside.pins] == [
            "python@3.10 <- system:/usr/bin/python3",
            "openmpi@4.1.2 <- system:/usr/bin/mpicxx",
            "cmake@3.22.1 <- system:/usr/bin/cmake",
            "gcc@11.2.0 <- system:/usr/bin/g++",
        ]
        started = plan_in_image(inside).launcher
        assert started == SiteLauncher(kind="openmpi", command=("mpiexec",))
        assert image.run_packages == ("openmpi-bin", "python3")
        assert {"cmake", "g++", "libopenmpi-dev", "make"} <= set(image.build_packages)

    def test_a_module_becomes_a_wheel_of_the_same_version(self, knowledge: Knowledge) -> None:
        release = next(
            each for each in knowledge.releases["numpy"] if "3.10" in each.pythons and each.wheels
        )
        plan = make_plan(pins=(PYTHON, pin("numpy", release.version, "module")))
        image = image_of(plan, knowledge)
        assert image.from_index == ("numpy",)
        assert str(image.plan.pins[1]) == f"numpy@{release.version} <- pip:numpy"
        text = render("def", plan, knowledge)
        assert "modules: numpy." in text
        lock = Lock(plan=plan, artifacts=())
        with pytest.raises(UsageError, match="numpy") as caught:
            files_of(lock, knowledge)
        assert caught.value.id == "image.files-not-locked"

    def test_all_that_no_image_can_have_is_named_at_once(self, knowledge: Knowledge) -> None:
        plan = make_plan(
            pins=(
                PYTHON,
                pin("openmpi", "3.1.4", "module", "OpenMPI/3.1.4"),
                pin("spectrum-mpi", "10.3.1", "module", "spectrum-mpi/10.3.1"),
                pin("mpich", "5.0.2", "pip"),
            )
        )
        with pytest.raises(UsageError) as error:
            image_of(plan, knowledge)
        text = str(error.value)
        assert error.value.id == "image.components-missing"
        lines = text.splitlines()
        assert any("(module OpenMPI/3.1.4): " in line and "4.1.2" in line for line in lines)
        assert any("(module spectrum-mpi/10.3.1): " in line for line in lines)
        assert "mpich" not in text

    def test_homes_are_those_of_the_image(self, knowledge: Knowledge) -> None:
        flags = {"HOROVOD_CUDA_HOME": "/sw/CUDA/12.1", "HOROVOD_NCCL_HOME": "/sw/NCCL", "X": "/a"}
        plan = self.cuda_plan("12.1.1", "x86_64", pin("nccl", "2.18.3", "module")).model_copy(
            update={"builds": (SourceBuild(component="horovod", version="0.28.1", flags=flags),)}
        )
        image = image_of(plan, knowledge)
        assert image.plan.builds[0].flags == {
            "HOROVOD_CUDA_HOME": "/usr/local/cuda",
            "HOROVOD_NCCL_HOME": "/usr",
            "X": "/a",
        }
        assert {"g++", "patch", "python3-dev"} <= set(image.build_packages)
        assert "g++" not in image.run_packages

    def test_wheels_that_are_too_new_for_the_image(self, knowledge: Knowledge) -> None:
        newest = next(each for each in knowledge.releases["mpich"] if each.glibc)
        old = newest.model_copy(update={"glibc": "2.99"})
        releases = {**knowledge.releases, "mpich": (old,)}
        plan = make_plan(pins=(PYTHON, pin("mpich", old.version, "pip")))
        with pytest.raises(UsageError, match=r"2\.99.*2\.35") as caught:
            image_of(plan, knowledge.model_copy(update={"releases": releases}))
        assert caught.value.id == "image.components-missing"

    def test_an_image_s_folder_runs_the_build_script_of_the_image(
        self, knowledge: Knowledge
    ) -> None:
        files = files_of(PLAIN.lock, knowledge)
        assert "PREFIX=/opt/envbuild/allreduce\n" in files["build/environment.sh"]
        locked = Lock.model_validate(json.loads(files["build/lock.json"]))
        assert locked.plan.python == "/usr/bin/python3"
        for name in ("allreduce.def", "Dockerfile"):
            assert "bash /opt/envbuild/allreduce.build/build.sh" in files[name]
            assert locked.sha256() in files[name]

    def test_an_image_needs_a_lock(self, knowledge: Knowledge) -> None:
        with pytest.raises(UsageError) as caught:
            files_of(UnlockedPlan(PLAIN.lock.plan), knowledge)
        assert caught.value.id == "lock.missing"


def test_every_package_of_a_base_is_known(knowledge: Knowledge) -> None:
    known = bases()
    for base in known.bases:
        for component in base.versions:
            assert component in known.programs
            assert knowledge.components[component].debian
        for series, tag in base.cuda.items():
            assert tag == series or tag.startswith(f"{series}.")

"""Rules over what wheels contain and require, in plans and in checks of stated versions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.knowledge.wheels import has_code_for, index_tag

pytestmark = [pytest.mark.usefixtures("_x86_64"), pytest.mark.thorough]

SITE = """\
schema: 1
name: nodes
summary: Nodes with GPUs, and the MPI of a vendor
arch: [x86_64]
module-system: lmod
module-init: /usr/share/lmod/lmod/init/bash
origins: [module, pip]
scheduler: slurm
launcher: {{kind: srun, command: [srun]}}
facts: {{glibc: "2.34", network: [slingshot], gpu: [{gpu}], driver: "{driver}"}}
modules:
  - {{name: Python/3.11.1, provides: {{python: "3.11.1"}}, python: /sw/python/bin/python3}}
  - {{name: OpenMPI/5.0.8}}
  - {{name: psmpi/5.9.2-1}}
  - {{name: PrgEnv-gnu/8.5.0}}
  - {{name: craype-accel-amd-gfx90a}}
{modules}"""

RECIPE = """\
schema: 1
name: ours
summary: A recipe of the tests
arch: [x86_64]
stack: {{python: "*", {stack}}}
runtime: {{package: {runtime}}}
{more}"""


@pytest.fixture
def _x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def site_file(folder: Path, gpu: str = "sm_90", driver: str = "580.65", modules: str = "") -> Path:
    path = folder / "nodes.yaml"
    path.write_text(SITE.format(gpu=gpu, driver=driver, modules=modules))
    return path


def plan(
    folder: Path,
    stack: str,
    runtime: str = "torch-distributed",
    more: str = "",
    **site: str,
) -> tuple[int, dict[str, Any]]:
    recipe = folder / "ours.yaml"
    recipe.write_text(RECIPE.format(stack=stack, runtime=runtime, more=more))
    words = ["plan", str(recipe), "--site", str(site_file(folder, **site)), "--json"]
    done = CliRunner().invoke(app, words, env={"PATH": "/usr/bin:/bin"})
    return done.exit_code, json.loads(done.stdout)


def check(*words: str) -> tuple[int, set[str]]:
    """Return the exit code, and the ids of the errors."""
    words = ("advisories", "check", *words, "--arch", "x86_64", "--json")
    done = CliRunner().invoke(app, [*words])
    rows = json.loads(done.stdout)["rows"]
    return done.exit_code, {
        each["id"] for each in rows if (each["verdict"], each["severity"]) == ("holds", "error")
    }


def pins(value: dict[str, Any]) -> dict[str, str]:
    return {each["component"]: f"{each['version']} {each['locator']}" for each in value["pins"]}


def rows(value: dict[str, Any]) -> set[str]:
    """Return the ids of the rows in all conflicts."""
    members = [each for one in value["conflicts"] for each in one]
    return {
        each["switch"].removeprefix("row:").partition(":")[0]
        for each in members
        if each["switch"].startswith("row:")
    }


def test_a_stack_has_the_nccl_wheel_that_its_pytorch_requires(tmp_path: Path) -> None:
    code, value = plan(tmp_path, 'pytorch: "==2.11.*", nccl: "*"')
    assert code == 0
    assert pins(value)["nccl"] == "2.28.9 nvidia-nccl-cu13"


def test_two_distributions_of_one_library_are_refused() -> None:
    words = ["torch==2.11.0", "nvidia-nccl-cu12==2.28.9", "--fact", "pytorch.origin=pip"]
    assert check(*words, "--fact", "nccl.origin=pip") == (
        4,
        {"WHEEL-LIBRARY", "WHEEL-CUDA"},
    )
    words[1] = "nvidia-nccl-cu13==2.28.9"
    assert check(*words, "--fact", "nccl.origin=pip") == (0, set())


def test_a_wheel_for_another_vendors_gpus_is_refused(tmp_path: Path) -> None:
    code, value = plan(tmp_path, 'pytorch: "*"', gpu="gfx90a")
    assert (code, rows(value)) == (4, {"WHEEL-VENDOR"})
    words = ["torch==2.11.0", "--fact", "pytorch.origin=pip", "--fact"]
    assert check(*words, "gpu=gfx90a") == (4, {"WHEEL-VENDOR"})
    words[0] = "torch==2.10.0+rocm7.1"
    assert check(*words, "gpu=gfx90a") == (0, set())
    assert check(*words, "gpu=sm_90") == (4, {"WHEEL-VENDOR"})


def test_a_wheel_on_cpus_is_not_refused_at_such_a_site(tmp_path: Path) -> None:
    code, value = plan(
        tmp_path, 'pytorch: "*", openmpi: "*"', "distributed-dl-training", gpu="gfx90a"
    )
    assert code == 0
    assert "pytorch" in pins(value)


def test_a_gpu_that_no_row_reads_and_unknown_modules_are_reported(tmp_path: Path) -> None:
    more = 'pip-indexes: ["https://packages.example/whl/rocm7.1"]\n'
    code, value = plan(tmp_path, 'pytorch: "==2.10.*", mpich: "*"', more=more, gpu="gfx1100")
    assert code == 0
    found = {each["kind"]: each for each in value["site-findings"]}
    assert "gfx1100" in found["unknown-value"]["reason"]
    named = [m for each in value["site-findings"] for m in each.get("modules", ())]
    assert {"psmpi/5.9.2-1", "craype-accel-amd-gfx90a"} <= {*named}
    done = CliRunner().invoke(app, ["sites", "check", str(tmp_path / "nodes.yaml"), "--json"])
    notes = " ".join(json.loads(done.stdout)["warnings"][str(tmp_path / "nodes.yaml")])
    assert done.exit_code == 0
    for word in ("gfx1100", "psmpi/5.9.2-1", "PrgEnv-gnu/8.5.0", "craype-accel-amd-gfx90a"):
        assert word in notes


def test_a_refusal_states_the_figures(tmp_path: Path) -> None:
    """The glibc, the Pythons, and both requirements of a pair."""
    texts = {}
    for stack in (
        'pytorch: "==2.2.2", python: ">=3.13"',
        'tensorflow: "==2.14.1", keras: "==3.5.0"',
        'tensorflow: "==2.13.0", numpy: "==1.25.2"',
        'pytorch-lightning: "==2.5.0", pytorch: "==1.13.1"',
    ):
        modules = '  - {name: Python/3.13.1, provides: {python: "3.13.1"}, python: /sw/py3}\n'
        text = stack if "python:" in stack else f'{stack}, python: "<3.12"'
        recipe = RECIPE.replace('python: "*", ', "")
        (tmp_path / "ours.yaml").write_text(
            recipe.format(stack=text, runtime="distributed-dl-training", more="")
        )
        site = site_file(tmp_path, modules=modules)
        words = ["plan", str(tmp_path / "ours.yaml"), "--site", str(site)]
        done = CliRunner().invoke(app, words, env={"PATH": "/usr/bin:/bin"})
        assert done.exit_code in (3, 4)
        assert "\n  1. " in done.stderr
        texts[stack.partition(":")[0] + stack.split()[2]] = " ".join(done.stderr.split())
    python, keras, numpy, torch = texts.values()
    assert "3.8 to 3.12" in python
    assert ">=2.14.0,<2.15" in keras
    assert ">=1.22,<=1.24.3" in numpy
    assert ">=2.1.0" in torch


def test_undecided_rows_are_one_line_with_the_facts_to_state(tmp_path: Path) -> None:
    recipe = tmp_path / "ours.yaml"
    stack = 'pytorch: "==2.11.*", nccl: "*"'
    recipe.write_text(RECIPE.format(stack=stack, runtime="torch-distributed", more=""))
    words = ["plan", str(recipe), "--site", str(site_file(tmp_path))]
    done = CliRunner().invoke(app, words, env={"PATH": "/usr/bin:/bin"})
    assert done.exit_code == 0
    assert "kernel" in done.stdout.partition("  state ")[2].partition("in site nodes")[0]
    assert "NCCL-021" not in done.stdout
    verbose = CliRunner().invoke(app, [*words, "--verbose"], env={"PATH": "/usr/bin:/bin"})
    assert "unknown  NCCL-021" in verbose.stdout


def test_an_index_has_no_mpi_for_the_network_of_cray_mpich(tmp_path: Path) -> None:
    cray = "  - {name: cray-mpich/8.1.29}\n"
    code, value = plan(tmp_path, 'mpich: "*"', "distributed-dl-training", modules=cray)
    assert (code, rows(value)) == (4, {"WHEEL-MPI"})
    code, value = plan(tmp_path, 'numpy: "*"', "distributed-dl-training", modules=cray)
    assert (code, pins(value)["cray-mpich"]) == (0, "8.1.29 cray-mpich/8.1.29")
    words = ["cray-mpich==8.1.29", "mpich==4.2.3", "--fact", "mpich.origin=pip"]
    assert "WHEEL-MPI" in check(*words)[1]


FLAGS = '{HOROVOD_WITHOUT_TENSORFLOW: "1", HOROVOD_WITHOUT_MXNET: "1", HOROVOD_WITH_PYTORCH: "1"}'


def test_sources_that_no_stated_compiler_compiles_are_reported(tmp_path: Path) -> None:
    runtime = f"horovod, flags: {FLAGS}"
    found = {}
    for stack in ('pytorch: "*"', 'pytorch: "*", gcc: "*"'):
        modules = "  - {name: GCC/13.2.0}\n" if "gcc" in stack else ""
        code, value = plan(tmp_path, stack, runtime, modules=modules)
        kinds = {each["kind"] for each in value["site-findings"]}
        found[stack] = (code, "no-compiler" in kinds)
    assert list(found.values()) == [(0, True), (0, False)]


def test_a_refusal_has_the_figures_of_both_sides(tmp_path: Path) -> None:
    code, value = plan(tmp_path, 'numpy: "==1.19.5"', "distributed-dl-training")
    texts = [each["text"] for one in value["conflicts"] for each in one]
    (text,) = (each for each in texts if "numpy 1.19.5" in each)
    assert (code, "3.6 to 3.9" in text, "3.11.1" in text) == (3, True, True)


DRAWN = {
    "pytorch": ["1.13.1", "2.0.1", "2.2.2", "2.5.1", "2.6.0", "2.10.0", "2.11.0"],
    "pytorch-lightning": ["2.0.9", "2.3.3", "2.5.0"],
    "tensorflow": ["2.10.1", "2.13.0", "2.14.1", "2.17.0", "2.19.0"],
    "keras": ["2.13.1", "2.14.0", "3.5.0"],
    "numpy": ["1.23.5", "1.25.2", "1.26.4", "2.0.2"],
    # Of other releases there are wheels for several series of CUDA.
    "nccl": ["2.18.1", "2.23.4", "2.27.5"],
    "mpich": ["4.2.3", "5.0.0"],
    "openmpi": ["4.1.8", "5.0.8"],
}
PYTHONS = ["3.9.2", "3.11.4", "3.13.1"]
SITES = [("sm_70", "470.82", "2.28"), ("sm_90", "550.54", "2.34"), ("gfx90a", "580.65", "2.17")]


def drawn(seed: int) -> tuple[dict[str, str], str, tuple[str, str, str]]:
    """Return releases, a Python, and the GPU, driver and glibc of a site."""
    draw = random.Random(seed)
    names = draw.sample(sorted(DRAWN), 3)
    versions = {name: draw.choice(DRAWN[name]) for name in names}
    return versions, draw.choice(PYTHONS), draw.choice(SITES)


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.sample(8)
def test_a_plan_refuses_what_check_refuses(tmp_path: Path, seed: int) -> None:
    versions, python, (gpu, driver, glibc) = drawn(seed)
    text = SITE.format(gpu=gpu, driver=driver, modules="").replace("3.11.1", python)
    text = text.replace('glibc: "2.34"', f'glibc: "{glibc}"').replace("slingshot", "ethernet")
    text = text.replace("  - {name: OpenMPI/5.0.8}\n", "")
    (tmp_path / "nodes.yaml").write_text(text)
    lines = ", ".join(f'{name}: "=={version}"' for name, version in versions.items())
    runtime = "torch-distributed" if "pytorch" in versions else "distributed-dl-training"
    (tmp_path / "ours.yaml").write_text(RECIPE.format(stack=lines, runtime=runtime, more=""))
    words = ["plan", str(tmp_path / "ours.yaml"), "--site", str(tmp_path / "nodes.yaml"), "--json"]
    planned = CliRunner().invoke(app, words, env={"PATH": "/usr/bin:/bin"})
    for_gpus = runtime == "torch-distributed" or "nccl" in versions
    facts = {"gpu": gpu, "driver": driver, "glibc": glibc, "network": "ethernet"}
    facts |= {f"{name}.origin": "pip" for name in versions} | {"python.origin": "module"}
    facts |= {"uses_gpu": str(for_gpus).lower(), "backend": "virtualenv"}
    stated = [f"{name}=={version}" for name, version in versions.items()]
    stated += [word for fact, value in facts.items() for word in ("--fact", f"{fact}={value}")]
    code, errors = check(f"python=={python}", *stated)
    assert (planned.exit_code in (3, 4)) is (code == 4), (errors, planned.stdout)
    if code == 4 and "conflicts" in json.loads(planned.stdout):
        laws = {"WHEEL-PYTHON", "WHEEL-GLIBC", "WHEEL-ARCH", "ONE-MPI"}
        assert rows(json.loads(planned.stdout)) <= errors
        assert rows(json.loads(planned.stdout)) or errors & laws


BUILD = 'pip-indexes: ["https://packages.example/whl/{}"]\n'


def test_a_local_version_selects_a_build(tmp_path: Path) -> None:
    stack = 'pytorch: "==2.5.1+cu121", nccl: "*"'
    code, value = plan(tmp_path, stack, more=BUILD.format("cu121"), driver="550.54")
    assert (code, pins(value)["pytorch"]) == (0, "2.5.1+cu121 torch")
    assert pins(value)["nccl"].endswith("nvidia-nccl-cu12")
    code, value = plan(tmp_path, stack, more=BUILD.format("cu121"), driver="470.82")
    assert (code, "WHEEL-DRIVER" in rows(value)) == (4, True)


@pytest.mark.parametrize(
    ("build", "gpu", "driver", "errors"),
    [
        ("1.12.1+cu113", "sm_80", "525.60.13", set()),
        ("1.12.1", "sm_80", "525.60.13", {"TORCH-211"}),
        ("2.5.1+cu121", "sm_80", "470.82", {"WHEEL-DRIVER"}),
        ("2.5.1+cu118", "sm_80", "470.82", set()),
        ("2.5.1", "sm_100", "570.86", {"WHEEL-GPU"}),
        ("2.8.0+cu126", "sm_60", "570.86", set()),
        ("2.8.0", "sm_60", "570.86", {"WHEEL-GPU"}),
        ("2.11.0", "sm_80", "550.54", {"WHEEL-DRIVER"}),
        ("2.5.1+cpu", "gfx90a", "550.54", set()),
    ],
)
def test_a_build_is_judged_by_what_it_contains(
    build: str, gpu: str, driver: str, errors: set[str]
) -> None:
    facts = ["pytorch.origin=pip", f"gpu={gpu}", f"driver={driver}"]
    words = [word for fact in facts for word in ("--fact", fact)]
    assert check(f"pytorch=={build}", *words) == (4 if errors else 0, errors)


def test_the_index_of_a_build_is_the_cuda_that_horovod_is_built_with(tmp_path: Path) -> None:
    cuda = '  - {name: CUDA/11.8.0, provides: {cuda: "11.8.0"}}\n'
    cuda += '  - {name: GCC/11.3.0, provides: {gcc: "11.3.0"}}\n'
    stack = 'pytorch: "==2.5.1", cuda: "==11.8.*", nccl: "*", openmpi: "*"'
    more = """\
    {package: horovod, version: "==0.28.1", flags: {HOROVOD_GPU_OPERATIONS: NCCL,
    HOROVOD_WITH_PYTORCH: 1, HOROVOD_WITHOUT_TENSORFLOW: 1, HOROVOD_WITHOUT_MXNET: 1}}
"""
    recipe = RECIPE.replace("runtime: {{package: {runtime}}}", "runtime:\n{runtime}")
    seen = {}
    for index in ("cu118", "cu121"):
        text = recipe.format(stack=stack, runtime=more, more=BUILD.format(index))
        (tmp_path / "ours.yaml").write_text(text)
        site = site_file(tmp_path, modules=cuda)
        words = ["plan", str(tmp_path / "ours.yaml"), "--site", str(site), "--json"]
        done = CliRunner().invoke(app, words, env={"PATH": "/usr/bin:/bin"})
        seen[index] = json.loads(done.stdout)
    assert pins(seen["cu118"])["nccl"].endswith("nvidia-nccl-cu11")
    assert rows(seen["cu121"]) & {"TORCH-243", "NCCL-111"}


def test_a_release_beside_a_toolkit_may_be_the_build_for_it() -> None:
    """Horovod 0.28.1's own image: nobody said which build of 1.12.1 it has."""
    facts = ["pytorch.origin=pip", "gpu=sm_80", "driver=525.60.13", "horovod.origin=build"]
    facts += ["flags.HOROVOD_GPU_OPERATIONS=NCCL", "flags.HOROVOD_WITH_PYTORCH=1"]
    words = ["python==3.8.10", "pytorch==1.12.1", "horovod==0.28.1", "nccl==2.9.9"]
    words += [word for fact in facts for word in ("--fact", fact)]
    assert check(*words, "cuda==11.3.1") == (0, set())
    assert check(*words, "cuda==11.0.3") == (4, {"TORCH-211", "TORCH-241"})


def test_the_warning_about_cuda_on_arm_ends_with_its_remedy() -> None:
    words = ["--arch", "aarch64", "--fact", "pytorch.origin=pip", "--fact", "gpu=sm_90", "--json"]
    found = {}
    for build in ("2.8.0", "2.8.0+cu126"):
        done = CliRunner().invoke(app, ["advisories", "check", f"torch=={build}", *words])
        found[build] = {each["id"] for each in json.loads(done.stdout)["rows"]}
    assert "TORCH-216" in found["2.8.0"]
    assert "TORCH-216" not in found["2.8.0+cu126"]


@pytest.mark.parametrize("name", ["TORCH-202", "WHEEL-DRIVER"])
def test_the_id_of_a_replaced_row_waives_the_rule(tmp_path: Path, name: str) -> None:
    more = f"allow: {{{name}: the nodes get a driver next week}}\n"
    code, value = plan(tmp_path, 'pytorch: "==2.5.1"', more=more, driver="470.82")
    assert code == 0
    assert [each["status"] for each in value["findings"] if each["id"] == name] == ["waived"]
    more = more.replace("TORCH-202", "TORCH-203")
    code, _ = plan(tmp_path, 'pytorch: "==2.5.1"', more=more, driver="470.82")
    assert code == (4 if name == "TORCH-202" else 0)
    assert CliRunner().invoke(app, ["advisories", "show", "TORCH-202"]).exit_code == 0


@pytest.mark.parametrize(
    ("gpus", "gpu", "there"),
    [
        ("sm_70 sm_80", "sm_86", True),
        ("sm_70 sm_86", "sm_80", False),
        ("sm_90", "sm_100", False),
        ("sm_90 compute_90", "sm_100", True),
        ("sm_90", "sm_90a", True),
        ("gfx90a", "gfx90a", True),
        ("gfx90a", "gfx942", False),
    ],
)
def test_machine_code_runs_on_later_gpus_of_its_generation(
    gpus: str, gpu: str, there: bool
) -> None:
    assert has_code_for(gpus.split(), gpu) is there


@pytest.mark.parametrize(
    ("index", "tag"),
    [
        ("https://x.example/whl/cu118/", "cu118"),
        ("https://x.example/whl/cu118/torch_stable.html", "cu118"),
        ("https://x.example/simple", None),
    ],
)
def test_an_index_of_one_build_is_known_by_its_last_part(index: str, tag: str | None) -> None:
    assert index_tag([index]) == tag


def test_a_page_of_links_selects_the_build_before_the_index(tmp_path: Path) -> None:
    more = 'find-links: ["https://x.example/whl/cu118/torch_stable.html"]\n'
    code, value = plan(tmp_path, 'pytorch: "==2.2.2"', more=more, gpu="sm_70", driver="470.82")
    assert code == 0, value
    code, value = plan(tmp_path, 'pytorch: "==2.2.2"', gpu="sm_70", driver="470.82")
    assert (code, rows(value)) == (4, {"WHEEL-DRIVER"})


@pytest.mark.parametrize("name", ["WHEEL-DRIVER", "WHEEL-PYTHON", "ONE-MPI", "NAME-CUDA"])
def test_a_rule_is_shown_by_its_id(name: str) -> None:
    done = CliRunner().invoke(app, ["advisories", "show", name, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["kind"] == "rule"

"""``envbuild image`` with a real Apptainer: built in a real Debian, proved, packed and tested.

It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Done, Envbuild, run

from envbuilder.images.oci import OciConfig, check_layer, pack_layout
from envbuilder.images.sif import arch_of
from tests.smoke.replays import replay_by, write_records

pytestmark = [pytest.mark.long]

PROGRAM = """
import distributed_dl_training.numpy as hvd
hvd.init()
print(hvd.rank(), "of", hvd.size(), hvd.allreduce(float(hvd.rank()), op=hvd.Sum))
"""


@pytest.fixture(scope="module")
def apptainer() -> str:
    found = shutil.which("apptainer")
    if found is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    return found


@pytest.fixture(scope="module")
def debian(apptainer: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return debian_base(tmp_path_factory)


@pytest.fixture(scope="module")
def built(envbuild: Envbuild, debian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the image of allreduce on that Debian."""
    output = tmp_path_factory.mktemp("images")
    done = envbuild(
        "image", "allreduce", "--base", debian, "--output", output, env=QUICK, timeout=SECONDS
    )
    assert done.code == 0, done.text
    assert "several ranks on x86_64; " in done.out
    assert done.out.endswith("; the packed image was tested\n")
    return output


def only(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def inside(apptainer: str, image: Path, *words: object) -> Done:
    return run([apptainer, "exec", str(image), *map(str, words)], timeout=SECONDS)


def test_ranks_talk_in_it(apptainer: str, built: Path, tmp_path: Path) -> None:
    image, program = only(built, "*.sif"), tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert arch_of(image) == "x86_64"
    done = inside(apptainer, image, "mpiexec", "-n", 2, "python", program)
    assert sorted(done.out.splitlines()) == ["0 of 2 1.0", "1 of 2 1.0"], done.text


def test_what_replays_in_it_proves_nothing(apptainer: str, debian: Path, tmp_path: Path) -> None:
    earlier = write_records(tmp_path / "records", ("node1", "node2"))
    (tmp_path / "mpiexec").mkdir()
    within = (apptainer, "exec", "--pid", "--bind", str(tmp_path), str(debian), "/usr/bin/python3")
    result = replay_by(tmp_path / "mpiexec", within, earlier, python=None)
    assert (result.verdict, result.tier) == ("failed", "one rank")
    assert "states another sum of allreduce" in result.reasons[0]


def test_lock_manifest_and_records_are_inside_and_beside(apptainer: str, built: Path) -> None:
    image, beside = only(built, "*.sif"), only(built, "*.evidence")
    identity = image.name.split("-")[1]
    home = f"/opt/envbuild/allreduce/{identity}"
    record = only(beside, "*/evidence.json")
    evidence = json.loads(record.read_text())
    assert (evidence["execution"], evidence["arch"]) == ("native", "x86_64")
    assert evidence["result"]["tier"] == "several ranks"
    for file, within in (
        (record, f"{home}.evidence/{record.parent.name}/evidence.json"),
        (beside / "manifest.json", f"{home}.evidence/manifest.json"),
        (beside / "lock.json", f"{home}.build/lock.json"),
    ):
        assert inside(apptainer, image, "cat", within).out == file.read_text()


def test_info_reads_it_and_its_bill_of_materials(envbuild: Envbuild, built: Path) -> None:
    image, beside = only(built, "*.sif"), only(built, "*.evidence")
    told = envbuild("info", image)
    assert told.code == 0, told.text
    assert "sif, for x86_64" in told.out
    assert "passed: several ranks, 2 ranks" in told.out
    for form, file in (("cyclonedx", "sbom.cdx.json"), ("provenance", "provenance.intoto.json")):
        assert envbuild("info", image, "--as", form).out == (beside / file).read_text()
    bill = json.loads((beside / "sbom.cdx.json").read_text())
    licences = {each["name"]: each.get("licenses") for each in bill["components"]}
    assert licences["numpy"], "as the installed package states it"
    artifacts = json.loads((beside / "lock.json").read_text())["artifacts"]
    digests = (each["hashes"][0]["content"] for each in bill["components"] if "hashes" in each)
    assert set(digests) == {each["sha256"] for each in artifacts}
    [subject] = json.loads((beside / "image.provenance.intoto.json").read_text())["subject"]
    sha256 = hashlib.sha256(image.read_bytes()).hexdigest()
    assert (subject["name"], subject["digest"]["sha256"]) == (image.name, sha256)


def test_a_sandbox_is_a_root_that_envbuild_knows(
    envbuild: Envbuild, apptainer: str, debian: Path, built: Path, tmp_path: Path
) -> None:
    lock = only(built, "*.evidence/lock.json")
    words = ("image", "allreduce", "--base", debian, "--locked", lock, "--format", "sandbox")
    done = envbuild(*words, "--output", tmp_path, timeout=SECONDS)
    assert done.code == 0, done.text
    assert done.out.endswith("built and proved\n")
    folder = only(tmp_path, "allreduce-*-x86_64")
    told = envbuild("info", "allreduce", "--verify", "--root", folder / "opt/envbuild")
    assert told.code == 0, told.text
    assert "passed: several ranks, 2 ranks" in told.out
    both_formats_hold_its_manifest(apptainer, folder, tmp_path / "packed")
    # With the TMPDIR of a job, that of the host, which is not bound in.
    there = run(
        [apptainer, "test", "--env", "TMPDIR=/scratch/of-a-job", str(folder)], timeout=SECONDS
    )
    assert there.code == 0, there.text
    # Its own test compares every file before the ranks talk.
    module = only(folder, "opt/envbuild/allreduce/*/lib/python3.11/site-packages/numpy/version.py")
    module.write_text(module.read_text() + "# changed\n")
    tested = run([apptainer, "test", str(folder)], timeout=SECONDS)
    assert tested.code != 0
    assert "numpy/version.py" in tested.text
    again = envbuild(*words, "--output", tmp_path)
    assert again.code == 2
    assert f"{folder} already exists" in again.err


def both_formats_hold_its_manifest(apptainer: str, root: Path, folder: Path) -> None:
    """Pack one root as ``image`` packs each format; each holds the prefix of one manifest."""
    record = only(root, "opt/envbuild/allreduce/*.evidence/manifest.json").relative_to(root)
    prefix = f"/{record.parent}".removesuffix(".evidence")
    files = json.loads((root / record).read_text())["files"]
    folder.mkdir()
    pack_layout(root, folder / "image.oci", OciConfig("x86_64", "tag", (), {}))
    check_layer(folder / "image.oci", prefix[1:], files)
    sif = folder / "image.sif"
    done = run([apptainer, "build", sif, root], env=QUICK, timeout=SECONDS)
    assert done.code == 0, done.text
    assert inside(apptainer, sif, "cat", f"/{record}").out == (root / record).read_text()
    words = (f"{prefix}/bin/python", "-I", f"{prefix}.build/target_tools", "manifest", "compare")
    compared = inside(apptainer, sif, *words, prefix, f"/{record}")
    assert compared.code == 0, compared.text


def test_an_oci_image_is_copied_and_holds_the_prefix_that_was_proved(
    envbuild: Envbuild, debian: Path, built: Path, tmp_path: Path
) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not on PATH: it is Debian's package of that name")
    lock = only(built, "*.evidence/lock.json")
    words = ("image", "allreduce", "--base", debian, "--locked", lock, "--format", "oci")
    done = envbuild(*words, "--output", tmp_path, timeout=SECONDS)
    assert done.code == 0, done.text
    assert done.out.endswith("; the packed files were compared\n")
    image, beside = only(tmp_path, "*.oci"), only(tmp_path, "*.evidence")
    identity = image.name.split("-")[1]
    source, copy = f"oci:{image}:{identity}", f"oci:{tmp_path}/copy:pulled"
    copied = run(["skopeo", "--insecure-policy", "copy", "--preserve-digests", source, copy])
    assert copied.code == 0, copied.text
    told = json.loads(run(["skopeo", "inspect", copy]).out)
    [subject] = json.loads((beside / "image.provenance.intoto.json").read_text())["subject"]
    assert told["Digest"] == f"sha256:{subject['digest']['sha256']}"
    assert told["Architecture"] == "amd64"
    assert told["Labels"]["envbuild.environment"] == identity
    files = json.loads((beside / "manifest.json").read_text())["files"]
    check_layer(tmp_path / "copy", f"opt/envbuild/allreduce/{identity}", files)
    # Of one lock, each built for itself: the same files in the prefix of the SIF.
    sif = json.loads(only(built, "*.evidence/manifest.json").read_text())["files"]
    assert files.keys() == sif.keys()


def test_ranks_that_leave_without_a_word_leave_no_image(
    envbuild: Envbuild, debian: Path, tmp_path: Path
) -> None:
    base, output = tmp_path / "base", tmp_path / "output"
    assert run(["cp", "-al", str(debian), str(base)]).code == 0
    # Its Python runs this first, in virtualenvs too.
    custom = base / "usr/lib/python3.11/sitecustomize.py"
    custom.unlink(missing_ok=True)
    custom.write_text("import os\nif 'PMI_RANK' in os.environ:\n    os._exit(0)\n")
    done = envbuild("image", "allreduce", "--base", base, "--output", output, timeout=SECONDS)
    assert done.code == 6, done.text
    assert [each.name for each in output.iterdir() if each.suffix != ".log"] == []
    assert "nothing was published" in only(output, "*.log").read_text()


def test_for_ppc64le(envbuild: Envbuild, apptainer: str, ppc64el: Path, tmp_path: Path) -> None:
    words = ("image", "allreduce", "--base", ppc64el, "--output", tmp_path)
    done = envbuild(*words, env=QUICK, timeout=SECONDS)
    assert done.code == 0, done.text
    assert "several ranks on ppc64le, emulated" in done.out
    assert "speed:" not in done.out
    image = only(tmp_path, "*.sif")
    assert arch_of(image) == "ppc64le"
    machine = inside(apptainer, image, "python", "-c", "import platform; print(platform.machine())")
    assert machine.out == "ppc64le\n"

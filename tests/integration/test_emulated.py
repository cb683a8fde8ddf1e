"""``create --emulate`` and ``smoke --emulate``: allreduce for ppc64le, all on this machine.

Every program there is one for ppc64le, run by qemu; Open MPI, mpi4py and NumPy are Debian's. It
takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``. ENVBUILD_PPC64EL_ROOT names a
system that is there.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from emulated_tools import SECONDS, Emulated
from integration_tools import Done, Envbuild, finish, unpack_bundle

from envbuilder import data
from envbuilder.build.emulation import NAMED
from envbuilder.target_tools import proc
from envbuilder.target_tools.files import remove_tree

pytestmark = [pytest.mark.long]

POWER = ("--arch", "ppc64le")


def records(root: Path) -> list[dict[str, Any]]:
    """Return what the smoke tests of a root recorded, in their order."""
    return [json.loads(each.read_text()) for each in sorted(root.glob("*/*.evidence/*/evid*.json"))]


def listed(envbuild: Envbuild, root: Path) -> list[tuple[int, bool, str, str]]:
    told = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    return [(each["number"], each["default"], each["tier"], each["execution"]) for each in told]


def test_create_ends_with_a_proved_allreduce_and_a_module(
    envbuild: Envbuild, ppc64el: Path, tmp_path: Path
) -> None:
    emulated = Emulated.below(ppc64el, tmp_path)
    root = emulated.shared / "root"

    cache = tmp_path / "cache"
    env = {NAMED: str(ppc64el), "XDG_CACHE_HOME": str(cache)}
    words = ("create", "allreduce", *POWER, "--emulate", "--root", root)

    # Ended in the middle it leaves nothing running and nothing published, and is gone on with.
    running = envbuild.start(*words, env=env)
    while not list(root.glob("allreduce/*.build/state/venv.done")):
        assert running.poll() is None, finish(running).text
        time.sleep(0.2)
    running.send_signal(signal.SIGTERM)
    ended = finish(running)
    assert ended.code == 128 + signal.SIGTERM, ended.text
    assert listed(envbuild, root) == []
    assert not (root / "allreduce" / "in-use.lock").exists()
    mark = str(root).encode()
    assert [pid for pid in proc.pids() if mark in b" ".join(proc.read_words(pid, "cmdline"))] == []

    def create(*more: str) -> Done:
        return envbuild(*words, *more, env=env, timeout=SECONDS)

    done = create("--require-tier", "ranks", "--resume")
    assert done.code == 0, done.text
    [log] = cache.glob("envbuild/systems/allreduce-*.log")
    assert "== venv: done before" in log.read_text()
    assert "ranks on ppc64le, emulated; " in done.out
    assert "speed:" not in done.out
    assert done.out.endswith(" the default\n")
    [record] = records(root)
    result = record["result"]
    assert (record["execution"], record["arch"]) == ("emulated", "ppc64le")
    assert (result["tier"], result["verdict"], result["ranks"]) == ("several ranks", "passed", 2)
    assert result["timings"] == []
    assert {each["path"].split("/")[3] for each in result["libraries"]} == {"powerpc64le-linux-gnu"}

    again = create()
    assert again.code == 0, again.text
    assert "exactly this" in again.err
    assert len(records(root)) == 1
    assert listed(envbuild, root) == [(1, True, "several ranks", "emulated")]
    assert "several ranks, emulated" in envbuild("list", "--root", root).out
    info = envbuild("info", "allreduce", "--root", root).out
    assert "emulated, 2 ranks on" in info
    assert "GB/s" not in info
    line = envbuild("launch", "allreduce", "--root", root, "--", "python", "x.py")
    assert "mpiexec -n 2" in line.out, line.text
    assert "machine of ppc64le" in line.err
    proved_again(envbuild, root, env)
    said = emulated(
        f"source /usr/share/lmod/lmod/init/bash; module use '{root}/modulefiles'; "
        "module load allreduce; module help allreduce 2>&1; which python; uname -m"
    )
    assert "Proved: several ranks, emulated, " in said.out, said.text
    [prefix] = root.glob("allreduce/????????????")
    assert said.out.endswith(f"{prefix}/bin/python\nppc64le\n")
    remove_tree(root)


def proved_again(envbuild: Envbuild, root: Path, env: dict[str, str]) -> None:
    """Prove allreduce/1 once more, by itself refused; then with a file of it changed."""
    before = len(records(root))
    words = ("smoke", "allreduce/1", "--root", root)
    smoke = envbuild(*words, env=env)
    assert smoke.code == 2, smoke.text
    assert "allreduce/1 is for ppc64le, " in smoke.err
    assert "--emulate" in smoke.err
    smoke = envbuild(*words, "--emulate", env=env, timeout=SECONDS)
    assert smoke.code == 0, smoke.text
    assert smoke.out.startswith("passed: several ranks, emulated, 2 ranks on ")
    assert "mpi library: /usr/lib/powerpc64le-linux-gnu/libmpi.so" in smoke.out
    assert "GB/s" not in smoke.out
    record = records(root)[-1]
    assert (record["execution"], record["arch"]) == ("emulated", "ppc64le")
    assert (record["result"]["tier"], record["result"]["timings"]) == ("several ranks", [])
    assert len(records(root)) == before + 1

    [config] = (each for each in root.glob("allreduce/*/pyvenv.cfg"))
    text, mode = config.read_text(), config.stat().st_mode
    config.chmod(0o644)
    config.write_text(f"{text}prompt = mine\n")
    smoke = envbuild(*words, "--emulate", env=env)
    assert smoke.code == 8, smoke.text
    assert "\n  pyvenv.cfg: " in smoke.err
    assert len(records(root)) == before + 1
    config.write_text(text)
    config.chmod(mode)


def bundle(envbuild: Envbuild, emulated: Emulated, summary: str) -> Path:
    """Make a bundle of allreduce for ppc64le that differs by its summary; return it, unpacked."""
    folder = emulated.shared / summary
    recipe = yaml.safe_load((data.RECIPES / "allreduce.yaml").read_text(encoding="utf-8"))
    recipe |= {"summary": summary, "env": {"VARIANT": summary}}
    recipe["smoke"] = {"ranks": 2, "max-bytes": 65536}
    folder.mkdir()
    file = folder / "allreduce.yaml"
    file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    done = envbuild("create", file, *POWER, "--output", folder)
    assert done.code == 0, done.text
    [archive] = folder.glob("*.tar.gz")
    unpack_bundle(archive, folder / "there")
    [found] = (folder / "there").iterdir()
    return found


# Says of two ranks, in records of this very run, that they began, were two and ended well.
FORGED = """#!/usr/bin/python3
import json, os, sys, time

out, nonce = (sys.argv[sys.argv.index(word) + 1] for word in ("--out", "--nonce"))
for rank in (0, 1):
    start = dict(event="start", host="vm", pid=os.getpid(), started=0, clock="", uid=0,
                 executable=sys.executable, launcher_rank=rank, execution="emulated")
    init = dict(event="init", rank=rank, size=2, local_rank=rank, local_size=2, runtime="mine",
                runtime_version="1", runtime_file=None, build_record=None, mpi=None,
                mpi_version=None, python="3.11.2", numpy="1.24.2")
    with open(f"{out}/rank-vm-{rank}.jsonl", "w") as stream:
        for event in (start, init, dict(event="end", failed=0)):
            stream.write(json.dumps(dict(event, nonce=nonce, time=time.monotonic())) + "\\n")
"""


def test_two_bundles_there_and_what_a_launcher_only_says(
    envbuild: Envbuild, ppc64el: Path, tmp_path: Path
) -> None:
    emulated = Emulated.below(ppc64el, tmp_path)
    root = emulated.shared / "root"
    first, second = (bundle(envbuild, emulated, name) for name in ("first", "second"))

    # A launcher that says that all is well; nothing of it is published.
    forged = emulated.written / "usr" / "local" / "bin" / "mpiexec"
    forged.parent.mkdir(parents=True, exist_ok=True)
    before = "export PATH=/usr/local/bin:$PATH; "
    forged.write_text("#!/bin/sh\necho '2 ranks started, all checks passed'\nexit 0\n")
    forged.chmod(0o755)
    done = emulated(f"{before}bash '{first}/install.sh' '{root}'")
    assert done.code == 6, done.text
    assert "none of 2 reported" in done.err
    assert listed(envbuild, root) == []
    forged.write_text(FORGED)
    done = emulated(f"{before}bash '{first}/install.sh' '{root}'")
    assert done.code == 6, done.text
    assert listed(envbuild, root) == []
    assert [each["result"]["verdict"] for each in records(root)] == ["failed", "failed"]
    assert {each["execution"] for each in records(root)} == {"emulated"}

    for each in (first, second):
        done = emulated(f"bash '{each}/install.sh' '{root}'")
        assert done.code == 0, done.text
    assert listed(envbuild, root) == [
        (1, False, "several ranks", "emulated"),
        (2, True, "several ranks", "emulated"),
    ]
    for number in (1, 2):
        name = f"allreduce/{number}"
        info = json.loads(envbuild("info", name, "--root", root, "--json").out)
        assert info["evidence"][-1]["result"]["ranks"] == 2
        line = envbuild("launch", name, "--root", root, "--", "python", "x.py")
        assert "mpiexec -n 2" in line.out, line.text
        assert "machine of ppc64le" in line.err
        # The judge once more, of what is published: of ranks that talk, and of those that say so.
        forged.rename(forged.with_name("liar"))
        done = judged_again(emulated, root, number)
        assert done.code == 0, done.text
        assert done.out.startswith("passed: several ranks, emulated\n")
        forged.with_name("liar").rename(forged)
        done = judged_again(emulated, root, number)
        assert done.code == 6, done.text
        assert done.out.startswith("failed: ")
    # What a bundle published is proved like what create made. There no launcher is in front.
    env = {NAMED: str(ppc64el), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    smoke = envbuild("smoke", "allreduce/2", "--root", root, "--emulate", env=env, timeout=SECONDS)
    assert smoke.code == 0, smoke.text
    assert smoke.out.startswith("passed: several ranks, emulated, 2 ranks on ")
    assert len(records(root)) == 5

    back = envbuild("rollback", "allreduce", "--root", root)
    assert back.code == 0, back.text
    assert listed(envbuild, root)[0][:2] == (1, True)
    removed = envbuild("remove", "allreduce/2", "--root", root)
    assert removed.code == 0, removed.text
    assert listed(envbuild, root) == [(1, True, "several ranks", "emulated")]
    assert [each.name for each in root.glob("modulefiles/allreduce/[0-9]*")] == ["1.lua"]
    assert len(list(root.glob("allreduce/????????????"))) == 1
    said = emulated(
        f"source /usr/share/lmod/lmod/init/bash; module use '{root}/modulefiles'; "
        'module load allreduce; echo "$VARIANT"'
    )
    assert said.out == "first\n", said.text
    remove_tree(root)


def judged_again(emulated: Emulated, root: Path, number: int) -> Done:
    """Run the smoke test of a number in the system, and the judge on it, as docs/smoke.md says."""
    text = (root / "modulefiles" / "allreduce" / f"{number}.lua").read_text(encoding="utf-8")
    [prefix] = (each for each in root.glob("allreduce/????????????") if str(each) in text)
    build, tried = prefix.with_name(f"{prefix.name}.build"), emulated.shared / "tried"
    words = f"--prefix '{prefix}' --ranks 2 --max-bytes 65536 --mpi-from wrapper --api numpy"
    return emulated(
        f"export PATH=/usr/local/bin:$PATH; rm -rf '{tried}'; cp '{build}'/smoke-1.sh "
        f"'{build}'/smoke.sh; '{prefix}'/bin/python -I -B '{build}'/target_tools prove {words} "
        f"--transport mpi '{build}' '{tried}'"
    )

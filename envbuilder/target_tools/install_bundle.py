"""Install a bundle, for ``install.sh``: build it, prove it on its ranks, publish it in a root.

    python -I target_tools install-bundle [OPTION...] BUNDLE ROOT <ENVIRONMENT

ENVIRONMENT holds the variables for build and smoke test, each with a NUL byte behind it: those of
the user, without the modules that this Python may need. Nothing is fetched. What was built stays:
run again, it goes on where it stopped. Exit code 2: the bundle does not belong there, 5: it could
not be built, 6: the ranks did not prove that they can talk. Then nothing is published. A candidate
is published where all that its ranks lack is a GPU on this machine; it is not made the default.
"""

import argparse
import contextlib
from pathlib import Path
from typing import Any, Iterable, Mapping

from . import in_root, sharing
from .bundle import SUMS, facts_of
from .errors import BuildError, SmokeError
from .files import copy_texts, read_text, sha256_of, text_or_none, write_atomically
from .in_root import say
from .modulefile import filled
from .processes import Running, popen, signals_held_back
from .proving.binding import read_earlier
from .proving.evidence import passed_kinds, prove, refuted
from .root import locks, manifests, publish
from .root.layout import BUNDLED, Home, Version
from .root.registry import heal_registry
from .root.stamp import Root
from .root.store import open_home, open_root
from .steps import MORE_TIME, ending, limit_of, stated_limit


def copy(bundle: Path, facts: "dict[str, Any]", home: Home) -> None:
    """Copy the build folder of the bundle to the root and adapt its paths, once."""
    identity, folder, sums = facts["id"], home.build(facts["id"]), sha256_of(bundle / SUMS)
    # It holds the sums of the bundle that the folder was copied from.
    whole = folder / BUNDLED
    if text_or_none(whole) == sums:
        if not publish.is_of_another(home, identity):
            return
        say(f"the unfinished build belongs to {sharing.owner_of(folder)}: starting again")
    for each in (folder, home.prefix(identity)):
        publish.clear(home, each, say)
    publish.mark(home, identity)
    copy_texts(bundle / "build", folder)
    for name in facts["placed"]:
        path = folder / name
        text = read_text(path).replace(facts["placeholder"], str(home.root))
        path.write_text(text, encoding="utf-8")
    write_atomically(whole, sums)


def build(folder: Path, steps: "Iterable[str]", environ: "Mapping[str, str]") -> None:
    """Run every step that is not done yet, for a limited time. Raises BuildError, UsageError."""
    stated = stated_limit(environ)
    for step in steps:
        mark = folder / "state" / f"{step}.done"
        if mark.is_file():
            say(f"== {step}: done before")
            continue
        limit = limit_of(step, stated)
        code = run_step(folder, step, environ, limit)
        if code != 0 or not mark.is_file():
            raise BuildError(
                "build.step-failed",
                f"step {step} {ending(code, limit)}: see the output above",
                "nothing was published; fix the cause and run install.sh again to continue",
                *([MORE_TIME] if code is None else []),
            )


def run_step(folder: Path, step: str, environ: "Mapping[str, str]", limit: float) -> "int | None":
    """Return the exit code of a step; None if it was ended after *limit* seconds."""
    code = None
    with contextlib.ExitStack() as held:
        held.enter_context(signals_held_back())
        words = ["bash", str(folder / "build.sh"), step]
        running = Running(popen(words, environ, folder, None, None))
        try:
            held.close()
            code = running.wait(limit)
        finally:
            if code is None:
                running.end()
    return code


def prove_all(
    folder: Path, facts: "dict[str, Any]", home: Home, environ: "Mapping[str, str]", candidate: bool
) -> "list[dict[str, Any]]":
    """Run the smoke tests; return their records. Raises SmokeError."""
    proving = dict(facts["proving"], candidate=candidate)
    environment = read_text(folder / "environment.sh")
    for proof in proving["proofs"]:
        script = read_text(folder / proof["smoke"])
        proof["files"] = {"environment.sh": environment, "smoke.sh": script}
        say(f"== smoke test: {proof['api']} over {proof['transport']}")
    proved = prove(proving, home, facts["id"], environ)
    last = proved[-1]
    if refuted(last["result"], candidate):
        reasons = [line for each in last["result"]["reasons"] for line in each.splitlines()]
        raise SmokeError(
            "smoke.failed",
            "\n  ".join(["the smoke test failed:", *reasons]),
            "nothing was published; existing environments are unchanged",
            f"log and records of every rank: {home.evidence(facts['id']) / last['log']}",
        )
    return proved


def install(
    bundle: Path,
    facts: "dict[str, Any]",
    root: Root,
    environ: "Mapping[str, str]",
    options: argparse.Namespace,
) -> "Version | None":
    """Build, prove and publish; return the version, or None if no proof was requested."""
    home = open_home(root, facts["name"])
    group = home.group
    with sharing.readable(group), locks.hold(home.lock_file, say=say, group=group) as holder:
        heal_registry(home, say)
        version = publish.find_reserved(home, facts["id"])
        if version and publish.is_published(home, version):
            name = f"{home.name}/{version.number}"
            say(f"{name} already has exactly this content")
            manifests.check_unchanged(home, version, say=say)
        else:
            version = make(bundle, facts, home, holder.environ(environ), options)
        if version is None:
            return None
        name, about = f"{home.name}/{version.number}", facts["proving"]["about"]
        kinds = passed_kinds(home.evidence(version.id), about, read_earlier(home.root))
        for proof in facts["proving"]["proofs"]:
            # Evidence that is lost proves nothing.
            kinds.setdefault((proof["api"], proof["transport"]), False)
        if not any(kinds.values()):
            say(f"it has no proof; run envbuild smoke {name} --root '{home.root}'")
        if not all(kinds.values()):
            say(f"{name} is a candidate: not proved, not made the default")
        else:
            with locks.hold(home.default_lock, say=say, group=group):
                publish.set_default(home, version)
    return version


def make(
    bundle: Path,
    facts: "dict[str, Any]",
    home: Home,
    environ: "Mapping[str, str]",
    options: argparse.Namespace,
) -> "Version | None":
    """Build, prove and publish an environment that is not published yet."""
    identity, folder = facts["id"], home.build(facts["id"])
    try:
        copy(bundle, facts, home)
        build(folder, facts["steps"], environ)
    finally:
        sharing.share_trees(home.group, folder, home.prefix(identity))
    if options.skip_smoke:
        return None
    proved = prove_all(folder, facts, home, environ, options.candidate)
    publish.tidy(folder)
    version = publish.reserve(home, identity, facts["dialect"])
    # The proof that says most: the recipe's own runtime, if it is not the bundled one.
    telling = next((each for each in proved if each["result"]["api"] != "numpy"), proved[0])
    text = read_text(bundle / facts["modulefile"])
    text = text.replace(facts["placeholder"], str(home.root))
    publish.publish(home, version, filled(text, version.number, telling, version.dialect))
    return version


def install_below(options: argparse.Namespace, environ: "Mapping[str, str]") -> None:
    """Install in a new or existing root, and print the result."""
    facts, root = facts_of(options.bundle), options.root
    # Bundles of several sites may share a root: each lock says whose it is.
    opened = open_root(root, facts["site"], facts["arch"], options.shared, others=True)
    version = install(options.bundle, facts, opened, environ, options)
    if version is None:
        say("built, but not published; run install.sh again where ranks can start")
    else:
        name = f"{facts['name']}/{version.number}"
        say(f"installed: module use {root / 'modulefiles'}; module load {name}")
    if facts["job"]:
        folder = root / facts["name"] / f"{facts['id']}.build"
        say(f"example job: {facts['submit']} {folder / facts['job']}")


def main(arguments: "list[str]") -> int:
    """Install; return the exit code."""
    parser = argparse.ArgumentParser(description="Install a bundle.")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--skip-smoke", action="store_true", help="build only, do not publish")
    how.add_argument(
        "--candidate",
        action="store_true",
        help="publish a candidate (tier imported) if there is no GPU",
    )
    parser.add_argument("--shared", metavar="GROUP", help="share a new root with a group")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("root", type=Path)
    options = parser.parse_args(arguments)
    return in_root.run(lambda environ: install_below(options, environ), "nothing was published")

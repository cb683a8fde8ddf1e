"""On this machine: built in a root, proved on its ranks, published as a module."""

from __future__ import annotations

import sys
from pathlib import Path

from ...build.scripts import build as run_steps
from ...build.scripts import hand_over, prepare
from ...errors import SmokeError
from ...model.evidence import Evidence, Tier, telling
from ...model.outcome import CreateResult
from ...model.plan import Lock
from ...render.modulefile import render_modulefile
from ...root.environments import places_of
from ...target_tools import sharing
from ...target_tools.root import layout, publish
from ..launch_requests import example, script_start
from ..prove import prove as run_smoke_tests
from ..prove import smoke_starts
from ..root_lock import downloads_of, explain_rebuild
from ..secret_links import obtain_secret_links
from ..texts import attestations, dialect_of
from .protocol import CreateRequest
from .root import (
    begin,
    check_tier,
    hold,
    home_of,
    make_default,
    proved_result,
    published_number,
    root_lock,
)

HIGHEST_TIER: Tier = "several nodes"
OWN_ARCH = True
OTHER_ARCH = False


def make(request: CreateRequest) -> CreateResult:
    """Build, prove and publish; what is published already only becomes the default."""
    with hold(request) as held:
        lock = root_lock(held)
        number = published_number(held, lock)
        if number is None:
            _build(held, lock)
            number = _publish(held, lock, _prove(held, lock))
        published = proved_result(held, lock, number)
        make_default(held, number)
        return published


def _build(request: CreateRequest, lock: Lock) -> None:
    """Run every step of the build script. Raises BuildError."""
    home, context = home_of(request), request.context
    explain_rebuild(home, lock, context)
    # What cannot be started is told before it is built.
    facts = request.facts(lock)
    smoke_starts(facts, context)
    places = places_of(home, lock.id())
    downloads = downloads_of(home)
    kept = places.build / "wheelhouse" if request.options.resume else None
    obtain_secret_links(lock, downloads, context, kept)
    begin(request, lock)
    texts = request.texts(lock, places, script_start(facts)) | attestations(lock)
    prepare(places.build, texts, request.plan_inputs.runtime_source)
    hand_over(lock, downloads, places.build)

    def explain(log: Path) -> tuple[str, ...]:
        return request.build_hints(log, request.plan_inputs.knowledge.value)

    try:
        with context.reporter.steps(lock.plan.steps) as listener:
            # Of the steps before there is a Python in the prefix.
            environ = {"ENVBUILD_PYTHON": sys.executable, **context.environ}
            run_steps(lock, places.build, environ, listener, explain)
    finally:
        sharing.share_trees(home.group, places.build, places.prefix)


def _prove(request: CreateRequest, lock: Lock) -> tuple[Evidence, ...]:
    """Run the smoke tests and keep their records.

    Raises SmokeError, or BuildError where the tier is lower than required.
    """
    home = home_of(request)
    proofs = run_smoke_tests(lock, home, lock.id(), request.facts(lock), request.context)
    if proofs[-1].result.verdict != "passed":
        raise _smoke_error(home, lock, proofs[-1])
    check_tier(request.options.require_tier, lock, proofs, "nothing was published")
    return proofs


def _publish(request: CreateRequest, lock: Lock, proofs: tuple[Evidence, ...]) -> int:
    """Write the modulefile of what was built and proved; return its number."""
    home, dialect = home_of(request), dialect_of(request.plan_inputs)
    places = places_of(home, lock.id())
    publish.tidy(places.build)
    version = publish.reserve(home, lock.id(), dialect)
    shown = example(request.facts(lock))
    text = render_modulefile(lock, places, version.number, telling(proofs), dialect, shown)
    publish.publish(home, version, text)
    return version.number


def _smoke_error(home: layout.Home, lock: Lock, evidence: Evidence) -> SmokeError:
    folder = home.evidence(lock.id())
    return SmokeError(
        "smoke.failed",
        "the smoke test failed:\n"
        + "\n".join(f"  {line}" for line in evidence.result.failure_lines()),
        "nothing was published; published environments are unchanged",
        f"log and records of every rank: {folder / evidence.log}",
        f"to examine the environment: bash '{home.build(lock.id()) / 'shell.sh'}'",
    )

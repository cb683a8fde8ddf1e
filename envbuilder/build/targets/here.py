"""On this machine: built in a root, proved on its ranks, published as a module."""

from __future__ import annotations

from ...model.evidence import Tier
from ...model.outcome import CreateResult
from .protocol import Stages

HIGHEST_TIER: Tier = "several nodes"
OWN_ARCH = True
OTHER_ARCH = False


def make(stages: Stages) -> CreateResult:
    """Build, prove and publish; what is published already only becomes the default."""
    with stages.hold() as held:
        lock = held.root_lock()
        number = held.published_number(lock)
        if number is None:
            held.build(lock)
            number = held.publish(lock, held.prove(lock))
        held.make_default(number)
        return held.result(lock, number)

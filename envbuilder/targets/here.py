"""On this machine: built in a root, proved on its ranks, published as a module."""

from __future__ import annotations

from ..model.evidence import Tier
from ..model.outcome import CreateResult
from .protocol import Stages

HIGHEST_TIER: Tier = "several nodes"
OTHER_ARCH = False


def make(stages: Stages) -> CreateResult:
    """Build, prove and publish; what is published already only becomes the default."""
    with stages.environment() as environment:
        lock = environment.lock()
        number = environment.published_number(lock)
        if number is None:
            environment.build(lock)
            number = environment.publish(lock, environment.prove(lock))
        environment.make_default(number)
        return environment.result(lock, number)

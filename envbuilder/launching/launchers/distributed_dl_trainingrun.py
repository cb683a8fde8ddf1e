"""The collective runtime's launcher, in the lower case spelling."""

from __future__ import annotations

from ...model.launch import LaunchRequest, Words
from .options import hosts_and_slots
from .protocol import Traits

COMMAND: Words = ("distributed-dl-trainingrun",)
TRAITS = Traits()


def options(request: LaunchRequest) -> Words:
    """Return its options."""
    gloo = ("--gloo",) if request.transport.gloo else ()
    return (*gloo, "-np", str(request.ranks), *hosts_and_slots(request))

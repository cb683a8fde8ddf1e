"""Launch lines and host lists: pure, from what is wanted to the words of a command."""

from .hosts import (
    Host,
    Hosts,
    hostfile,
    hosts_argument,
    lsf_hostfile,
    lsf_hosts,
    slurm_hosts,
    text_of,
    with_slots,
)
from .lines import KINDS, launch_line
from .request import JobHosts, Kind, LaunchRequest, Mpi, Scheduler, Wire
from .shape import Shape, check_node, site_shape

__all__ = [
    "KINDS",
    "Host",
    "Hosts",
    "JobHosts",
    "Kind",
    "LaunchRequest",
    "Mpi",
    "Scheduler",
    "Shape",
    "Wire",
    "check_node",
    "hostfile",
    "hosts_argument",
    "launch_line",
    "lsf_hostfile",
    "lsf_hosts",
    "site_shape",
    "slurm_hosts",
    "text_of",
    "with_slots",
]

"""The command line of IBM's ``ddlrun``, where the alias ``ddl`` is enabled.

    ddlrun -H server1,server2 python train.py

It starts one rank for each GPU of each host, and tells programs the layout in DDL_OPTIONS.

Sources: OLCF's user guide, "IBM Watson Machine Learning CE" (--nodes, --racks, --aisles: their
product is the number of nodes); the documentation of Bede, "WMLCE" (a line that ddlrun prints:
DDL_OPTIONS="-mode p:4x1x1x1"); job scripts of czbiohub/compmicro_nvidia_poc and CAGNET
(--accelerators, --mpiarg, -x).
"""

import glob
import shlex
import sys
from typing import Any, Dict, List, Sequence

from distributed_dl_training.launch._hosts import Host, UsageError

PROGRAM = "ddlrun"


def add_options(parser: Any) -> None:
    """Add the options of ddlrun."""
    add = parser.add_argument_group("options of IBM's ddlrun").add_argument
    text = "ranks on each host; default: the number of GPUs of this machine"
    add("-accelerators", "--accelerators", type=int, metavar="N", help=text)
    add("--nodes", type=int, metavar="N", help="nodes in a rack; default: all")
    add("--racks", type=int, default=1, metavar="N", help="racks in an aisle; default 1")
    add("--aisles", type=int, default=1, metavar="N", help="aisles; default 1")
    text = "words for mpiexec; -x NAME as without it; may be given several times"
    add("--mpiarg", action="append", default=[], metavar="WORDS", help=text)


def join_words(arguments: Sequence[str]) -> List[str]:
    """Return arguments with ``--mpiarg -v`` as one word: argparse takes -v for an option."""
    words: List[str] = []
    for argument in arguments:
        if words[-1:] == ["--mpiarg"]:
            words[-1] += f"={argument}"
        else:
            words.append(argument)
    return words


def apply_options(options: Any, hosts: Sequence[Host]) -> List[Host]:
    """Return the hosts with a slot for each rank; move ``--mpiarg`` to where our options are."""
    for argument in options.mpiarg:
        words = shlex.split(argument)
        if words[:1] == ["-x"]:
            options.exports = [*options.exports, *words[1:]]
        else:
            options.mpi_args = " ".join(filter(None, [options.mpi_args, argument]))
    if options.accelerators is None:
        options.accelerators = len(glob.glob("/dev/nvidia[0-9]*"))
    if not options.accelerators:
        options.accelerators = 1
        sys.stderr.write(f"{PROGRAM}: no GPU here: 1 rank on each host; see --accelerators\n")
    if options.accelerators < 0:
        raise UsageError(f"--accelerators {options.accelerators} is not a number above 0")
    return [Host(host.name, options.accelerators) for host in hosts]


def layout(options: Any, hosts: Sequence[Host]) -> Dict[str, str]:
    """Return the variables that tell ranks the layout.

    Raises UsageError unless nodes, racks and aisles make up the hosts.
    """
    groups = options.racks * options.aisles
    nodes = options.nodes or max(1, len(hosts) // max(1, groups))
    if nodes * groups != len(hosts):
        raise UsageError(
            f"{nodes} nodes in a rack, {options.racks} racks in an aisle and {options.aisles} "
            f"aisles are not {len(hosts)} hosts"
        )
    mode = f"{options.accelerators}x{nodes}x{options.racks}x{options.aisles}"
    racks = {"DDLT_NODES_PER_RACK": str(nodes)} if groups > 1 else {}
    return {"DDL_OPTIONS": f"-mode p:{mode}", **racks}

"""Host lists, in every form that people and schedulers write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuilder.errors import UsageError
from envbuilder.launching.hosts import hostfile, hosts_argument
from envbuilder.launching.schedulers import lsf
from envbuilder.launching.schedulers.lsf import lsf_hostfile, lsf_hosts
from envbuilder.launching.schedulers.slurm import node_names, slurm_hosts
from envbuilder.model.launch import Host, Hosts, LaunchNode, text_of

SUMMIT = "batch2 1 a01n02 42 a01n03 42"


def of(*pairs: tuple[str, int]) -> Hosts:
    return tuple(Host(name, slots) for name, slots in pairs)


def mcpu(text: str) -> Hosts:
    return lsf_hosts(text, launch_node=True)


def djob(text: str) -> Hosts:
    return lsf_hostfile(text, launch_node=True)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("server1:4,server2:4", of(("server1", 4), ("server2", 4))),
        ("localhost:4", of(("localhost", 4))),
        ("a", of(("a", 1))),
        ("a,b,a", of(("a", 2), ("b", 1))),
        (" a:2 , b.example.org:1 ", of(("a", 2), ("b.example.org", 1))),
    ],
)
def test_hosts_argument(text: str, hosts: Hosts) -> None:
    assert hosts_argument(text) == hosts


HOSTFILE = """\
# our nodes
node1 slots=4
node2 slots=2 max_slots=4   # the small one
  node3:3

login
login
"""


def test_hostfile() -> None:
    assert hostfile(HOSTFILE) == of(("node1", 4), ("node2", 2), ("node3", 3), ("login", 2))


@pytest.mark.parametrize(
    ("nodelist", "tasks", "hosts"),
    [
        (
            "taurusml[1-2,7]",
            "4(x2),3",
            of(("taurusml1", 4), ("taurusml2", 4), ("taurusml7", 3)),
        ),
        ("n1", "1", of(("n1", 1))),
        # Slurm's order, not the alphabet's: the counts go by it.
        ("n[3,1-2],a1", "1,2,3,4", of(("n3", 1), ("n1", 2), ("n2", 3), ("a1", 4))),
        ("n[08-10]", "2(x3)", of(("n08", 2), ("n09", 2), ("n10", 2))),
        ("r[0-1]n[1-2]", "1(x4)", of(("r0n1", 1), ("r0n2", 1), ("r1n1", 1), ("r1n2", 1))),
    ],
)
def test_slurm(nodelist: str, tasks: str, hosts: Hosts) -> None:
    assert slurm_hosts(nodelist, tasks) == hosts


def test_lsf_on_summit_leaves_the_launch_node_out() -> None:
    assert mcpu(SUMMIT) == of(("a01n02", 42), ("a01n03", 42))
    assert djob("batch2\n" + "a01n02\n" * 42 + "a01n03\n" * 42) == mcpu(SUMMIT)
    hosts = lsf.job_hosts({"LSB_MCPU_HOSTS": SUMMIT}, no_file, no_answer, LaunchNode(room=6))
    assert text_of(hosts) == "a01n02:6,a01n03:6"


def no_file(path: str, _called: str) -> str:
    raise AssertionError(f"nothing names the file {path}")


def no_answer(*words: str) -> str:
    raise AssertionError(f"nothing asks {words}")


def test_lsf_elsewhere_has_none() -> None:
    assert lsf_hosts("h1 4 h2 2", launch_node=False) == of(("h1", 4), ("h2", 2))
    assert lsf_hosts("h1 4 h1 2", launch_node=False) == of(("h1", 6))
    assert lsf_hostfile("h1\nh1\nh2\n", launch_node=False) == of(("h1", 2), ("h2", 1))


# More digits than Python converts to a number.
LONG = "1" * 5000


@pytest.mark.parametrize(
    ("read", "text", "place", "problem_id"),
    [
        (hosts_argument, "a:4,,b:4", "-H:1:5", "hosts.empty-entry"),
        (hosts_argument, "", "-H:1:1", "hosts.empty-entry"),
        (hosts_argument, "a:4,b:0", "-H:1:5", "hosts.malformed-slots"),
        (hosts_argument, "a:", "-H:1:1", "hosts.malformed-slots"),
        (hosts_argument, "a:four", "-H:1:1", "hosts.malformed-slots"),
        (hosts_argument, "a:4:4", "-H:1:1", "hosts.malformed-slots"),
        (hosts_argument, "a:4,b:4,a:4", "-H:1:9", "hosts.duplicate-host"),
        (hosts_argument, "a:4,a", "-H:1:5", "hosts.duplicate-host"),
        (hosts_argument, "a,--mca", "-H:1:3", "hosts.malformed-name"),
        (hosts_argument, "$(id)", "-H:1:1", "hosts.malformed-name"),
        (hosts_argument, "a b:2", "-H:1:1", "hosts.malformed-name"),
        (hostfile, "", "hostfile", "hosts.empty-file"),
        (hostfile, "# only this\n", "hostfile", "hosts.empty-file"),
        (hostfile, "a slots=4\n b slots=x\n", "hostfile:2:2", "hosts.malformed-slots"),
        (hostfile, "a slots=4 b\n", "hostfile:1:1", "hosts.unknown-keyword"),
        (hostfile, "a:4 slots=4\n", "hostfile:1:1", "hosts.unknown-keyword"),
        (hostfile, "a slots=4\na slots=4\n", "hostfile:2:1", "hosts.duplicate-host"),
        (node_names, "n[1-2", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "n[2-1]", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "n[]", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "n1,", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "@group", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "n1!n2", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, "-n1", "SLURM_JOB_NODELIST", "hosts.malformed-name"),
        (node_names, "n[1-2],n2", "SLURM_JOB_NODELIST", "job.duplicate-node"),
        (node_names, "n[1-999999999]", "SLURM_JOB_NODELIST", "job.too-many-nodes"),
        (node_names, f"n[1-{LONG}]", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (node_names, f"n{LONG}", "SLURM_JOB_NODELIST", "job.malformed-node-list"),
        (
            node_names,
            "r[1-9999]n[1-9999]",
            "SLURM_JOB_NODELIST",
            "job.too-many-nodes",
        ),
        (mcpu, "", "LSB_MCPU_HOSTS", "job.malformed-hosts"),
        (mcpu, "batch1 1 a01", "LSB_MCPU_HOSTS", "job.malformed-hosts"),
        (mcpu, "batch1 1", "LSB_MCPU_HOSTS", "job.no-hosts"),
        (mcpu, "h1 4 h2 4", "LSB_MCPU_HOSTS", "job.no-launch-node"),
        (mcpu, "batch1 1 a01 many", "LSB_MCPU_HOSTS", "hosts.malformed-slots"),
        (djob, "", "LSB_DJOB_HOSTFILE", "job.no-hosts"),
        (djob, "batch1\n", "LSB_DJOB_HOSTFILE", "job.no-hosts"),
        (djob, "batch1\na b\n", "LSB_DJOB_HOSTFILE:2:1", "hosts.malformed-name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    read: Callable[[str], object], text: str, place: str, problem_id: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    problem = caught.value.problems[0]
    assert problem.id == problem_id
    assert str(problem.place) == place


@pytest.mark.parametrize("tasks", ["4(x0)", "4(x2", "x", "", "4,", "0", "-1", "4(x999999)"])
def test_counts_of_tasks_that_are_none(tasks: str) -> None:
    with pytest.raises(UsageError) as caught:
        slurm_hosts("n1", tasks)
    assert caught.value.id == "job.malformed-task-counts"
    assert str(caught.value.problems[0].place) == "SLURM_TASKS_PER_NODE"


def test_variables_of_two_jobs_do_not_fit() -> None:
    with pytest.raises(UsageError) as caught:
        slurm_hosts("n[1-2]", "4(x3)")
    assert caught.value.id == "job.node-count-mismatch"


NAMES = st.lists(
    st.from_regex(r"[a-z][a-z0-9-]{0,6}[0-9]", fullmatch=True), min_size=1, unique=True
)


@given(NAMES, st.data())
def test_what_is_written_is_read_again(names: list[str], data: st.DataObject) -> None:
    slots = [data.draw(st.integers(1, 999)) for _ in names]
    hosts = of(*zip(names, slots, strict=True))
    assert hosts_argument(text_of(hosts)) == hosts
    assert hostfile("\n".join(f"{host.name} slots={host.slots}" for host in hosts)) == hosts
    assert lsf_hosts(" ".join(f"{h.name} {h.slots}" for h in hosts), launch_node=False) == hosts
    assert slurm_hosts(",".join(names), ",".join(map(str, slots))) == hosts


@given(st.text(alphabet="an1[]-,:(x) \n=$'!@/*\0é", max_size=30))
def test_any_text_is_hosts_or_a_usage_error(text: str) -> None:
    for read in (hosts_argument, hostfile, node_names, mcpu, djob, lambda t: slurm_hosts("n1", t)):
        assert read_or_error(read, text)


def read_or_error(read: Callable[[str], object], text: str) -> bool:
    """Whether *text* is read, or refused with its place."""
    try:
        return bool(read(text))
    except UsageError as error:
        return error.problems[0].place is not None

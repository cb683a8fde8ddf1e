"""Hosts, allocations and places, by table."""

import pytest

from distributed_dl_training.launch import _hosts
from distributed_dl_training.launch._hosts import Host, Place, UsageError


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("server1:4,server2:4", [("server1", 4), ("server2", 4)]),
        ("localhost", [("localhost", 1)]),
        ("a:1, b.example.org:12", [("a", 1), ("b.example.org", 12)]),
        ("10.0.0.1:2,[fe80::1]:3", [("10.0.0.1", 2), ("fe80::1", 3)]),
        ("a:2,b:1,a:2", [("a", 4), ("b", 1)]),
    ],
)
def test_hosts_of_the_command_line(text, hosts):
    assert _hosts.parse_hosts(text) == [Host(*host) for host in hosts]


@pytest.mark.parametrize("text", ["", "a:", "a:x", "a:0", "a:1,", "a:-1", "a b", "a:1:2"])
def test_wrong_hosts(text):
    with pytest.raises(UsageError):
        _hosts.parse_hosts(text)


def test_hostfile():
    text = "# nodes\n\naa slots=2\nbb:3  # the big one\ncc\naa slots=1 max_slots=4\n"
    expected = [Host("aa", 3), Host("bb", 3), Host("cc", 1)]
    assert _hosts.parse_hostfile(text, "f") == expected


@pytest.mark.parametrize(
    "text, place",
    [
        ("aa slots=two", "hosts:1"),
        ("aa slots=2\nbb 4\n", "hosts:2"),
        ("aa:2 slots=2", "hosts:1"),
        ("\n# none\n", "hosts names no host"),
        ("aa slot=2", "hosts:1"),
    ],
)
def test_wrong_hostfile_names_the_line(text, place):
    with pytest.raises(UsageError, match=place):
        _hosts.parse_hostfile(text, "hosts")


@pytest.mark.parametrize(
    "text, names",
    [
        ("node1", "node1"),
        ("taurusml[1-3,7]", "taurusml1 taurusml2 taurusml3 taurusml7"),
        ("a[08-10],b,c3", "a08 a09 a10 b c3"),
        ("r[1-2]n[1-2]-ib", "r1n1-ib r1n2-ib r2n1-ib r2n2-ib"),
        ("x[5]", "x5"),
        ("tux[9-11,098-100]", "tux9 tux10 tux11 tux098 tux099 tux100"),
    ],
)
def test_node_lists_of_slurm(text, names):
    assert _hosts.expand_nodes(text) == names.split()


@pytest.mark.parametrize("text", ["a[1-", "a]", "a[]", "a[x]", "a[3-1]", "a[1-99999999]", "a,,b"])
def test_wrong_node_lists(text):
    with pytest.raises(UsageError):
        _hosts.expand_nodes(text)


@pytest.mark.parametrize(
    "text, tasks",
    [("4", [4]), ("4(x2),1", [4, 4, 1]), ("2,1(x3)", [2, 1, 1, 1])],
)
def test_tasks_per_node(text, tasks):
    assert _hosts.parse_tasks_per_node(text) == tasks


def test_slurm_allocation():
    environ = {"SLURM_JOB_NODELIST": "n[1-2],m1", "SLURM_TASKS_PER_NODE": "4(x2),1"}
    expected = [Host("n1", 4), Host("n2", 4), Host("m1", 1)]
    assert _hosts.slurm_hosts(environ, _hosts.expand_nodes) == expected
    assert _hosts.find_hosts(None, None, environ, 3) == expected
    environ["SLURM_TASKS_PER_NODE"] = "4"
    with pytest.raises(UsageError, match=r"1 nodes.*names 3"):
        _hosts.slurm_hosts(environ)


def test_lsf_job_without_its_batch_node(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("batch1\n" + "h01\n" * 42 + "h02\n" * 42)
    expected = [Host("h01", 42), Host("h02", 42)]
    assert _hosts.find_hosts(None, None, {"LSB_DJOB_HOSTFILE": str(path)}, 4) == expected
    pairs = "lassen710 1 lassen3 40 lassen4 40"
    kept = [Host("lassen710", 1), Host("lassen3", 40), Host("lassen4", 40)]
    assert _hosts.lsf_hosts({"LSB_MCPU_HOSTS": pairs}) == kept
    assert _hosts.lsf_hosts({"LSB_MCPU_HOSTS": pairs, "CSM_ALLOCATION_ID": "7"}) == kept[1:]
    with pytest.raises(UsageError, match="pairs"):
        _hosts.lsf_hosts({"LSB_MCPU_HOSTS": "a 1 b"})


def test_the_command_line_wins_over_an_allocation():
    environ = {"SLURM_JOB_NODELIST": "n1", "SLURM_TASKS_PER_NODE": "4"}
    assert _hosts.find_hosts("a:2", None, environ, None) == [Host("a", 2)]
    assert _hosts.find_hosts(None, None, {}, 3) == [Host("localhost", 3)]
    with pytest.raises(UsageError, match="how many ranks"):
        _hosts.find_hosts(None, None, {}, None)
    with pytest.raises(UsageError, match="cannot read the hosts"):
        _hosts.find_hosts(None, "/nonexistent/hosts", {}, 3)


def test_ranks_fill_host_by_host():
    hosts = [Host("a", 2), Host("b", 3), Host("c", 4)]
    assert _hosts.place_ranks(hosts, 4, False) == [
        Place(0, "a", 0, 0, 2),
        Place(1, "a", 0, 1, 2),
        Place(2, "b", 1, 0, 2),
        Place(3, "b", 1, 1, 2),
    ]
    assert len(_hosts.place_ranks(hosts, None, False)) == 9


def test_more_ranks_than_slots():
    hosts = [Host("a", 2), Host("b", 1)]
    with pytest.raises(
        UsageError, match="7 ranks were asked for, and there are 3 slots on 2 hosts"
    ):
        _hosts.place_ranks(hosts, 7, False)
    places = _hosts.place_ranks(hosts, 7, True)
    assert [(place.host, place.local_rank, place.local_size) for place in places] == [
        *[("a", n, 6) for n in range(6)],
        ("b", 0, 1),
    ]

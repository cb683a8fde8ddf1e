"""What was proved is what users run: the lines of all uses, for every launcher at every site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from launch_table import Row, facts_of, hosts_of, page, rows, sites, smoke_on, text, users_request

from envbuilder.launching.launchers import LAUNCHERS, launch_line
from envbuilder.model.site import Site
from tests import goldens

PAGE = Path(__file__).parents[2] / "docs" / "launch-lines.md"
SITES = {site.name: site for site in sites()}

# All that a smoke test adds to the line of a user: more ranks than slots are no error.
ADDED: Mapping[str, Mapping[str, str]] = {
    "openmpi": {"slot:OVERSUBSCRIBE": "slot"},
    "spectrum-mpi": {
        "socket:overload-allowed": "socket",
        "socket:OVERSUBSCRIBE": "socket",
    },
}


def test_the_page_in_docs_is_this_table() -> None:
    goldens.compare(PAGE, page())


def proved(line: str, kind: str) -> str:
    """Return the line of a smoke test without what it adds."""
    for added, plain in ADDED.get(kind, {}).items():
        assert added in line.split()
        line = line.replace(added, plain)
    return line


@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_the_line_that_is_proved_is_the_one_that_is_printed(kind: str, site: Site) -> None:
    facts = facts_of(kind, site)
    hosts = hosts_of(facts)
    smoke = smoke_on(facts, hosts)
    users = users_request(facts, hosts.hosts if smoke.hosts else None)
    # Where nobody can start ranks, nothing proves that they can.
    printed, line = text(lambda: launch_line(users)), text(lambda: launch_line(smoke))
    assert (line if line.startswith("(none") else proved(line, smoke.kind)) == printed


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.site}-{row.launcher}")
def test_help_and_script_show_lines_of_one_kind(row: Row) -> None:
    """On one node the help and smoke.sh, on several the job's script and the verb."""
    of_kind = {use: line.split()[0] for use, line in row.lines.items()}
    # ddlrun starts no two ranks where there are more GPUs.
    assert of_kind["smoke.sh"] in (of_kind["module help, create"], "(none:")
    job, verb = row.lines["job script"], row.lines["launch, several nodes"]
    if not job.startswith("(none"):
        letters = {'"$hosts"': "H", '"$endpoint"': "E"}
        letters |= {'"${endpoint%:*}"': "E", '"${endpoint##*:}"': "P"}
        assert " ".join(letters.get(word, word) for word in job.split()) == named(verb)


def named(line: str) -> str:
    words = line.split()
    options = {"-H": "H", "--rdzv_endpoint": "E", "--main_process_ip": "E"}
    for option, letter in {**options, "--main_process_port": "P"}.items():
        if option in words:
            words[words.index(option) + 1] = letter
    return " ".join(words)

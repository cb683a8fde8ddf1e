"""What is known, as the command line tells it: list, show and check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.knowledge.matching import rows
from envbuilder.views import advisories as views
from tests.shipped import read_shipped
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough

COMPONENTS = """\
schema: 1
components:
  alpha: {summary: Talks, modules: [Alpha], fulfils: [talk]}
  beta: {summary: Talks too, fulfils: [talk]}
  gamma: {summary: Counts}
"""
ADVISORIES = """\
schema: 1
advisories:
  - id: TEST-001
    severity: error
    summary: hangs beside gamma
    fix: take alpha 1.3
    component: alpha
    affected: "==1.2"
    beside: {gamma: ">=2"}
    evidence: issue-report
    sources: ["https://example.org/issues/1", "https://example.org/issues/2"]
  - id: TEST-002
    severity: error
    unknown: error
    summary: loses data over Infiniband on Power machines, now and then, which nobody sees at first
    component: alpha
    affected: ["<1", "==1.4"]
    when: "'infiniband' in network and arch == 'ppc64le'"
    evidence: run
    note: Seen once.
    demoted: Nobody else saw it.
    symptom: "data lost"
    sources: ["https://example.org/issues/3"]
    remedies:
      - {id: no-loss, kind: variable, name: ALPHA_LOSS, value: "0", when: "os == 'x'",
         affected: "==1.4", source: "https://example.org/faq"}
  - id: TEST-003
    severity: warning
    summary: is slow
    component: beta
    affected: "*"
    when: flags.HOROVOD_TEST == '1' and ops.allreduce == 'NCCL'
    evidence: packager
    sources: ["https://example.org/issues/4"]
"""
COUPLINGS = """\
schema: 1
couplings:
  - id: TEST-004
    severity: warning
    summary: alpha 2 counts with gamma 3
    given: {alpha: {range: ">=2", origin: [pip]}}
    needs: {gamma: ">=3"}
    evidence: derived
    sources: ["https://example.org/issues/5"]
"""
FLAGS = """\
schema: 1
flags:
  HOROVOD_TEST: {summary: A test, kind: one, sources: ["https://example.org"]}
rules:
  - id: TEST-005
    severity: error
    summary: cannot be set
    runtime: gamma
    when: flags.HOROVOD_TEST == '1'
    evidence: source-statement
    sources: ["https://example.org/issues/6"]
"""
VERSIONS = """\
schema: 1
recorded: "2026-01-01"
source: made up
existing:
  alpha: {source: made up, versions: ["0.9", "1.2", "1.3", "1.4", "2.0"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with knowledge of its own, in front of what is shipped."""
    (tmp_path / "knowledge").mkdir()
    texts = {"components": COMPONENTS, "advisories": ADVISORIES, "couplings": COUPLINGS}
    for name, text in {**texts, "flags": FLAGS, "versions": VERSIONS}.items():
        (tmp_path / "knowledge" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def run(*words: str, folder: Path | None = None) -> Result:
    more = ["--recipes", str(folder)] if folder else []
    return CliRunner().invoke(app, ["advisories", *words, *more], env={"COLUMNS": "80"})


def ids(answer: Result) -> set[str]:
    assert answer.exit_code in (0, 4), answer.stderr
    return {each["id"] for each in json.loads(answer.stdout)["rows"]}


def fits(text: str) -> bool:
    """Whether every line fits a terminal; a link may reach out of it, to be copied whole."""
    lines = [line for line in text.splitlines() if len(line) > 80]
    return all(max(line.split(), key=len).startswith("https://") for line in lines)


def test_list_has_a_line_for_each_row(folder: Path) -> None:
    answer = run("list", folder=folder)
    assert answer.exit_code == 0
    lines = [line for line in answer.stdout.splitlines() if line.startswith("TEST-")]
    assert [line.split()[0] for line in lines] == [f"TEST-00{n}" for n in range(1, 6)]
    assert lines[0].split(maxsplit=2)[1:] == ["error", "alpha: hangs beside gamma"]
    assert lines[1].endswith("...")
    # A long summary is cut where the line is full.
    assert max(len(line) for line in answer.stdout.splitlines()) == 80


def test_list_by_component_by_its_kind_and_by_severity(folder: Path) -> None:
    def mine(*words: str) -> set[str]:
        found = ids(run("list", *words, "--json", folder=folder))
        return {each.removeprefix("TEST-") for each in found if each.startswith("TEST-")}

    assert mine("--component", "gamma") == {"001", "004", "005"}
    assert mine("--component", "beta") == {"003"}
    assert mine("--severity", "warning") == {"003", "004"}
    assert mine("--component", "alpha", "--severity", "error") == {"001", "002"}
    told = run("list", "--component", "gamma", "--severity", "info", folder=folder)
    assert told.stdout == "  no advisory matches\n"


_FACT, _VALUE, _FLAG = "fact.not-recognised", "option.unknown-value", "flag.unknown"


@pytest.mark.parametrize(
    ("words", "problem", "said"),
    [
        (("list", "--component", "alhpa"), "component.unknown", "'alpha'"),
        (("list", "--severity", "eror"), "option.unknown-value", "'error'"),
        (("show", "TEST-02"), "advisory.unknown", "'TEST-002'"),
        (("show", "\x1b[31m"), "advisory.unknown", "'\\x1b[31m'"),
        (("check", "alpah==1.2"), "component.unknown", "'alpha'"),
        (("check", "alpha"), "component.invalid-version", "'alpha'"),
        (("check", "alpha=1.2"), "component.invalid-version", "'alpha=1.2'"),
        (("check", "alpha=="), "component.invalid-version", "'alpha=='"),
        (("check", "alpha==*"), "component.invalid-version", "'alpha==*'"),
        (("check", "alpha==" + "1" * 65), "component.invalid-version", "'alpha==11"),
        (("check", "==1.2"), "component.unknown", "''"),
        (("check", "alpha==1.2", "alpha==1.3"), "component.two-versions", "1.2 and 1.3"),
        (("check", "alpha==1.2", "--arch", "ppc64"), "option.unknown-value", "'ppc64le'"),
        (("check", "alpha==1.2", "--fact", "network"), "fact.invalid-syntax", "'network'"),
        (("check", "alpha==1.2", "--fact", "netwrk=x"), "fact.unknown", "'network'"),
        (("check", "alpha==1.2", "--fact", "offline=maybe"), "fact.not-recognised", "'maybe'"),
        (("check", "alpha==1.2", "--fact", "network=infinband"), _FACT, "'infiniband'"),
        (("check", "alpha==1.2", "--fact", "network=roce,ib"), _FACT, "'ib'"),
        (("check", "alpha==1.2", "--fact", "arch=foo"), _FACT, "'foo'"),
        (("check", "alpha==1.2", "--fact", "glibc=abc"), _FACT, "'abc'"),
        (("check", "alpha==1.2", "--fact", "uses=elastc"), _FACT, "'elastic'"),
        (("check", "alpha==1.2", "--fact", "mpi.cuda_aware=no"), _FACT, "'no'"),
        (("check", "alpha==1.2", "--fact", "mpi.cuda_awre=true"), _FACT, "'cuda_aware'"),
        (("check", "alpha==1.2", "--fact", "spectrum-mpi.cxx=true"), _FACT, "'cxx'"),
        (("check", "alpha==1.2", "--fact", "ops.allreduce=MIP"), _VALUE, "'MPI'"),
        (("check", "alpha==1.2", "--fact", "alpah.cuda=true"), "component.unknown", "'alpha'"),
        (("check", "alpha==1.2", "--fact", "alpha.origin=pyp"), _VALUE, "'pip'"),
        (("check", "alpha==1.2", "--fact", "ops.alreduce=NCCL"), _VALUE, "'allreduce'"),
        (("check", "alpha==1.2", "--fact", "flags.HOROVOD_TST=1"), _FLAG, "'HOROVOD_TEST'"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(
    words: tuple[str, ...], problem: str, said: str, folder: Path
) -> None:
    answer = run(*words, "--json", folder=folder)
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, [problem])
    assert said in answer.stderr
    assert "\x1b" not in answer.stderr


def test_show_tells_everything(folder: Path) -> None:
    answer = run("show", "TEST-002", folder=folder)
    assert answer.exit_code == 0
    text = " ".join(answer.stdout.split())
    for part in (
        "loses data over Infiniband on Power machines, now and then, which nobody sees at first",
        "kind advisory",
        "severity error",
        "affected alpha <1 or ==1.4",
        "condition 'infiniband' in network and arch == 'ppc64le'",
        "not stated: error",
        "symptom data lost",
        "note Seen once.",
        "demoted Nobody else saw it.",
        "evidence run",
        "sources https://example.org/issues/3",
        "remedy no-loss: variable ALPHA_LOSS = 0",
        "for ==1.4",
        "where os == 'x'",
        "source https://example.org/faq",
    ):
        assert part in text
    assert fits(answer.stdout)
    plain = json.loads(run("show", "TEST-002", "--json", folder=folder).stdout)
    assert (plain["kind"], plain["remedies"][0]["value"]) == ("advisory", "0")


def test_show_a_coupling_and_a_rule_of_flags(folder: Path) -> None:
    coupling = " ".join(run("show", "TEST-004", folder=folder).stdout.split())
    assert "requires alpha >=2 from pip needs gamma >=3" in coupling
    assert "is missing: fine" in coupling
    rule = " ".join(run("show", "TEST-005", folder=folder).stdout.split())
    assert "kind flag rule severity error runtime gamma *" in rule


def test_check_of_versions_that_break_each_other_has_its_own_exit_code(folder: Path) -> None:
    answer = run("check", "alpha==1.2", "gamma==2.0", folder=folder)
    assert answer.exit_code == 4
    lines = answer.stdout.splitlines()
    assert lines[:4] == ["alpha==1.2 and gamma==2.0", "", "advisories:", lines[3]]
    assert lines[3].split() == ["TEST-001", "error", "hangs", "beside", "gamma"]
    assert "fix: take alpha 1.3" in answer.stdout
    assert "https://example.org/issues/1" in answer.stdout
    assert fits(answer.stdout)
    assert run("check", "alpha==1.3", "gamma==2.0", folder=folder).exit_code == 0
    assert run("check", "alpha==1.2", "gamma==1.9", folder=folder).exit_code == 0


def test_check_names_what_would_stand_beside(folder: Path) -> None:
    answer = run("check", "alpha==1.2", folder=folder)
    assert answer.exit_code == 0
    assert "no advisory applies" in answer.stdout
    assert "\nwould apply together with gamma (1 row)\n" in answer.stdout
    answer = run("check", "alpha==1.2", "--verbose", folder=folder)
    assert "together with:\n  gamma: TEST-001\n" in answer.stdout


def test_what_hangs_on_facts_is_grouped_by_the_fact_to_state(folder: Path) -> None:
    answer = run("check", "beta==1", "gamma==1", folder=folder)
    head = "--fact NAME=VALUE or --arch:"
    assert "flags.NAME by --fact NAME=VALUE or --arch: settles 2 rows\n" in answer.stdout
    answer = run("check", "beta==1", "gamma==1", "-v", folder=folder)
    assert f" {head}\n  flags.NAME: TEST-003, TEST-005\n" in answer.stdout


def test_a_remedy_lifts_what_it_lifts_in_a_plan(folder: Path) -> None:
    words = ("check", "alpha==1.4", "--arch", "ppc64le", "--fact", "network=infiniband")
    assert run(*words, folder=folder).exit_code == 4
    answer = run(*words, "--fact", "os=x", folder=folder)
    assert answer.exit_code == 0
    assert "when it builds: TEST-002\n" in answer.stdout
    told = run(*words, "--fact", "os=x", "--verbose", folder=folder).stdout
    assert "TEST-002  variable ALPHA_LOSS=0: loses data" in told
    rows = json.loads(run(*words, "--fact", "os=x", "--json", folder=folder).stdout)["rows"]
    (mine,) = [each for each in rows if each["id"] == "TEST-002"]
    assert (mine["verdict"], mine["remedy"]) == ("lifted", "variable ALPHA_LOSS=0")


# Horovod with the frameworks that it was released for, on an x86_64 machine: nothing known is bad.
GOOD = [
    "horovod==0.18.2 tensorflow==1.15.0 python==3.7.4 openmpi==3.1.4",
    "horovod==0.20.3 tensorflow==2.3.1 python==3.7.4 openmpi==4.0.5",
    "horovod==0.21.3 tensorflow==2.4.1 python==3.8.6 openmpi==4.0.5",
    "horovod==0.22.1 pytorch==1.8.1 python==3.8.6 openmpi==4.0.5",
    "horovod==0.23.0 pytorch==1.9.0 python==3.9.5 openmpi==4.1.1",
    "horovod==0.25.0 pytorch==1.11.0 python==3.9.5 openmpi==4.1.1",
    "horovod==0.28.1 pytorch==1.13.1 python==3.10.4 openmpi==4.1.4",
    "horovod==0.28.1 tensorflow==2.11.0 python==3.10.4 openmpi==4.1.4",
    "horovod==0.28.1 pytorch==1.13.1 python==3.10.12 openmpi==4.1.4 cuda==11.7 nccl==2.14.3 "
    "cudnn==8.5.0 numpy==1.23.5",
    "horovod==0.22.1 tensorflow==2.5.0 python==3.8.6 openmpi==4.0.5 cuda==11.2 nccl==2.8.4 "
    "cudnn==8.1.1 gcc==9.3.0",
]
LINES_OF_A_SCREEN = 24


@pytest.mark.parametrize("words", GOOD)
def test_what_is_known_to_be_good_is_not_bad_where_remedies_help(words: str) -> None:
    answer = run("check", *words.split(), "--arch", "x86_64", "--fact", "horovod.origin=build")
    assert answer.exit_code == 0, answer.stdout
    assert "HVD-132" not in answer.stdout.partition("lifted by")[0]
    assert len(answer.stdout.splitlines()) <= LINES_OF_A_SCREEN
    assert max(map(len, answer.stdout.splitlines())) <= 80
    # Stated less there is more to state, and it still fits.
    answer = run("check", *words.split())
    assert answer.exit_code == 0, answer.stdout
    assert len(answer.stdout.splitlines()) <= LINES_OF_A_SCREEN


def test_check_names_the_facts_that_a_condition_hangs_on(folder: Path) -> None:
    answer = run("check", "alpha==1.4", folder=folder)
    # The row says that it counts where it is not known whether it holds.
    assert answer.exit_code == 4
    assert "depends on: arch, network" in answer.stdout
    answer = run("check", "alpha==1.4", "--arch", "ppc64le", folder=folder)
    assert "depends on: network" in answer.stdout
    assert run("check", "alpha==1.4", "--arch", "x86_64", folder=folder).exit_code == 0
    words = ("check", "alpha==1.4", "--arch", "ppc64le", "--fact")
    answer = run(*words, "network=omnipath,infiniband", "--json", folder=folder)
    assert answer.exit_code == 4
    plain = json.loads(answer.stdout)
    assert plain["bad"] is True
    assert plain["asked"] == ["alpha==1.4"]
    (mine,) = [each for each in plain["rows"] if each["id"] == "TEST-002"]
    assert (mine["verdict"], mine["severity"], mine["open"]) == ("holds", "error", [])
    assert run(*words, "network=", folder=folder).exit_code == 0


def test_flags_are_unknown_until_one_is_stated(folder: Path) -> None:
    def verdicts(*facts: str) -> dict[str, str]:
        words = [word for fact in facts for word in ("--fact", fact)]
        answer = run("check", "beta==1", "gamma==1", *words, "--json", folder=folder)
        rows = json.loads(answer.stdout)["rows"]
        return {each["id"][-1]: each["verdict"] for each in rows if each["id"][:4] == "TEST"}

    # TEST-004 would hold beside an alpha, whatever the flags.
    assert verdicts() == {"3": "unknown", "5": "unknown", "4": "beside"}
    assert verdicts("flags.HOROVOD_TEST=1") == {"5": "holds", "4": "beside"}
    assert verdicts("flags.HOROVOD_TEST=0") == {"4": "beside"}
    both = verdicts("flags.HOROVOD_TEST=1", "ops.allreduce=NCCL")
    assert both == {"3": "holds", "5": "holds", "4": "beside"}


def test_only_true_is_taken_for_true() -> None:
    words = ["openmpi==4.1.4", "horovod==0.28.1", "--fact", "flags.HOROVOD_WITH_MPI=1", "--fact"]
    words += ["flags.HOROVOD_GPU_ALLREDUCE=MPI", "--fact"]
    assert run("check", *words, "mpi.cuda_aware=false").exit_code == 4
    for other in ("False", "no", "maybe", ""):
        assert run("check", *words, f"mpi.cuda_aware={other}").exit_code == 2
    assert run("check", *words, "mpi.cuda_aware=true").exit_code == 0


def test_an_origin_can_be_stated(folder: Path) -> None:
    def verdict(*words: str) -> list[str]:
        answer = run("check", "alpha==2.0", "gamma==1.0", *words, "--json", folder=folder)
        rows = json.loads(answer.stdout)["rows"]
        return [each["verdict"] for each in rows if each["id"] == "TEST-004"]

    assert verdict() == ["unknown"]
    assert verdict("--fact", "alpha.origin=pip") == ["holds"]
    assert verdict("--fact", "alpha.origin=module") == []


def test_a_release_that_does_not_exist_is_told(folder: Path) -> None:
    answer = run("check", "alpha==1.22", folder=folder)
    assert answer.exit_code == 0
    assert all(each in answer.stderr for each in ("warning", "1.22", "alpha", "2.0"))
    assert "warning" not in run("check", "alpha==1.3-gcc-2018b", folder=folder).stderr


def test_all_that_is_shipped_can_be_shown() -> None:
    listed = run("list")
    assert listed.exit_code == 0
    assert max((len(line) for line in listed.stdout.splitlines()), default=0) <= 80
    shipped = rows(read_shipped().value)
    assert len(listed.stdout.splitlines()) == len(shipped) or not shipped
    for each in shipped:
        text = views.row(each)
        assert text.startswith(f"{each.id}: ")
        assert fits(text), text

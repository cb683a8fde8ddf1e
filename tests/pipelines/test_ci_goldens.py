"""The pipelines of the documented sites, by each provider's own schema and word by word.

In full stand those of GitLab; ``test_providers.py`` has a small one of each provider.

ENVBUILD_UPDATE_GOLDENS=1 rewrites ci/summit, ci/taurus and ci/knowledge; read the difference before
you commit.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import tree_sitter
import tree_sitter_groovy
import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from envbuilder.ci.command import rows_of
from envbuilder.ci.jobs import pipeline
from envbuilder.ci.providers import PROVIDERS
from envbuilder.ci.values import Pipeline, shell_lines
from envbuilder.cli import app
from envbuilder.reporter import Report
from envbuilder.workflow.context import Context
from envbuilder.workflow.options import CiOptions
from tests import goldens

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

CI = Path(__file__).parents[2] / "ci"
WEEKLY = str(CI / "knowledge" / "site.yaml")
GITHUB = CI / "knowledge" / "envbuild.yml"
# Where a site's staff would put roots, and where the pipeline stands.
SITES = {
    "summit": ("/ccs/proj/envbuild", CI / "summit"),
    "taurus-ml": ("/projects/envbuild", CI / "taurus" / "ml"),
    "taurus-alpha": ("/projects/envbuild", CI / "taurus" / "alpha"),
    # The weekly job of the recorder alone.
    WEEKLY: (None, CI / "knowledge"),
}
GOLDEN = "gitlab-ci.yml"
SCHEMAS = {"gitlab": "gitlab-ci.json", "github": "github-workflows.json"}
EVERY = [(site, provider) for site in SITES for provider in PROVIDERS]


@cache
def of(site: str) -> Pipeline:
    """Return the pipeline of what is documented for a site; it is planned once."""
    silent = Report(io.StringIO(), io.StringIO(), quiet=True)
    context = Context(dict(os.environ), Path("/"), lambda: datetime.now(timezone.utc), silent)
    planned = rows_of(CiOptions(site=site, base=SITES[site][0]), context)
    return pipeline(planned, (), emulate=False)


@cache
def rendered(site: str, provider: str) -> str:
    return PROVIDERS[provider].render(of(site))


@cache
def parsed(site: str, provider: str) -> Any:
    return yaml.load(rendered(site, provider), Loader=_Yaml12)


def test_there_are_no_other_pipelines() -> None:
    folders = ("summit", "taurus", "knowledge")
    there = {path for folder in folders for path in (CI / folder).rglob("*")}
    assert {path for path in there if path.is_file()} == {
        *(folder / GOLDEN for _, folder in SITES.values()),
        Path(WEEKLY),
        GITHUB,
    }


@pytest.mark.parametrize("site", SITES)
def test_the_pipelines_that_are_checked_in(site: str) -> None:
    goldens.compare(SITES[site][1] / GOLDEN, rendered(site, "gitlab"))


def test_the_weekly_job_has_a_workflow_of_github_too() -> None:
    goldens.compare(GITHUB, rendered(WEEKLY, "github"))
    (job,) = of(WEEKLY).jobs
    cloned = [line.split()[-1] for line in job.before if line.startswith("git clone")]
    assert cloned == list(job.commands[0].words[2:-2])
    assert job.when == "weekly"


def test_the_verb_writes_the_same(tmp_path: Path) -> None:
    file = tmp_path / "Jenkinsfile"
    words = ["ci", "render", "--site", "summit", "--base", SITES["summit"][0]]
    done = CliRunner().invoke(app, [*words, "--provider", "jenkins", "--output", str(file)])
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert file.read_text(encoding="utf-8") == rendered("summit", "jenkins")


def problems(provider: str, value: Any) -> list[str]:
    """Return what a provider's published schema, which check-jsonschema brings, says of a value."""
    import jsonschema  # lazy import: a second of CPU, in each process that only collects tests

    folder = resources.files("check_jsonschema.builtin_schemas.vendor")
    schema = json.loads(folder.joinpath(SCHEMAS[provider]).read_text(encoding="utf-8"))
    return [
        each.message
        for each in jsonschema.validators.validator_for(schema)(schema).iter_errors(value)
    ]


class _Yaml12(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """As the providers read it: ``on`` is no boolean."""


_Yaml12.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in each if tag != "tag:yaml.org,2002:bool"]
    for first, each in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))


@pytest.mark.parametrize(("site", "provider"), [each for each in EVERY if each[1] in SCHEMAS])
def test_the_providers_schema_accepts_it(site: str, provider: str) -> None:
    assert problems(provider, parsed(site, provider)) == []


@pytest.mark.parametrize(
    ("provider", "old", "new"),
    [
        ("gitlab", "  script:\n", "  skript:\n"),
        ("gitlab", "    when: always\n", "    when: sometimes\n"),
        ("gitlab", "  stage: plan\n", "  stage: {plan: 1}\n"),
        ("github", "    runs-on:\n", "    runs:\n"),
        ("github", "    steps:\n", "    step:\n"),
        ("github", "permissions:\n  contents: read\n", "permissions:\n  contents: reed\n"),
    ],
)
def test_a_planted_mistake_is_found_by_the_schema(provider: str, old: str, new: str) -> None:
    text = rendered("summit", provider)
    assert old in text
    assert problems(provider, yaml.load(text.replace(old, new, 1), Loader=_Yaml12)) != []


def groovy(text: str) -> bool:
    """Return whether a parser of Groovy takes a text."""
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_groovy.language()))
    return not parser.parse(text.encode()).root_node.has_error


@pytest.mark.parametrize("site", SITES)
def test_a_parser_of_groovy_accepts_the_jenkinsfile(site: str) -> None:
    text = rendered(site, "jenkins")
    assert groovy(text)
    assert not groovy(text.replace("'rm", "rm'", 1))
    assert not groovy(text.rstrip().removesuffix("}"))


def scripts(site: str, provider: str) -> Iterator[str]:
    """Yield every line of shell of a pipeline, as the provider's file has it."""
    if provider == "jenkins":
        text = rendered(site, provider)
        for line in re.findall(r"^ *'((?:[^'\\]|\\.)*)',$", text, re.MULTILINE):
            yield re.sub(r"\\(.)", r"\1", line)
        return
    value = parsed(site, provider)
    if provider == "gitlab":
        for job in value.values():
            if isinstance(job, dict):
                yield from job.get("script", ())
        return
    for job in value["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").splitlines()


@cache
def command_line() -> TyperGroup:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def check_words(words: list[str]) -> None:
    """Have the command line parse words, without running the verb. Raises where it refuses them."""
    group = command_line()
    command = group.commands[words[0]]
    rest = words[1:]
    if isinstance(command, TyperGroup):
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context(words[0], list(rest))


@pytest.mark.parametrize(("site", "provider"), EVERY)
def test_every_command_is_one_of_envbuild(site: str, provider: str) -> None:
    found = []
    for line in scripts(site, provider):
        words = shlex.split(re.split(r" 2>&1 \| | > ", line)[0])
        if "envbuild" in words and words[0] != "module":
            found.append(words[words.index("envbuild") + 1 :])
    expected = [list(each.words) for job in of(site).jobs for each in job.commands]
    assert sorted(found) == sorted(expected)
    for words in {tuple(each) for each in found}:
        check_words(list(words))


@pytest.mark.parametrize(
    "words",
    [["plan", "allreduce", "--sites", "x"], ["smoke", "--root", "x"], ["bundle", "put", "x"]],
)
def test_a_planted_word_is_refused(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"No such option|Missing|put"):
        check_words(words)


def test_what_starts_ranks_is_in_a_job_of_the_scheduler() -> None:
    for site in SITES:
        for job in of(site).jobs:
            lead = job.runner.in_job
            lines = shell_lines(job, in_job=False)[2 + len(job.before) :]
            for command, line in zip(job.commands, lines, strict=True):
                inside = bool(lead) and shlex.split(line)[: len(lead)] == list(lead)
                assert inside == (
                    job.stage in ("prove", "publish", "image", "prove-again") and command.ranks
                )
    # Where the runner is in one itself, its options are all that is said.
    assert not any("bsub" in line for line in scripts("summit", "gitlab"))
    assert "SCHEDULER_PARAMETERS: -nnodes 1 -W 0:30" in rendered("summit", "gitlab")


@pytest.mark.parametrize("site", SITES)
def test_jobs_come_after_what_they_need(site: str) -> None:
    seen: set[str] = set()
    for job in of(site).jobs:
        assert set(job.takes) <= set(job.needs) <= seen
        seen.add(job.id)
    assert len(seen) == len(of(site).jobs)

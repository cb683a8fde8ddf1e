"""environment.yml: what ``conda env create -f`` and ``mamba env create -f`` take.

Of a plan with conda channels the file holds what was planned, from the plan's channels. A plan
for a virtualenv is put into conda's words: conda makes a Python of its own, so what the site's
modules bring is not in the file but named in a comment: those modules are loaded before. Only
python itself is in both, in the same series, because the modules' PYTHONPATH is for that series.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from ...errors import UsageError
from ...formats.environment_yml import pinned
from ...formats.lock import packages_of
from ...knowledge.channels import CHANNEL_ORIGINS, match_spec, package_name, spec_name
from ...knowledge.components import Component
from ...knowledge.ranges import series_text
from ...model.plan import Edit, Lock, Pin, Plan, SourceBuild
from ..quoting import Quoted, has_control, line, yaml
from ..requirements import pip_options
from ..subject import RenderInput
from ..templates import render as render_template

CHANNELS = ("conda-forge", "nodefaults")
# conda writes a variable into the scripts that activate the environment, between plain quotes:
# single ones for bash and zsh, double ones for csh and fish (conda/activate.py, export_var_tmpl).
_NOT_IN_QUOTES = frozenset("'\"`$\\!")
# Series of what no knowledge names one for: its feature release.
_FEATURE = 2


def render(subject: RenderInput) -> str:
    """Return the environment file of a plan.

    Raises UsageError for a variable that conda cannot set without a shell running what it says.
    """
    plan = subject.plan
    conda, pip, outside = _sort_pins(plan, subject.knowledge.components)
    if isinstance(subject.source, Lock) and subject.source.conda_packages:
        conda, pip = _locked(subject.source)
    # Without nodefaults conda puts its own channels behind these.
    channels = [*(each.url for each in plan.channels), "nodefaults"] if plan.channels else CHANNELS
    return render_template(
        "conda/environment.yml.j2",
        name=yaml(plan.recipe),
        comments=[Quoted(f"# {line(each)}" if each else "#") for each in _comments(plan, outside)],
        channels=[yaml(each) for each in channels],
        dependencies=[
            Quoted(f"{yaml(text)}  # {line(remark)}") if remark else yaml(text)
            for text, remark in conda
        ],
        pip=[yaml(each) for each in pip],
        variables=[(yaml(name), yaml(value)) for name, value in _variables(plan.environment)],
    )


def _sort_pins(
    plan: Plan, known: Mapping[str, Component]
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return conda's lines, each with a remark or none, pip's, and what neither installs."""
    conda: list[tuple[str, str]] = []
    pip: list[str] = []
    outside: list[str] = []
    for pin in (*plan.pins, *plan.build_pins):
        remark = "to build with" if pin in plan.build_pins else ""
        component = known.get(pin.component)
        name = component.conda if component else None
        if pin.origin in CHANNEL_ORIGINS:
            conda.append((match_spec(pin.locator, pin.version), remark))
        elif pin.component == "python":
            remark = f"of the series of {pin.locator}" if pin.origin == "module" else ""
            conda.insert(0, (_spec("python", pin, component), remark))
        elif pin.origin == "module":
            outside.append(str(pin))
        elif pin.origin == "build":
            continue
        elif pin.origin == "pip" and (_stays_with_pip(plan) or name is None):
            pip.append(f"{pin.locator}=={pin.version}")
        elif name is None:
            outside.append(str(pin))
        else:
            conda.append((_spec(name, pin, component), remark))
    named = {package_name(pin.locator) for pin in (*plan.pins, *plan.build_pins)}
    conda += [(each, "") for each in plan.conda_specs if spec_name(each) not in named]
    pip += plan.packages
    if pip:
        conda.append(("pip", ""))
        pip = [*pip_options(plan), *pip]
    return conda, pip, outside


def _locked(lock: Lock) -> tuple[list[tuple[str, str]], list[str]]:
    """Return conda's lines and pip's where all packages are known, by version and build."""
    found = pinned(packages_of(lock)[0])
    conda = [(spec, "") for spec in found.specs]
    if found.pip and all(spec.partition("=")[0] != "pip" for spec in found.specs):
        conda.append(("pip", ""))
    return conda, [*found.pip]


def _stays_with_pip(plan: Plan) -> bool:
    """Whether what pip brings is left to it.

    So it is where conda was asked already, and where the stack stands on the site's modules: there
    a conda package in place of a wheel would bring an MPI, CUDA or C++ library of its own beside
    those of the modules.
    """
    return bool(plan.channels or plan.modules.loads)


def _spec(name: str, pin: Pin, component: Component | None) -> str:
    """Return a MatchSpec: just this version of what an index has, else its series.

    A version that a machine or module has need not be on a channel. conda writes '_' for '-', and
    knows no local versions such as 2.13.0+cpu.
    """
    if pin.origin == "pip":
        return f"{name}=={pin.version.partition('+')[0].replace('-', '_')}"
    parts = component.series if component and component.series else _FEATURE
    return f"{name}={series_text(pin.version, parts)}"


def _variables(edits: tuple[Edit, ...]) -> Iterator[tuple[str, str]]:
    """Yield the variables that conda sets; PATH and VIRTUAL_ENV are its own affair."""
    for edit in edits:
        if edit.kind != "set" or edit.in_prefix:
            continue
        bad = sorted(_NOT_IN_QUOTES.intersection(edit.value))
        if bad or has_control(edit.value):
            what = " ".join(bad) or "a control character"
            raise UsageError(
                "variable.shell-character",
                f"environment.yml cannot set {edit.name}: its value contains {what}, which the "
                "activation scripts of conda pass to the shell",
                "use the form script, lua or tcl, or remove the variable from the recipe",
            )
        yield edit.name, edit.value


def _comments(plan: Plan, outside: Sequence[str]) -> Iterator[str]:
    yield f"{plan.recipe}: {plan.summary}"
    yield f"For {plan.site}, {plan.arch}. conda solves all other packages, without hashes."
    if plan.channels:
        yield "  conda env create --prefix PREFIX --file FILE, with channel_priority: strict"
    for channel in plan.channels:
        for name, value in channel.accept.items():
            yield f"conda asks you to accept {channel.licence or channel.name};"
            yield f"  to accept it, set {name}={value} before."
    modules = plan.modules
    use = [f"module use {shlex.join(modules.trees)}"] if modules.trees and modules.loads else []
    yield from _listed(
        "Before conda, and before every activation, load the site's modules:",
        [*use, *(f"module {what} {name}" for what, name in modules.actions())],
    )
    yield from _listed("Provided by these modules or by the machine:", outside)
    yield from _listed(
        "conda cannot set these; set them by hand after activation:",
        [
            f"{edit.kind} {edit.name} {shlex.quote(edit.value)}".rstrip()
            for edit in plan.environment
            # A folder of the prefix is PATH, conda's own.
            if edit.kind != "set" and not edit.in_prefix
        ],
    )
    yield ""
    yield "conda does not build from source. Run in the active environment afterwards:"
    for build in plan.builds:
        yield f"  {_pip_command(build)}"
        yield from (f"    with the patch {name}" for name in build.patches)
    yield f"  pip install --no-deps --no-build-isolation runtime/   # {plan.runtime.package}"
    where = "import envbuilder.data as data; print(data.RUNTIME)"
    yield f'  (envbuild has that folder: python -c "{where}")'
    for finding in plan.waived:
        yield from ("", f"Waived: {finding.id}: {finding.summary} ({finding.reason})")


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", title, *(f"  {each}" for each in lines))


def _pip_command(build: SourceBuild) -> str:
    words = [f"{name}={value}" for name, value in {**build.flags, **build.environment}.items()]
    command = ["pip", "install", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    if build.tree:
        # pip checks out the submodules too.
        command += [*build.pip_options, f"git+{build.tree.url}@{build.tree.commit}"]
    else:
        command += [f"--no-binary={build.component}", *build.pip_options]
        command.append(f"{build.component}=={build.version}")
    # The prefix itself, or a folder in it.
    homes = [
        f'{name}="$CONDA_PREFIX"' + ("" if folder == "." else f"/{shlex.quote(folder)}")
        for name, folder in build.homes.items()
    ]
    env = [shlex.join(["env", *words])] if words or homes else []
    return " ".join([*env, *homes, shlex.join(command)])

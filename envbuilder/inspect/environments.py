"""An environment that exists, as the verbs that look at one read it: validate, recipes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..base import ModuleName, fits
from ..build.backends import BACKENDS
from ..errors import EnvbuildError, UsageError
from ..knowledge.conditions import Value
from ..machine.host import LocalMachine, is_file, is_there
from ..model.outcome import RowMatch
from ..model.plan import Lock
from ..model.runtime import own_component
from ..model.site import StatedModule
from ..resolve.facts import Facts
from ..resolve.names import names
from ..resolve.verdicts import StackFacts, row_matches
from ..root.environment_lock import read_lock
from ..root.environments import check_not_image, find
from ..root.environments import names as names_of
from ..runtimes import RUNTIMES
from ..target_tools.root.layout import Home, Version
from ..workflow.context import Context
from ..workflow.options import RootOptions
from ..workflow.places import find_root
from .facts import Environment
from .observation import seen
from .reading import read_environment
from .stack import InstalledStack, stack_of

_PUBLISHED = re.compile(r"[a-z0-9][a-z0-9._+-]*(/[0-9]+)?")


def environment_of(
    name: str | None, root: str | None, context: Context, *, loaded: bool = False
) -> Environment:
    """Return what an environment holds; None: the one that is active in this shell.

    *name*: a folder, or NAME[/N] of *root*. *loaded*: the modules that are loaded in this shell
    belong to it; None is then the Python that the shell runs. Raises UsageError if PATH is not a
    Python environment.
    """
    if loaded and name is None:
        return read_environment(_first_python(context), context.environ, loaded=True)
    prefix = prefix_of(name, root, context)
    lock = _lock_of_published(name, root, context)
    arch = lock.plan.arch if lock else None
    environment = read_environment(prefix, context.environ, loaded=loaded, arch=arch)
    return replace(environment, lock=lock)


def components_of(environment: Environment, context: Context) -> InstalledStack:
    """Return the components that are there, with those of loaded modules and of the site.

    What its lock takes from modules or the system is there when the environment's module is loaded.
    """
    provided = provided_by_modules(environment, context)
    stack = stack_of(environment, context.knowledge.components, provided)
    pins = environment.lock.plan.pins if environment.lock else ()
    outside = [
        pin
        for pin in pins
        if pin.origin in ("module", "system") and pin.component not in stack.versions
    ]
    return replace(
        stack,
        versions={**stack.versions, **{pin.component: pin.version for pin in outside}},
        origins={**stack.origins, **{pin.component: pin.origin for pin in outside}},
        places={
            **stack.places,
            **{pin.component: seen("lock.json", pin.locator, pin.version) for pin in outside},
        },
    )


def provided_by_modules(environment: Environment, context: Context) -> dict[str, dict[str, str]]:
    """Return the components that the loaded modules are, by the modules' names."""
    if not environment.modules:
        return {}
    known = names(context.knowledge.components, {}, {})
    fitting = (each.name for each in environment.modules if fits(ModuleName, each.name))
    return {name: known.provides(StatedModule(name=name)) for name in fitting}


def backend_of(environment: Environment) -> str | None:
    """Return which backend makes such environments; None: none does."""
    made_by = {each.TRAITS.environment: name for name, each in BACKENDS.items()}
    return made_by.get(environment.kind)


def rows_of(
    environment: Environment, stack: InstalledStack, context: Context, stated: Mapping[str, Value]
) -> tuple[RowMatch, ...]:
    """Return the rows of knowledge that say something of what is there.

    *stated*: facts that somebody states of where it runs, over those that it says itself.
    """
    backend = backend_of(environment)
    facts = {**stack.facts, **({"backend": backend} if backend else {}), **stated}
    runtime = own_component(RUNTIMES, stack.versions) or ""
    flags = Facts(facts, stack.flags, RUNTIMES.get(runtime), stack.versions.get(runtime))
    given = StackFacts(stack.versions, flags, stack.origins, complete=True, built=True)
    return row_matches(context.knowledge, given)


def _first_python(context: Context) -> Path:
    """Return the prefix of the Python that the shell runs, as Python finds it: site.py."""
    host = LocalMachine(context.environ)
    path = host.which("python3") or host.which("python")
    if path is None:
        raise UsageError(
            "python.not-on-path",
            "there is no python3 on PATH",
            "load a module that provides one",
        )
    if is_file(Path(path).parent.parent / "pyvenv.cfg"):
        return Path(path).parent.parent
    return Path(path).resolve().parent.parent


def _published(name: str | None, root: str | None, context: Context) -> tuple[Home, Version] | None:
    """Return the environment of a root that a name is for; None: it names a folder, or nothing."""
    if name is None or not _PUBLISHED.fullmatch(name):
        return None
    folder = is_there(context.path(name))
    if folder and root is None:
        return None
    there = find_root(RootOptions(root), context)
    # In the root itself its environments are folders of such names.
    if there is None or (folder and name.partition("/")[0] not in names_of(there, numbers=False)):
        return None
    return find(there, name)


def _lock_of_published(name: str | None, root: str | None, context: Context) -> Lock | None:
    """Return the lock of an environment of a root; None: it is none, or its lock is damaged."""
    published = _published(name, root, context)
    try:
        return read_lock(*published) if published else None
    except EnvbuildError:
        return None  # info --verify says what is wrong with it


def prefix_of(name: str | None, root: str | None, context: Context) -> Path:
    """Return the folder of an environment; arguments and errors as for ``environment_of``."""
    if name is not None:
        published = _published(name, root, context)
        if published is None:
            return context.path(name)
        home, version = published
        check_not_image(home, version)
        return home.prefix(version.id)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if active := context.environ.get(variable):
            return Path(active)
    raise UsageError(
        "environment.none-active",
        "no environment is active in this shell",
        "name one: envbuild validate PATH|NAME",
    )

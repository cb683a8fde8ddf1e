"""The modules of a live site: their trees, and what loading each of them does."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...base import Line, ModuleName, fits
from ...model.site import Site, SitePath, StatedModule, Tree
from ...target_tools.messages import one_line
from ..host import runs
from .modulefile_effects import Effects, Load
from .names import key, stem, version_part
from .shell import Modulefile, ModuleShell, modulefiles, padded, show, start
from .trees import tree_sha256
from .variants import variant

# So many modules of one kind are named in a note; the others are counted.
_NAMED = 5
# So many combinations of modules are recorded for one module that needs them.
_MOST_ALTERNATIVES = 200


@dataclass(frozen=True)
class SiteModules:
    """The modules of a site, with what a probe needs to look closer.

    ``folders``: what they put on PATH. ``effects``: what loading each does, in their order.
    ``notes``: what is wrong or odd, in words.
    """

    modules: tuple[StatedModule, ...]
    trees: tuple[Tree, ...]
    notes: tuple[str, ...]
    folders: tuple[str, ...]
    shell: ModuleShell
    effects: tuple[Effects, ...]


@dataclass
class _SiteModules:
    """The modules of a site while they are put together. ``by_name``: by names of their own."""

    preload: tuple[str, ...]
    loaded: tuple[str, ...] = ()
    effects: dict[str, Effects] = field(default_factory=dict)
    by_name: dict[str, Modulefile] = field(default_factory=dict)
    by_key: dict[str, list[Modulefile]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_modules(
    site: Site, environ: Mapping[str, str], trees: Sequence[str] | None = None
) -> SiteModules:
    """Read a site's module trees and what loading each module does; *trees* instead of the site's.

    Raises UsageError and MissingToolError like :func:`shell.start`. What is wrong with single
    modules is in the notes.
    """
    shell = start(site, environ, trees)
    look = _SiteModules(preload=site.preload, loaded=shell.loaded)
    _sort_in(look, modulefiles(shell))
    look.effects = show(shell, tuple(look.by_name.values()))
    modules = tuple(_modules(look))
    return SiteModules(
        modules=tuple(module for module, _ in modules),
        trees=_trees(shell, look),
        notes=tuple(look.notes),
        folders=tuple(folder for each in look.effects.values() for folder in each.folders("PATH")),
        shell=shell,
        effects=tuple(effects for _, effects in modules),
    )


def _sort_in(look: _SiteModules, files: Sequence[Modulefile]) -> None:
    """Keep the modulefiles that can be reached, one of each name and parents.

    Behind different compilers there are different modules of one name.
    """
    several: dict[str, list[Modulefile]] = {}
    for each in files:
        reached = _reached(each, look.preload, look.loaded)
        if reached is not None:
            several.setdefault(each.name, []).append(reached)
    unwritable = [name for name in several if not fits(ModuleName, name)]
    _note(look, "has an unsupported name and is left out", unwritable)
    for name in sorted(set(several) - set(unwritable)):
        those = sorted(several[name], key=lambda each: padded(each.path))
        chosen = {each.parents: each for each in those}
        if () in chosen:
            chosen[()] = next(each for each in those if not each.parents)
        for parents, each in sorted(chosen.items()):
            own = variant(name, parents) if len(chosen) > 1 else name
            look.by_name[own] = each
            look.by_key.setdefault(key(name), []).append(each)


def _reached(each: Modulefile, preload: Sequence[str], loaded: Sequence[str]) -> Modulefile | None:
    """Return the modulefile with what must be loaded beside the preloads; None: it is out of reach.

    What another module of a preload's name opens (modenv/scs5 beside modenv/ml) is out of reach,
    and so is that module itself. So is what another one than the preloads load (*loaded*) opens.
    """
    if any(key(name) == key(each.name) and name != each.name for name in preload):
        return None
    keys = {key(name): name for name in (*loaded, *preload)}
    alternatives = {
        tuple(name for name in alternative if name != keys.get(key(name)))
        for alternative in each.parents
        if all(keys.get(key(name), name) == name for name in alternative)
    }
    if each.parents and not alternatives:
        return None
    ordered = () if () in alternatives else sorted(alternatives, key=lambda one: (len(one), one))
    return replace(each, parents=tuple(ordered))


def _modules(look: _SiteModules) -> Iterator[tuple[StatedModule, Effects]]:
    for own, each in list(look.by_name.items()):
        why = look.effects[each.path].broken
        if why is not None:
            _leave_out(look, own, f"module show fails: {why}")
    # What loads a module that is left out cannot be loaded either.
    while lost := _that_cannot_be_loaded(look):
        for own, why in lost:
            _leave_out(look, own, why)
    made = {own: _module(look, each) for own, each in look.by_name.items()}
    wanted = _with_what_they_load(made, [n for n in made if not look.by_name[n].hidden])
    _note(look, "is hidden, no module loads it, and it is left out", sorted(set(made) - wanted))
    for own in sorted(wanted):
        yield made[own], look.effects[look.by_name[own].path]


def _leave_out(look: _SiteModules, own: str, why: str) -> None:
    look.notes.append(f"module {own} is left out: {why}")
    each = look.by_name.pop(own)
    look.by_key[key(each.name)].remove(each)


def _that_cannot_be_loaded(look: _SiteModules) -> list[tuple[str, str]]:
    lost = []
    for own, each in look.by_name.items():
        effects = look.effects[each.path]
        groups = [*((load,) for load in effects.loads if not load.optional), *effects.needs]
        for group in groups:
            if not any(_found(look, load) for load in group):
                missing = " or ".join(name for load in group for name in load.names)
                lost.append((own, f"it loads or needs {missing}, which does not exist"))
                break
    return lost


def _with_what_they_load(made: Mapping[str, StatedModule], names: Iterable[str]) -> set[str]:
    namesakes: dict[str, list[str]] = {}
    for own, module in made.items():
        namesakes.setdefault(module.name, []).append(own)
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        own = waiting.pop()
        if own not in reached:
            reached.add(own)
            waiting += [each for name in made[own].loads for each in namesakes.get(name, ())]
    return reached


def _module(look: _SiteModules, each: Modulefile) -> StatedModule:
    effects = look.effects[each.path]
    loads = [target for load in effects.loads if (target := _found(look, load))]
    # What a module unloads cannot stay beside it either.
    conflicts = [*effects.conflicts, *effects.unloads]
    return StatedModule(
        name=each.name,
        python=program(effects, "python3", systems="python" in stem(each.name)),
        home=_home(each, effects),
        loads=tuple(dict.fromkeys(loads)),
        parents=tuple(_parents(look, each, effects)),
        conflicts=tuple(one for one in dict.fromkeys(conflicts) if fits(Line, one)),
        families=tuple(one for one in effects.families if fits(Line, one)),
        default=each.default,
    )


def _found(look: _SiteModules, load: Load) -> str | None:
    """Return the full name of the module that a load means: bare names mean their default."""
    for name in load.names:
        named = any(each.name == name for each in look.by_key.get(key(name), ()))
        if named and load.lowest is None and load.highest is None:
            return name
        those = [each for each in look.by_key.get(name, ()) if _between(each, load)]
        if those:
            return max(those, key=lambda each: (not each.hidden, each.default, each.order)).name
    return None


def _between(each: Modulefile, load: Load) -> bool:
    version = padded(version_part(each.name))
    low, high = padded(load.lowest or ""), padded(load.highest or "")
    return low <= version and (not high or version <= high or version.startswith(high))


def _parents(look: _SiteModules, each: Modulefile, effects: Effects) -> list[tuple[str, ...]]:
    """Return what must be loaded before: what opens its tree, and what its file asks for.

    Needs of a bare name are met by every version of it. Where these are too many together, only the
    defaults are returned, and a note says so.
    """
    alternatives = list(each.parents) or [()]
    groups = [
        unique(name for load in need for name in _meeting(look, load)) for need in effects.needs
    ]
    if len(alternatives) * math.prod(map(len, groups)) > _MOST_ALTERNATIVES:
        look.notes.append(
            f"module {each.name} can be loaded after more than {_MOST_ALTERNATIVES} combinations "
            "of modules; only the default versions are recorded"
        )
        groups = [unique(_found(look, load) for load in need) for need in effects.needs]
    for names in groups:
        alternatives = [
            before if name in before else (*before, name)
            for before in alternatives
            for name in names
        ]
    return [] if alternatives == [()] else list(dict.fromkeys(alternatives))


def unique(names: Iterable[str | None]) -> list[str]:
    """Return names once each, in their order, without None."""
    return list(dict.fromkeys(name for name in names if name))


def _meeting(look: _SiteModules, load: Load) -> list[str]:
    """Return the modules that meet a need, the one that its name means first."""
    meant = _found(look, load)
    if meant is None or meant in load.names:
        return [meant] if meant else []
    those = [
        each.name
        for name in load.names
        for each in look.by_key.get(name, ())
        if _between(each, load) and not each.hidden
    ]
    return [meant, *sorted(those)]


def _home(each: Modulefile, effects: Effects) -> str | None:
    """Return the folder of its software: EasyBuild's variable, else one that sites use.

    Spack sets none: its modules put the folder itself on CMAKE_PREFIX_PATH.
    """
    variables = effects.variables
    word = re.sub(r"[\W_]", "_", stem(each.name)).upper()
    names = [name for name in variables if name.startswith("EBROOT")]
    # Of python3 also PYTHON_HOME.
    for bare in dict.fromkeys((word, word.rstrip("0123456789"))):
        names += [f"{bare}_HOME", f"{bare}_ROOT", f"{bare}_DIR", f"OLCF_{bare}_ROOT"]
        names.append(f"{bare}HOME")
    stated = [variables[name] for name in names if name in variables]
    prefixes = [each for each in effects.folders("CMAKE_PREFIX_PATH") if each != "/usr"]
    homes = (path.rstrip("/") for path in (*stated, *prefixes))
    return next((path for path in homes if fits(SitePath, path)), None)


# Where the system's own programs lie. A module whose home is /usr puts them on PATH as well, and
# brings none of them but what it is named after.
SYSTEM_FOLDERS = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"})


def program(effects: Effects, name: str, *, systems: bool) -> str | None:
    """Return the program *name* in the folders that the module itself puts on PATH.

    ``systems``: the system's folders count too.
    """
    folders = (folder.rstrip("/") for folder in effects.folders("PATH"))
    places = (f"{folder}/{name}" for folder in folders if systems or folder not in SYSTEM_FOLDERS)
    return next((path for path in places if fits(SitePath, path) and runs(path)), None)


def _trees(shell: ModuleShell, look: _SiteModules) -> tuple[Tree, ...]:
    """Return the trees that modules were found in, those in use first, each with its hash."""
    used = {each.tree for each in look.by_name.values()}
    ordered = [*(tree for tree in shell.trees if tree in used), *sorted(used)]
    unique = [tree for tree in dict.fromkeys(ordered) if fits(SitePath, tree)]
    return tuple(Tree(path=tree, sha256=tree_sha256(Path(tree))) for tree in unique)


def _note(look: _SiteModules, what: str, names: Sequence[str]) -> None:
    if not names:
        return
    first = ", ".join(one_line(name, 80) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    look.notes.append(f"module {first}{more} {what}")

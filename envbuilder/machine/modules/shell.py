"""A site's module system, started the way its document says, and what it answers.

Every question is asked in an environment where nothing but the site's ``preload`` is loaded, and
what loading a module does where nothing is loaded: a modulefile that loads what is not loaded yet
would hide that from somebody who has it loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import MissingToolError, UsageError
from ...model.site import Site
from ...process import Finished, run
from ...target_tools.files import parse_json
from ...target_tools.messages import one_line
from ...target_tools.proving.records import is_text, several
from ..host import first_line, is_file, is_folder, quiet_environment
from .modulefile_effects import Effects, of_lmod, of_tcl

# Seconds for a question about one or a few modules, and for one about all of a site: thousands of
# small files on a parallel file system take minutes.
PATIENCE = 60.0
LONG_PATIENCE = 1800.0

# So many modules are shown by one process. One that fails costs the answers about all of them.
BATCH = 100

is_names = several(several(is_text))

# What a module system keeps of the caller's loaded modules.
_STATE = ("_ModuleTable", "__LMOD_", "LMOD_FAMILY_", "LOADEDMODULES", "_LMFILES_", "__MODULES_")

# Plain words on standard error, nothing from a cache that may be older than the trees.
_PLAIN = {
    "LMOD_COLORIZE": "no",
    "LMOD_PAGER": "none",
    "LMOD_REDIRECT": "no",
    "LMOD_IGNORE_CACHE": "yes",
    "LMOD_QUIET": "yes",
    "MODULES_COLOR": "never",
    "MODULES_PAGER": "",
    "MODULES_REDIRECT_OUTPUT": "0",
}

_START = r"""
init=$1; shift
. "$init" >/dev/null || exit 71
module --force purge >/dev/null 2>&1 || module purge >/dev/null 2>&1
if [ "$1" != -- ]; then
  IFS=: read -r -a before <<<"${MODULEPATH:-}"
  for tree in "${before[@]}"; do module unuse "$tree"; done
fi
while [ "$1" != -- ]; do module use "$1" || exit 72; shift; done
shift
while [ "$1" != -- ]; do
  module load "$1"
  case ":$LOADEDMODULES:" in *":$1:"*) ;; *) printf '%s' "$1" >&3; exit 73 ;; esac
  shift
done 3>&1
shift
"""

_TELL = r"""
printf '%s\0' "$LMOD_CMD" "$LMOD_DIR" "$LMOD_VERSION" "$MODULEPATH" "$LOADEDMODULES"
module --version 2>&1
"""


@dataclass(frozen=True)
class Modulefile:
    """One modulefile: the name to load it by, its file, its tree.

    ``parents``: what opens its tree, any one of the alternatives. ``order``: of modules of one
    name the one with the largest is what the bare name loads. ``effects``: what loading it does,
    where that was asked to find it.
    """

    name: str
    path: str
    tree: str
    parents: tuple[tuple[str, ...], ...] = ()
    hidden: bool = False
    default: bool = False
    order: str = ""
    effects: Effects | None = None


@dataclass(frozen=True)
class ModuleShell:
    """The module system of a site, started. ``version``: its name and version; Lmod's program and
    folder. ``trees``: where it looks. ``loaded``: the preloads, and what those load.
    """

    site: Site
    environ: Mapping[str, str]
    version: str = ""
    command: str = ""
    folder: str = ""
    trees: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()

    def bash(self, script: str, *words: str) -> Finished:
        """Run *script* where the trees are in use and the preloads loaded; its words are ``$@``."""
        site, bash = self.site, ("bash", "--noprofile", "--norc", "-c")
        given = (str(site.module_init), *site.module_trees, "--", *site.preload, "--", *words)
        command = [*bash, f"{_START}{script}", "envbuild", *given]
        return run(command, env=self.environ, timeout=PATIENCE)


def start(
    site: Site, environ: Mapping[str, str], trees: Sequence[str] | None = None
) -> ModuleShell:
    """Start the module system of *site*, with other *trees* than the site's if they are given.

    Raises UsageError where the site names none, MissingToolError where it is not on this machine,
    and UsageError where a tree or a preload is not there.
    """
    if site.module_system == "none" or site.module_init is None:
        raise UsageError(
            "modules.not-configured",
            f"site {site.name} does not state a module system",
            "add module-system (lmod or tcl) and module-init (the file that scripts source)",
        )
    if not is_file(site.module_init):
        raise MissingToolError(
            "modules.init-missing",
            f"the module system of site {site.name} is not on this machine: "
            f"there is no {site.module_init}",
            "take the snapshot on a login node of the site",
        )
    if trees is not None:
        site = site.model_copy(update={"module_trees": tuple(trees)})
    gone = [tree for tree in site.module_trees if not is_folder(tree)]
    if gone:
        raise UsageError(
            "modules.tree-missing",
            f"the module tree {gone[0]} of site {site.name} is not on this machine",
            "take the snapshot on a login node of the site, or name another folder with --tree",
        )
    plain = {**quiet_environment(environ), **_PLAIN}
    clean = {name: value for name, value in plain.items() if not name.startswith(_STATE)}
    # A site without trees has the caller's. `purge` closes the trees that loaded modules opened, if
    # the module system knows what is loaded.
    shell = ModuleShell(site, plain)
    if site.module_trees:
        clean.pop("MODULEPATH", None)
        shell = replace(shell, environ=clean)
    done = shell.bash(_TELL)
    # An init file that ends the shell leaves no answer and may end with 0.
    if not done.ok or "\0" not in done.stdout:
        raise _start_error(site, done)
    lmod, folder, version, path, names, output = done.stdout.split("\0", 5)
    module_path = tuple(dict.fromkeys(tree for tree in path.split(":") if tree.startswith("/")))
    if not module_path and site.module_trees:
        # `module` itself is broken, and says so without an exit code.
        words = first_line(f"{done.stderr}\n{output}") or "no output"
        raise MissingToolError(
            "modules.trees-not-used",
            f"the module system of site {site.name} does not accept its module trees: {words}",
            f"check it: source {site.module_init}; module --version",
        )
    if not module_path:
        raise UsageError(
            "modules.no-trees",
            f"no module tree is known for site {site.name}: MODULEPATH is empty",
            "state them in the site file (module-trees: [/path]) or with --tree",
        )
    version = f"Lmod {version}" if version else one_line(first_line(output), 60)
    loaded = tuple(name for name in names.split(":") if name)
    if not site.module_trees:
        shell = replace(shell, environ={**clean, "MODULEPATH": ":".join(module_path)})
    return replace(
        shell, version=version, command=lmod, folder=folder, trees=module_path, loaded=loaded
    )


def _start_error(site: Site, done: Finished) -> UsageError:
    name, error = f"of site {site.name}", one_line(done.stderr, 300)
    if done.code is None:
        message = f"the module system {name} did not answer within {PATIENCE:.0f} s"
        return UsageError("modules.timeout", message)
    if done.code == 73:
        message = f"cannot load the preload module {done.stdout} {name}: {error}"
        return UsageError("modules.preload-failed", message)
    output = one_line(done.stderr or done.stdout, 300)
    return UsageError("modules.start-failed", f"cannot start the module system {name}: {output}")


def modulefiles(shell: ModuleShell) -> tuple[Modulefile, ...]:
    """Return all modulefiles of the trees, and of the trees that these open, sorted."""
    files = _spider(shell) if shell.site.module_system == "lmod" else _avail(shell)
    return tuple(sorted(files, key=lambda each: (each.name, each.path)))


def _spider(shell: ModuleShell) -> Iterator[Modulefile]:
    command = [f"{shell.folder}/spider", "-o", "spider-json", ":".join(shell.trees)]
    done = run(command, env=shell.environ, timeout=LONG_PATIENCE)
    try:
        yield from of_spider(done.stdout)
    except ValueError as error:
        # An Lmod that does not know this format prints nothing at all and ends with 0.
        what = f"malformed JSON ({error})" if done.stdout.strip() else "nothing"
        output = f": {one_line(done.stderr, 300)}" if done.stderr.strip() else ""
        raise UsageError(
            "modules.spider-failed",
            f"{shell.version}: spider printed {what}{output}",
            "use Lmod 7 or later, and check that the module trees are readable",
        ) from error


def of_spider(output: str) -> list[Modulefile]:
    """Return the modulefiles in what Lmod's spider prints. Raises ValueError."""
    answer = parse_json(_json_line(output))
    return [
        _of_properties(path, properties)
        for files in _table(answer, "the answer").values()
        for path, properties in _table(files, "a module").items()
    ]


def _table(value: Any, name: str) -> Mapping[str, Any]:
    """Return an object of JSON. An empty one is an empty list: Lua does not tell the two apart."""
    if not isinstance(value, dict) and value:
        raise ValueError(f"{name} is not an object")
    return value or {}


def _of_properties(path: str, properties: Any) -> Modulefile:
    table = _table(properties, path)
    name, tree = (table.get(key, "") for key in ("fullName", "mpath"))
    parents = table.get("parentAA") or []
    if not (is_text(name) and is_text(tree) and name and tree):
        raise ValueError(f"{path} has no fullName or mpath")
    if not is_names(parents):
        raise ValueError(f"parentAA of {path} is not a list of lists of names")
    weight = str(table.get("wV") or table.get("pV") or "")
    return Modulefile(
        name=name,
        path=path,
        tree=tree,
        parents=tuple(map(tuple, parents)),
        hidden=bool(table.get("hidden")),
        default=weight.startswith("^"),
        order=weight,
    )


def _json_line(text: str) -> str:
    """Return the line with the answer: modulefiles may have printed something before it."""
    lines = [line for line in text.splitlines() if '{"' in line or line in ("{}", "[]")]
    return lines[-1][max(0, lines[-1].find('{"')) :] if lines else text


def _avail(shell: ModuleShell) -> Iterator[Modulefile]:
    """Yield the modulefiles that Environment Modules finds, those behind other modules included."""
    waiting: list[tuple[str, tuple[tuple[str, ...], ...]]] = [(tree, ()) for tree in shell.trees]
    seen: set[str] = set()
    for tree, parents in waiting:  # it grows on the way
        # EasyBuild's categorised hierarchy opens a folder for every class, there or not.
        if tree in seen or not is_folder(tree):
            continue
        seen.add(tree)
        those = {each.path: each for each in _of_tree(shell, tree, parents)}
        for path, effects in show(shell, tuple(those.values())).items():
            yield replace(those[path], effects=effects)
            before = those[path].parents or ((),)
            opened = tuple((*alternative, those[path].name) for alternative in before)
            waiting += [(folder, opened) for folder in effects.folders("MODULEPATH")]


def _of_tree(
    shell: ModuleShell, tree: str, parents: tuple[tuple[str, ...], ...]
) -> Iterator[Modulefile]:
    done = shell.bash('MODULEPATH="$1" module avail -t --all 2>&1', tree)
    if done.code is None:
        raise UsageError(
            "modules.avail-failed", f"{shell.version}: module avail did not answer for {tree}"
        )
    for line in done.stdout.splitlines():
        word, _, mark = line.partition(" ")
        name = word.removesuffix("(default)")
        path = Path(tree) / name
        if name and not name.endswith(("/", ":")) and is_file(path):
            hidden = "H" in mark or Path(name).name.startswith(".")
            default = word.endswith("(default)")
            yield Modulefile(name, str(path), tree, parents, hidden, default, padded(name))


def padded(name: str) -> str:
    """Return what sorts 1.10 behind 1.9 as text."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(9), name)


def show(shell: ModuleShell, files: Sequence[Modulefile]) -> dict[str, Effects]:
    """Return what loading each does, by its path. What cannot be shown says why in ``broken``."""
    shown = {each.path: each.effects for each in files if each.effects is not None}
    asked = [each for each in files if each.path not in shown]
    for tree in dict.fromkeys(each.tree for each in asked):
        those = [each for each in asked if each.tree == tree]
        for begin in range(0, len(those), BATCH):
            shown |= _show(shell, tree, those[begin : begin + BATCH])
    return shown


def _show(shell: ModuleShell, tree: str, files: Sequence[Modulefile]) -> dict[str, Effects]:
    """Show modules of one tree together; where one fails all answers are lost: halve the batch."""
    names = [each.name for each in files]
    if shell.site.module_system == "lmod":
        env = {**shell.environ, "MODULEPATH": tree}
        done = run([shell.command, "bash", "show", *names], env=env, timeout=PATIENCE)
        output = done.stderr
        effects = of_lmod(output)
    else:
        script = 'tree=$1; shift; MODULEPATH="$tree" module show "$@" 2>&1'
        plain = replace(shell, site=shell.site.model_copy(update={"preload": ()}))
        done = plain.bash(script, tree, *names)
        output = done.stdout
        effects = of_tcl(output)
    shown = {each.path: effects[each.path] for each in files if each.path in effects}
    missing = [each for each in files if each.path not in shown]
    if missing and len(files) == 1:
        return {files[0].path: Effects(broken=_trouble(done.code, output))}
    middle = (len(missing) + 1) // 2
    for part in filter(None, (missing[:middle], missing[middle:])):
        shown |= _show(shell, tree, part)
    return shown


def _trouble(code: int | None, output: str) -> str:
    if code is None:
        return f"module show did not answer within {PATIENCE:.0f} s"
    text = output.split("While processing the following", 1)[0]
    text = text.removeprefix("Lmod has detected the following error:")
    return one_line(text.split("Please check the modulefile", 1)[0], 200)

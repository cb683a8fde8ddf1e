"""``envbuild validate --fix``: files are put back by hash; nothing else is changed."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .. import data, process
from ..errors import BuildError, UsageError
from ..host import first_line, is_file
from ..inspect.mending import MENDS, reason, wanted
from ..locking.index import Index
from ..locking.secret_links import obtain
from ..mending.mend import mend
from ..mending.sources import Offer, Places, Sources
from ..model.mending import LeftFinding, Mending
from ..model.plan import Lock
from ..model.validation import Validation
from ..root.environment_lock import read_lock
from ..target_tools.names import normalize
from ..target_tools.root import layout, locks, publish
from ..text import shown
from .context import Context
from .external_paths import path_of
from .inspected import environment_of
from .secret_links import file_cache, index_of
from .validate import validate
from .validate_options import MendOptions, ProvingOptions, ValidateOptions

_UNPACK_SECONDS = 600.0


def fix(
    name: str | None,
    root: str | None,
    asked: ValidateOptions,
    options: MendOptions,
    context: Context,
) -> Validation:
    """Put files back, and return what is still wrong, with what was done.

    What the baseline accepts is left as it is. All files are hashed. Raises UsageError for what is
    none, or is not an environment alone.
    """
    if not options.fix:
        raise UsageError("--dry-run is of --fix", "envbuild validate --fix --dry-run PATH|NAME")
    if asked.loaded:
        raise UsageError(
            "--fix puts files of one environment back, and --loaded looks at many",
            "name the environment: envbuild validate --fix PATH|NAME",
        )
    if path_of(name, root, context) is not None:
        raise UsageError(f"{name} was built by others, and envbuild changes nothing of it")
    if asked.inside or (name and is_file(context.path(name))):
        raise UsageError("an image is not mended", "envbuild image builds it anew")
    asked = replace(asked, verify=True)
    before = validate(name, root, context, replace(asked, proving=ProvingOptions()))
    accepted = {(each.id, each.summary) for each in before.findings if each.accepted is not None}
    environment = environment_of(name, root, context)
    todo = [each for each in wanted(environment) if each.finding not in accepted]
    prefix = environment.prefix
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="envbuild-fix-")))
        home, lock = _published(prefix)
        if home is not None and not options.dry_run and todo:
            say = context.reporter.say
            stack.enter_context(locks.hold(home.lock_file, say=say, group=home.group))
        packages = _Packages(context, scratch, prefix, lock)
        places = Places(prefix, packages.wheels, packages.fetch, packages.unpack)
        put_back, left = mend(todo, prefix, Sources(places), dry_run=options.dry_run)
    changed = put_back and not options.dry_run
    again = changed or asked.proving.run
    value = validate(name, root, context, asked) if again else before
    done = Mending(dry_run=options.dry_run, put_back=put_back, left=left)
    refused = tuple(_refused(value, done))
    return value.model_copy(update={"mending": done.model_copy(update={"refused": refused})})


def _refused(value: Validation, done: Mending) -> Iterator[LeftFinding]:
    """Yield the findings that are there still, or would be, each with why."""
    mended = {each.file for each in done.put_back} if done.dry_run else set()
    for each in value.open:
        files = {place.file for place in each.evidence}
        left = [one for one in done.left if one.file in files]
        if not left and each.id in MENDS and files & mended:
            continue
        why = f"{left[0].file}: {left[0].reason}" if left else reason(each.id)
        yield LeftFinding(id=each.id, summary=each.summary, reason=shown(why, 400))


def _published(prefix: Path) -> tuple[layout.Home | None, Lock | None]:
    """Return whose environment a prefix is that envbuild published, and its lock."""
    home = layout.Home(prefix.parent.parent, prefix.parent.name)
    version = publish.find_reserved(home, prefix.name)
    if version is None or not publish.is_published(home, version):
        return None, None
    try:
        return home, read_lock(home, version)
    except BuildError:
        return home, None


@dataclass(frozen=True)
class _Packages:
    """Where packages are to be had: of ours the lock says it, else pip's configuration does.

    ``scratch``: a folder for what is fetched. ``lock``: of the prefix, where envbuild built it.
    """

    context: Context
    scratch: Path
    prefix: Path
    lock: Lock | None

    @cached_property
    def _index(self) -> Index:
        return index_of(self.lock.plan if self.lock else None, self.context)

    def wheels(self, name: str) -> Sequence[Offer]:
        """Return the wheels of a distribution: those that were built, and those that are locked."""
        if self.lock is None:
            return tuple(self._index.wheels(normalize(name)))
        built = sorted(Path(f"{self.prefix}.build", "wheels").glob("*/*.whl"))
        locked = (each for each in self.lock.index_files if each.kind == "wheel")
        return (
            *((each.as_uri(), None) for each in built),
            *((each.url, each.sha256) for each in locked if each.name == normalize(name)),
        )

    def fetch(self, url: str, sha256: str | None) -> Path:
        """Return where a file lies, fetched where it is not here.

        Raises BuildError, or MissingToolError for one whose index cannot be reached.
        """
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        for file in self.lock.secret_links if self.lock else ():
            if file.sha256 == sha256:
                obtain((file,), folder, self._index, file_cache(self.context))
                return folder / file.filename
        return self._index.fetch(url, sha256, folder)

    def unpack(self, archive: Path) -> Path:
        """Return the folder that a conda package was unpacked into. Raises BuildError."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch), archive.name)
        words = [sys.executable, "-I", str(data.TARGET_TOOLS), "conda-engine"]
        done = process.run(
            [*words, "unpack", str(archive), str(folder)],
            env=self.context.environ,
            timeout=_UNPACK_SECONDS,
        )
        if not done.ok:
            why = first_line(done.stderr) or "it needs pip install envbuild[conda]"
            raise BuildError(f"{archive.name} cannot be unpacked: {why}")
        return folder

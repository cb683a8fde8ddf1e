"""The definition file of an image that a bundle is installed in.

What builds, proves and publishes there is the bundle's own installer: an image holds a root like
any other, with lock, manifest and records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..model.base_image import BUNDLE_FOLDER, Bind
from ..model.plan import Lock, mpi_from, proofs_of
from ..target_tools.root.layout import Home
from .container import FOLDER, exports, help_lines, labels
from .quoting import Quoted, comment, line
from .templates import render

# Beside the definition file, the folder of the base or a link to it: its path may hold anything.
BASE = "base"
# Words of bash that run others in the environment of the build folder that they come after.
_IN_MODULES = (
    'set -euo pipefail; source "$0/environment.sh"; load_modules; enter_environment; '
    'set +euo pipefail; exec "$@"'
)
BUNDLE = FOLDER.with_name("envbuild.bundle")


def render_bundle_definition(
    lock: Lock, base_name: str, binds: Sequence[Bind] = (), *, candidate: bool = False
) -> str:
    """Return the definition file, for a folder that holds BASE and ``bundle``.

    *base_name*: what the system in BASE is, for people. *binds*: what it takes from the machine as
    it is built and started. *candidate*: it is built where the GPUs that it needs may not be.
    """
    plan, identity = lock.plan, lock.id()
    cuda = any(pin.component == "cuda" for pin in plan.pins)
    told = help_lines(lock, base_name, cuda=cuda, binds=binds)
    home = Home(FOLDER, plan.recipe)
    return render(
        "container/bundle.def.j2",
        name=plan.recipe,
        title=line(f"{plan.recipe}: {plan.summary}"),
        base=BASE,
        # Indented: no line of the text is the header of a section or of a further stage.
        help=[Quoted(f"    {line(each)}" if each else "") for each in told],
        # A label's value ends with its line and is not quoted.
        labels=[(comment(key), line(value)) for key, value in labels(lock, base_name, binds)],
        binds=[str(each.target) for each in binds],
        in_modules=_IN_MODULES,
        root=str(FOLDER),
        source=BUNDLE_FOLDER,
        bundle=str(BUNDLE),
        prefix=str(home.prefix(identity)),
        build=str(home.build(identity)),
        manifest=str(home.manifest(identity)),
        environment=list(exports(plan, home.prefix(identity))),
        candidate=candidate,
        proofs=[
            {"words": [*words, *(["--candidate"] if candidate else [])], "number": str(n)}
            for n, words in enumerate(_proofs(lock), 1)
        ],
    )


def _proofs(lock: Lock) -> Iterator[list[str]]:
    """Yield the options of ``target_tools prove`` for each smoke test, of the smallest messages."""
    smoke, where = lock.plan.smoke, mpi_from(lock.plan)
    for number, proof in enumerate(proofs_of(lock.plan), start=1):
        yield [
            *("--smoke-script", f"smoke-{number}.sh"),
            *("--api", proof.api, "--transport", proof.transport),
            *("--ranks", str(smoke.ranks), "--timeout", f"{smoke.timeout:g}"),
            *("--max-bytes", str(min(smoke.max_bytes, 2**20))),
            *(("--mpi-from", where) if where else ()),
        ]

"""Every form that a plan can be rendered to, by the name that ``envbuild render --as`` takes.

A form is rendered from a lock, or from a plan alone (see Draft): then no index is asked, and what
only a lock knows, hashes and the environment's id, is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import UsageError
from ..model.knowledge import Knowledge
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..model.profiles import asked
from .build import render_build
from .conda import render_environment_yml
from .container import image_places, render_definition, render_dockerfile
from .form_words import line
from .image import Image, make_image
from .job import Job, Published, render_lsf, render_slurm
from .modulefile import render_modulefile
from .requirements import requirement_files

Scheduler = Literal["slurm", "lsf"]

NOT_LOCKED = "not-locked"


class Draft(Lock):
    """A plan that nobody has locked: what is rendered of it says so in the id's place."""

    def sha256(self) -> str:
        """Return no hash: which files belong to it is not decided."""
        return "none"

    def id(self) -> str:
        """Return a name that no environment has."""
        return NOT_LOCKED


def draft(plan: Plan) -> Draft:
    """Return the plan in the place of a lock."""
    return Draft(plan=plan, artifacts=())


@dataclass(frozen=True)
class Subject:
    """What is rendered: a lock or draft, where it would lie, what is known.

    ``number``: of its modulefile, which is in the folder ``tree``. ``job``: what a scheduler would
    be asked for, and ``words``: the launch line inside it.
    """

    lock: Lock
    places: Places
    knowledge: Knowledge
    number: int = 1
    tree: Path = Path("modulefiles")
    job: Job | None = None
    words: Callable[[Scheduler], Sequence[str]] | None = None

    @property
    def plan(self) -> Plan:
        return self.lock.plan

    @property
    def locked(self) -> bool:
        return not isinstance(self.lock, Draft)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of a form made without a lock must know."""
        if self.locked:
            return ()
        if not self.plan.lockable:
            return (
                "To be read and done by hand: envbuild does not lock and build such a plan yet.",
            )
        return (
            "Rendered from a plan, without a lock: no file's hash is decided. With one:",
            f"  envbuild lock {asked(self.plan)} --output FILE; envbuild render --locked FILE ...",
        )


@dataclass(frozen=True)
class Form:
    """One form: the file's name (of a recipe), what it is, and the function that renders it."""

    file: str
    summary: str
    render: Callable[[Subject], str]

    def file_of(self, plan: Plan) -> str:
        return self.file.format(name=plan.recipe)


def render_form(name: str, subject: Subject) -> str:
    """Return the text of one form. Raises UsageError for a plan that cannot have it."""
    return FORMS[name].render(subject)


def render_image(subject: Subject) -> dict[str, str]:
    """Return all files that an image is built from: definition, Dockerfile and ``build/...``.

    The runtime's sources and smoke.py are put into ``build/`` by whoever writes the folder. Raises
    UsageError for a plan without a lock, and where the image needs files that the lock lacks.
    """
    image = make_image(subject.plan, subject.knowledge)
    if not subject.locked:
        raise UsageError("an image is built from a lock", "envbuild lock makes one")
    if image.from_index:
        raise UsageError(
            f"the lock has no files for {', '.join(image.from_index)}: at {subject.plan.site} they "
            "come from modules, and an image takes them from the index",
            "lock the recipe for a site without modules, of the same Python: --site local",
        )
    lock = Lock(plan=image.plan, artifacts=subject.lock.artifacts)
    files = render_build(lock, image_places(lock.plan.recipe))
    inside = {**files, "lock.json": lock.text()}
    return {
        f"{lock.plan.recipe}.def": render_definition(lock, image, ()),
        "Dockerfile": render_dockerfile(lock, image, ()),
        **{f"build/{name}": text for name, text in inside.items()},
    }


def _script(subject: Subject) -> str:
    text = render_build(subject.lock, subject.places)["build.sh"]
    first, rest = text.split("\n", 1)
    notes = [*subject.notes()]
    if notes and subject.plan.lockable:
        notes.append("The other files of its folder: envbuild render --output FOLDER.")
    return "\n".join([first, *(f"# {line(each)}" for each in notes), rest])


def _environment_yml(subject: Subject) -> str:
    return render_environment_yml(subject.plan, subject.knowledge.components)


def _requirements(subject: Subject) -> str:
    """Return pip's requirements: with hashes where there is a lock, else the plan's pins."""
    plan = subject.plan
    python = plan.python or "the Python of its conda environment"
    head = [f"{plan.recipe}: {plan.summary}", f"For {python} ({plan.site}, {plan.arch})."]
    if plan.modules.loads:
        head.append(f"Its modules, loaded before: {' '.join(plan.modules.loads)}")
    built = [f"{each.component} {each.version}" for each in plan.builds]
    head.append(f"Not here, build.sh builds it: {', '.join([*built, plan.runtime.package])}")
    options = [
        *(
            f"{'--extra-index-url' if number else '--index-url'} {url}"
            for number, url in enumerate(plan.pip_indexes)
        ),
        *(f"--find-links {url}" for url in plan.find_links),
    ]
    if subject.locked:
        body = requirement_files(subject.lock)["requirements.txt"].splitlines()
    else:
        pins = (pin for pin in plan.pins if pin.origin == "pip")
        body = [*(f"{pin.locator}=={pin.version}" for pin in pins), *plan.packages]
        for each in body:
            _check_requirement(each)
    comments = [f"# {line(each)}" for each in (*head, *subject.notes())]
    return "".join(f"{each}\n" for each in (*comments, *options, *body))


def _check_requirement(text: str) -> None:
    """Raise UsageError for what pip would read as an option or two lines."""
    # Late: 25 ms.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(f"not a requirement that pip can read: {text!r}") from error
    # pip expands ${NAME}, and takes a backslash at the end for a line that goes on.
    if re.search(r"\$\{|\\$|[\x00-\x1f\x7f]", text):
        raise UsageError(f"not a requirement that a file of pip's can hold: {text!r}")


def _lua(subject: Subject) -> str:
    return render_modulefile(subject.lock, subject.places, subject.number, None, "lua")


def _tcl(subject: Subject) -> str:
    return render_modulefile(subject.lock, subject.places, subject.number, None, "tcl")


def _image(subject: Subject) -> tuple[Lock, Image, tuple[str, ...]]:
    """Return lock or draft as in the image, the image, and what a reader must know."""
    image = make_image(subject.plan, subject.knowledge)
    kind = Lock if subject.locked else Draft
    notes = [*subject.notes()]
    if subject.plan.lockable:
        notes.append("Written with build/ beside it: envbuild render --as image.")
    for channel in subject.plan.channels:
        for name, value in channel.accept.items():
            notes.append(f"Set {name}={value} in it if you accept: {channel.licence}.")
    if image.from_index:
        notes.append(f"From the index, not from modules: {', '.join(image.from_index)}.")
    return kind(plan=image.plan, artifacts=subject.lock.artifacts), image, tuple(notes)


def _definition(subject: Subject) -> str:
    return render_definition(*_image(subject))


def _dockerfile(subject: Subject) -> str:
    return render_dockerfile(*_image(subject))


def _slurm(subject: Subject) -> str:
    job, words = _job(subject, "slurm")
    return render_slurm(subject.lock, subject.places, _published(subject), job, words)


def _lsf(subject: Subject) -> str:
    job, words = _job(subject, "lsf")
    return render_lsf(subject.lock, subject.places, _published(subject), job, words)


def _job(subject: Subject, scheduler: Scheduler) -> tuple[Job, Sequence[str]]:
    if subject.job is None or subject.words is None:
        raise UsageError(f"nothing says which job to render for {scheduler}")
    return subject.job, subject.words(scheduler)


def _published(subject: Subject) -> Published:
    return Published(str(subject.tree), subject.number)


FORMS: Mapping[str, Form] = {
    "script": Form("build.sh", "the build script", _script),
    "environment.yml": Form("environment.yml", "conda's environment file", _environment_yml),
    "requirements": Form("requirements.txt", "pip's requirements", _requirements),
    "lua": Form("{name}.lua", "Lmod's modulefile", _lua),
    "tcl": Form("{name}.tcl", "the modulefile of Tcl module systems", _tcl),
    "def": Form("{name}.def", "Apptainer's definition file", _definition),
    "dockerfile": Form("Dockerfile", "the Dockerfile", _dockerfile),
    "slurm": Form("{name}.slurm", "the Slurm job", _slurm),
    "lsf": Form("{name}.lsf", "the LSF job", _lsf),
}

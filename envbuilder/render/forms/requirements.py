"""pip's requirements: with hashes where there is a lock, else the plan's pins."""

from __future__ import annotations

import re

from ...errors import UsageError
from ...model.plan import Lock
from ..quoting import line
from ..requirements import pip_options, requirement_files
from ..subject import RenderInput


def render(subject: RenderInput) -> str:
    """Return pip's requirements: with hashes where there is a lock, else the plan's pins."""
    plan = subject.plan
    python = plan.python or f"the Python of its {subject.prefix.environment}"
    head = [f"{plan.recipe}: {plan.summary}", f"For {python} ({plan.site}, {plan.arch})."]
    if plan.modules.loads:
        head.append(f"Load these modules first: {' '.join(plan.modules.loads)}")
    built = [f"{each.component} {each.version}" for each in plan.builds]
    head.append(
        f"Not listed, because build.sh builds it: {', '.join([*built, plan.runtime.package])}"
    )
    if isinstance(subject.source, Lock):
        body = requirement_files(subject.source)["requirements.txt"].splitlines()
    else:
        pins = (pin for pin in plan.pins if pin.origin == "pip")
        body = [*(f"{pin.locator}=={pin.version}" for pin in pins), *plan.packages]
        for each in body:
            _check_requirement(each)
    comments = [f"# {line(each)}" for each in (*head, *subject.notes())]
    return "".join(f"{each}\n" for each in (*comments, *pip_options(plan), *body))


def _check_requirement(text: str) -> None:
    """Raise UsageError for what pip would read as an option or two lines."""
    # lazy import: 25 ms
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(
            "requirement.invalid-syntax", f"pip cannot read the requirement {text!r}"
        ) from error
    # pip expands ${NAME}, and takes a backslash at the end for a line that goes on.
    if re.search(r"\$\{|\\$|[\x00-\x1f\x7f]", text):
        raise UsageError(
            "requirement.unsafe-character",
            f"a requirements file cannot contain the requirement {text!r}",
        )

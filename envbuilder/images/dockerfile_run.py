"""RUN of a Dockerfile as lines of a script."""

from __future__ import annotations

from .dockerfile import Instruction, quote
from .dockerfile_draft import Draft

# A here-document with an interpreter of its own is run from this file.
SCRIPT = "/.envbuild-script"


def run(draft: Draft, instruction: Instruction) -> None:
    for flag in instruction.flags:
        _check_flag(draft, instruction, flag)
    words, documents = instruction.words(), instruction.documents
    if words:
        draft.post.append(f"envbuild_run {' '.join(map(quote, words))}")
    elif len(documents) == 1 and instruction.rest.split() == [documents[0].word]:
        _run_script(draft, documents[0].text)
    else:
        _run_command(draft, "\n".join([instruction.rest, *instruction.lines]))


def _run_command(draft: Draft, command: str) -> None:
    # A process of its own, as in Docker: variables that it sets end with it.
    draft.post.append(f"envbuild_run {' '.join(map(quote, [*draft.shell, command]))}")


def _run_script(draft: Draft, text: str) -> None:
    """Run a here-document: its first line may name the interpreter."""
    if not text.startswith("#!"):
        _run_command(draft, text)
        return
    draft.post += [
        f"printf %s {quote(text)} >{SCRIPT}",
        f"chmod 755 {SCRIPT}",
        f"envbuild_run {SCRIPT}",
    ]


def _check_flag(draft: Draft, instruction: Instruction, flag: str) -> None:
    name, _, value = flag.partition("=")
    options = dict(word.partition("=")[::2] for word in value.split(","))
    kind = options.get("type", "bind") if name == "--mount" else ""
    if kind == "cache" and "from" not in options:
        target = options.get("target") or options.get("dst") or options.get("destination", "")
        draft.notes.append(
            f"{draft.path.name}:{instruction.number}: RUN {flag} has no effect: {target} stays "
            "in the base"
        )
        return
    reasons = {
        "bind": "use COPY: files of the context cannot be mounted",
        "cache": "a cache cannot begin with files of another stage",
        "secret": "the base would be built without the secret",
        "ssh": "the base would be built without the keys",
        "tmpfs": "files in it would stay in the base",
    }
    reason = f": {reasons[kind]}" if kind in reasons else ""
    message = f"RUN {flag} is not supported{reason}"
    draft.refuse("base.unsupported-instruction", instruction, message)

"""RUN of a Dockerfile as lines of a script."""

from __future__ import annotations

from .build_steps import DockerfileScript
from .dockerfile import Instruction, quote

# A here-document with an interpreter of its own is run from this file.
SCRIPT = "/.envbuild-script"


def run(script: DockerfileScript, instruction: Instruction) -> None:
    for flag in instruction.flags:
        _check_flag(script, instruction, flag)
    words, documents = instruction.words(), instruction.documents
    if words:
        script.post.append(f"envbuild_run {' '.join(map(quote, words))}")
    elif len(documents) == 1 and instruction.rest.split() == [documents[0].word]:
        _run_script(script, documents[0].text)
    else:
        _run_command(script, "\n".join([instruction.rest, *instruction.lines]))


def _run_command(script: DockerfileScript, command: str) -> None:
    # A process of its own, as in Docker: variables that it sets end with it.
    script.post.append(f"envbuild_run {' '.join(map(quote, [*script.shell, command]))}")


def _run_script(script: DockerfileScript, text: str) -> None:
    """Run a here-document: its first line may name the interpreter."""
    if not text.startswith("#!"):
        _run_command(script, text)
        return
    script.post += [
        f"printf %s {quote(text)} >{SCRIPT}",
        f"chmod 755 {SCRIPT}",
        f"envbuild_run {SCRIPT}",
    ]


def _check_flag(script: DockerfileScript, instruction: Instruction, flag: str) -> None:
    name, _, value = flag.partition("=")
    options = dict(word.partition("=")[::2] for word in value.split(","))
    kind = options.get("type", "bind") if name == "--mount" else ""
    if kind == "cache" and "from" not in options:
        target = options.get("target") or options.get("dst") or options.get("destination", "")
        script.notes.append(
            f"{script.path.name}:{instruction.number}: RUN {flag} has no effect: {target} stays "
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
    script.refuse("base.unsupported-instruction", instruction, message)

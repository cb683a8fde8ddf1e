"""COPY and ADD of a Dockerfile as lines of a script, for files of its context.

Files are staged beside the base, and copied in the order of the instructions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from .build_steps import STAGED, DockerfileScript
from .dockerfile import HereDocument, Instruction, quote

_ARCHIVES = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|gz|bz2|xz|zst)$")
_IGNORE_FILE = ".dockerignore"


def add(script: DockerfileScript, instruction: Instruction) -> None:
    words = instruction.words() or instruction.rest.split()
    if any(_ARCHIVES.search(word) for word in words[:-1]):
        message = f"ADD {instruction.rest} is not supported: it unpacks an archive"
        hint = "use COPY, then RUN tar -xf"
        script.refuse("base.unsupported-instruction", instruction, message, hint)
        return
    copy(script, instruction)


def copy(script: DockerfileScript, instruction: Instruction) -> None:
    owner = _owner(script, instruction)
    words = _paths(script, instruction) if owner else []
    if len(words) < 2:
        if words:
            message = f"{instruction.keyword} {instruction.rest} needs a source and a target"
            script.refuse("base.malformed-line", instruction, message)
        return
    *sources, target = words
    if len(sources) > 1 and not target.endswith("/"):
        message = (
            f"{instruction.keyword}: {target} must end with / because it receives several files"
        )
        script.refuse("base.target-not-folder", instruction, message)
    documents = {"".join(shlex.split(each.word)): each for each in instruction.documents}
    for source in sources:
        if source in documents:
            _copy_document(script, instruction, documents[source], target, owner)
        else:
            _copy_path(script, instruction, source, target, owner)


def _owner(script: DockerfileScript, instruction: Instruction) -> str:
    """Return the word of bash for --chown, by default root; empty if a flag is refused."""
    owner = "0:0"
    refused = len(script.refusals.problems)
    for flag in instruction.flags:
        name, _, value = flag.partition("=")
        if name == "--chown":
            owner = script.word(instruction, value)
        else:
            message = f"{instruction.keyword} {flag} is not supported"
            script.refuse("base.unsupported-instruction", instruction, message)
    return owner if len(script.refusals.problems) == refused else ""


def _paths(script: DockerfileScript, instruction: Instruction) -> list[str]:
    """Return sources and target, with quotes only if they may contain variables."""
    if words := instruction.words():
        return words
    try:
        return shlex.split(instruction.rest)
    except ValueError as error:
        message = f"cannot parse {instruction.keyword} {instruction.rest}: {error}"
        script.refuse("base.malformed-line", instruction, message)
    return []


def _copy_document(
    script: DockerfileScript,
    instruction: Instruction,
    document: HereDocument,
    target: str,
    owner: str,
) -> None:
    text = quote(document.text)
    if "/" in document.name:
        message = f"{instruction.keyword} {document.word}: a file cannot have this name"
        script.refuse("base.malformed-line", instruction, message)
        return
    if document.expands and "\\" in document.text:
        message = f"{instruction.keyword} {document.word} with a backslash is not supported"
        hint = f"quote its name, so that variables are not replaced: <<'{document.name}'"
        script.refuse("base.unsupported-instruction", instruction, message, hint)
    elif document.expands:
        text = script.word(instruction, document.text, raw=True)
    staged = STAGED / document.name
    folder = script.word(instruction, target, raw=True)
    script.post += [f"mkdir -p {STAGED}", f"printf %s {text} >{quote(str(staged))}"]
    script.post += _copied(staged, document.name, folder, target.endswith("/"), owner)


def _copy_path(
    script: DockerfileScript, instruction: Instruction, source: str, target: str, owner: str
) -> None:
    keyword = instruction.keyword
    if any(character in source for character in "*?[$") or "://" in source:
        message = f"{keyword} {source} is not supported: name each file"
        script.refuse("base.unsupported-instruction", instruction, message)
        return
    path = (script.context / source.lstrip("/")).resolve()
    if not path.is_relative_to(script.context.resolve()):
        message = f"{keyword} {source} is outside of the context {script.context}"
        script.refuse("base.source-outside", instruction, message)
    elif not path.exists():
        message = f"{keyword}: cannot find {source} in {script.context}"
        script.refuse("base.source-missing", instruction, message, "name the folder: --context")
    elif path.is_dir() and _ignore_file(script):
        message = f"{keyword} {source} is not supported: {_ignore_file(script)} excludes files"
        script.refuse("base.unsupported-instruction", instruction, message)
    else:
        staged = STAGED / str(len(script.staged))
        script.staged.append(path)
        folder = script.word(instruction, target, raw=True)
        whole = path.is_dir()
        script.post += _copied(staged, path.name, folder, target.endswith("/"), owner, whole)


def _ignore_file(script: DockerfileScript) -> str | None:
    """Return the name of the file that excludes files of the context."""
    own = script.path.with_name(script.path.name + _IGNORE_FILE)
    return next(
        (path.name for path in (own, script.context / _IGNORE_FILE) if path.is_file()), None
    )


def _copied(
    staged: PurePosixPath, name: str, target: str, is_folder: bool, owner: str, whole: bool = False
) -> Iterator[str]:
    """Yield the lines that copy a staged file, or the contents of a folder, as COPY does.

    *target*: a word of bash; *is_folder*: it ends with a slash. *whole*: a folder is staged.
    """
    source, file = quote(str(staged)), quote(name)
    yield f"chown -hR {owner} {source}"
    if whole or is_folder:
        yield f"[ -d {target} ] || {{ mkdir -p {target}; chown {owner} {target}; }}"
    if whole:
        # The target keeps its mode and owner.
        yield f"find {source} -mindepth 1 -maxdepth 1 -exec cp -a -t {target} {{}} +"
    elif is_folder:
        yield f"cp -a {source} {target}{file}"
    else:
        yield f'mkdir -p "$(dirname {target})"'
        copy = f"cp -a {source} {target}"
        yield f"if [ -d {target} ]; then {copy}/{file}; else {copy}; fi"

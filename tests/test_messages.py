"""The ids of errors, the page that lists every message, and the words of both."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from . import goldens, message_listing
from .layers import CHECKOUT, sources

_WORDS = "tests/words.yaml"
WORDS = yaml.safe_load((CHECKOUT / _WORDS).read_text(encoding="utf-8"))
# What others wrote: public files and logs.
_FOREIGN = ("tests/field/", "tests/diagnosis/logs/")
# Modules with the name of a verb or of an entry, which users type.
_TYPED = frozenset({"why", "here"})


def test_each_error_has_an_id() -> None:
    assert message_listing.unidentified() == []


def test_an_id_has_one_exit_code() -> None:
    codes: dict[str, set[int]] = defaultdict(set)
    for message in message_listing.errors():
        codes[message.id].add(message.code)
    assert {name: found for name, found in codes.items() if len(found) > 1} == {}


def test_page_lists_every_message() -> None:
    goldens.compare(CHECKOUT / "docs/messages.md", message_listing.text())


def test_sentences_of_the_old_dialect_are_gone() -> None:
    sentences = {sentence: _plain(sentence) for sentence in WORDS["sentences"]}
    violations = [
        (path, sentence)
        for path, text in _texts()
        for sentence, plain in sentences.items()
        if plain in text
    ]
    assert violations == []


def test_a_planted_sentence_is_found() -> None:
    sentence = WORDS["sentences"][0]
    begin, _, end = sentence.partition(" the ")
    broken = f'hint(\n    "{begin.upper()} the "\n    "{end}"\n)'
    assert _plain(sentence) in _plain(broken)


def test_messages_and_help_texts_use_the_words_of_the_field() -> None:
    texts = [
        *((message.id, message.text) for message in message_listing.errors()),
        *(("printed", text) for text in message_listing.printed()),
        *(
            (name, text)
            for name, summary, options in message_listing.help_texts()
            for text in (summary, *(line for _, line in options))
        ),
    ]
    expressions = [re.compile(expression) for expression in WORDS["messages"]]
    assert len(texts) > 500
    assert [
        (name, text)
        for name, text in texts
        if any(expression.search(text) for expression in expressions)
    ] == []


def test_classes_and_modules_are_named_by_nouns() -> None:
    names = {
        (path, name)
        for path, text in sources("envbuilder").items()
        for name in (Path(path).stem, *_classes(text))
        if name not in _TYPED
    }
    assert {
        (path, name) for path, name in names if name.strip("_").lower() in WORDS["names"].split()
    } == set()


def test_a_class_name_is_used_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in sources("envbuilder").items():
        for name in _classes(text):
            places[name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def _classes(text: str) -> Iterator[str]:
    return (node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def _texts() -> Iterator[tuple[str, str]]:
    """Yield path and text of each file of the checkout, without what others wrote."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    for path in filter(None, tracked.stdout.split("\0")):
        file = CHECKOUT / path
        if path != _WORDS and not path.startswith(_FOREIGN) and file.is_file():
            yield path, _plain(file.read_bytes().decode("utf-8", errors="replace"))


def _plain(text: str) -> str:
    """Return a text in lower case, without the quotes and line ends that divide its sentences."""
    return " ".join(re.sub(r"[\"'#`]", "", text).lower().split())

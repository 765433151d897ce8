"""How good entities are on labelled news that somebody has: `make eval ARGS="--conll en=FILE de=FILE"`.

A line of a file is a word and, last, its label (`B-PER`, `I-ORG`, `O`); an empty line or one with `#` ends a sentence.
Right is a place, a person or an organisation with exactly this beginning, end and kind. What the data calls
miscellaneous counts neither way, as technologies do, which such data don't have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.enrichment.__main__ import Measure
from services.enricher.entities import load_entities
from services.enricher.text import Text

KINDS = {
    **dict.fromkeys(("PER", "PERSON", "PS", "P"), "person"),
    **dict.fromkeys(("ORG", "OG", "CORPORATION", "GROUP"), "organisation"),
    **dict.fromkeys(("LOC", "GPE", "LC", "LOCATION"), "place"),
}
SENTENCES = 10
"""So many sentences that follow each other make a text."""
CLOSING, OPENING = re.compile(r"[.,;:!?%)\]}’'”»…]"), re.compile(r".*[(\[{¿¡„«]$")
UNSPACED = ("zh", "ja", "ko", "th")
"""In these a line of a file is a character, a space among them."""
Labelled = tuple[str, frozenset[tuple[int, int, str]]]


def evaluate(arguments: Sequence[str]) -> Iterator[Measure]:
    """Measure the files that arguments name, each with its language (`en=FILE`): precision, recall and F1."""
    find = load_entities()
    for argument in arguments:
        language, _, path = argument.rpartition("=")
        texts = list(read(Path(path), language))
        found = find([Text("", text) for text, _ in texts], [language or None] * len(texts))
        counts = Counter[tuple[str, str]]()
        for (_, spans), entities in zip(texts, found, strict=True):
            ours = {(m.start, m.end, str(e.kind)) for e in entities for m in e.mentions if e.kind != "technology"}
            misc = {place for start, end, kind in spans if kind == "other" for place in range(start, end)}
            named = {span for span in spans if span[2] != "other"}
            ours = {span for span in ours if span in named or not misc & {span[0], span[1] - 1}}
            for name, counted in (("right", ours & named), ("given", ours), ("wanted", named)):
                counts.update((name, kind) for _, _, kind in counted)
                counts[name, "all"] += len(counted)
        for kind in ("all", "person", "organisation", "place"):
            right, given, wanted = (counts[name, kind] for name in ("right", "given", "wanted"))
            precision, recall, both = right / (given or 1), right / (wanted or 1), 2 * right / (given + wanted or 1)
            value = f"precision {precision:.1%}, recall {recall:.1%}, F1 {both:.1%}"
            yield Measure(
                f"{Path(path).parent.name}/{Path(path).name}, {language}, {kind}", value, f"{wanted} mentions"
            )


def read(path: Path, language: str) -> Iterator[Labelled]:
    """Yield the texts of a file, with where they have entities."""
    sentences: list[list[tuple[str, str]]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            if sentences[-1]:
                sentences.append([])
            continue
        parts = line.split("\t") if "\t" in line else line.split(" ")
        sentences[-1].append((parts[1] if len(parts) > 2 and parts[0].isdigit() else parts[0], parts[-1].strip()))
    for first in range(0, len(sentences), SENTENCES):
        yield _joined(sentences[first : first + SENTENCES], spaced=language not in UNSPACED)


def _joined(sentences: Sequence[Sequence[tuple[str, str]]], *, spaced: bool) -> Labelled:
    text, spans, before = "", list[tuple[int, int, str]](), "O"
    for sentence in sentences:
        text, before = text and f"{text}\n", "O"
        for word, label in sentence:
            if spaced and text and text[-1] != "\n" and not (CLOSING.match(word) or OPENING.fullmatch(text[-1:])):
                text += " "
            kind = KINDS.get(label[2:], "other")
            if label != "O" and label.startswith(("I", "E", "M")) and before[2:] == label[2:] and spans:
                spans[-1] = (spans[-1][0], len(text) + len(word), kind)
            elif label != "O":
                spans.append((len(text), len(text) + len(word), kind))
            text, before = text + word, label
    return text, frozenset(spans)

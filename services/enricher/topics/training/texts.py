"""Reads a CSV of texts and labels, and trains a model on it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from services.enricher.topics.features import MOST_TITLE, features
from services.enricher.topics.model import MOST_LABELS, Model
from services.enricher.topics.training.calibrate import Held, temperature, threshold
from services.enricher.topics.training.fit import Examples, fit, softmax
from shared.errors import FeedmillError

FEWEST = 10
"""A label needs so many texts: some to learn from, and some to see what was learned."""

_LONGEST_LABEL = 100
_PRECISION = 0.9
_EVERY = 5
"""One text of so many is held out."""


class BadTexts(FeedmillError):
    """A file can't be trained on. The message names the line and the reason."""


class Labelled(NamedTuple):
    """One line of the file."""

    text: str
    label: str
    language: str


class Seen(NamedTuple):
    """How well a label was told in the texts that were held out."""

    label: str
    texts: int
    recall: float
    """The share of its texts that got it, however unsure."""
    precision: float | None
    """The share of those that got it for which it is right; None: none got it."""


@dataclass(frozen=True)
class Trained:
    """A model, and how good it was before it had seen all texts."""

    model: Model
    accuracy: float
    held_out: int
    given: float
    """The share of texts with a label at the threshold."""
    given_right: float
    """The share of those labels that is right."""
    labels: Sequence[Seen]


def read_texts(path: Path) -> list[Labelled]:
    """Return the lines of a CSV with the columns text, label and, if it likes, language.

    Raises:
        BadTexts: there is a line that can't be used, or too few of a label.
        OSError: the file can't be read.
    """
    lines = read_lines(path)
    counts = Counter(line.label for line in lines)
    if len(counts) < 2:
        raise BadTexts(f"{path} has {len(counts)} label(s): a model tells two or more apart")
    if len(counts) > MOST_LABELS:
        raise BadTexts(f"{path} has {len(counts)} labels: a model tells {MOST_LABELS} apart at most")
    if few := [f"{label!r} has {count}" for label, count in sorted(counts.items()) if count < FEWEST]:
        raise BadTexts(f"{path}: a label needs {FEWEST} texts or more, and {', '.join(few)}")
    return lines


def read_lines(path: Path) -> list[Labelled]:
    """Return the lines of such a CSV, however few.

    Raises:
        BadTexts: there is a line that can't be used.
        OSError: the file can't be read.
    """
    before = csv.field_size_limit(10_000_000)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(_lines(path, csv.DictReader(file, strict=True)))
    except UnicodeDecodeError as error:
        raise BadTexts(f"{path} is no text in UTF-8 (byte {error.start})") from error
    finally:
        csv.field_size_limit(before)  # it is the whole process's


def _lines(path: Path, rows: csv.DictReader[str]) -> Iterator[Labelled]:
    try:
        names = rows.fieldnames or ()
        if missing := [name for name in ("text", "label") if name not in names]:
            raise BadTexts(f"{path}, line 1: no column {' or '.join(missing)}; it begins with text,label[,language]")
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            text, label = (row["text"] or "").strip(), (row["label"] or "").strip()
            language = (row.get("language") or "").strip().lower()
            if None in row:
                raise BadTexts(f"{where}: more columns than line 1 has; a text with a comma stands in quotes")
            if not text or not label:
                raise BadTexts(f"{where}: the {'text' if not text else 'label'} is empty")
            if len(label) > _LONGEST_LABEL or not label.isprintable():
                raise BadTexts(f"{where}: a label has {_LONGEST_LABEL} printable characters at most")
            if language and not (language.isascii() and language.isalpha() and len(language) in (2, 3)):
                raise BadTexts(f"{where}: {language[:20]!r} is no language (de, en, …)")
            yield Labelled(text, label, language)
    except csv.Error as error:
        raise BadTexts(f"{path}, line {rows.line_num + 1}: {error}") from error


def train(lines: Sequence[Labelled], made_from: str) -> Trained:
    """Return a model of these texts. One in five was held out to see how good it is and what its scores are worth."""
    labels = sorted({line.label for line in lines})
    found = [features(line.text[:MOST_TITLE], line.text[MOST_TITLE:]) for line in lines]
    right = np.asarray([labels.index(line.label) for line in lines])
    held = np.asarray(_held_out(lines))
    weights = fit(_examples(found, right, len(labels), np.flatnonzero(~held)))
    tested = Held(weights.scores([row for row, out in zip(found, held, strict=True) if out]), right[held])
    divisor = temperature(tested)
    least = threshold(tested, divisor, _PRECISION)
    chances = softmax(tested.scores / divisor)
    told, sure = chances.argmax(axis=1), chances.max(axis=1) >= least
    temperatures = dict.fromkeys(sorted({line.language for line in lines}), divisor)
    whole = fit(_examples(found, right, len(labels), np.arange(len(lines))))
    return Trained(
        model=whole.model(labels, temperatures, least, made_from),
        accuracy=float((told == tested.right).mean()),
        held_out=len(tested.right),
        given=float(sure.mean()),
        given_right=float((told == tested.right)[sure].mean()) if sure.any() else 0.0,
        labels=[
            Seen(
                label,
                int((tested.right == place).sum()),
                float((told == place)[tested.right == place].mean()),
                float((tested.right == place)[told == place].mean()) if (told == place).any() else None,
            )
            for place, label in enumerate(labels)
        ],
    )


def _examples(found: Sequence[Sequence[int]], right: np.ndarray, labels: int, rows: Iterable[int]) -> Examples:
    chosen = list(rows)
    targets = np.eye(labels, dtype=np.float32)[right[chosen]]
    return Examples([found[row] for row in chosen], targets, np.ones(len(chosen), np.float32))


def _held_out(lines: Sequence[Labelled]) -> list[bool]:
    """Return which texts to hold out: of each label every fifth, in the order of their hashes."""
    by_label: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        by_label.setdefault(line.label, []).append(place)
    held = [False] * len(lines)
    for places in by_label.values():
        for place in sorted(places, key=lambda place: crc32(lines[place].text.encode()))[::_EVERY]:
            held[place] = True
    return held

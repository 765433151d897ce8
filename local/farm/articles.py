"""The articles of the farm's sites: they look natural, are the same in each run, and all differ."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from random import Random
from zlib import crc32

_SUBJECTS = (
    "The night ferry",
    "A small observatory",
    "The harbour library",
    "Research & development",
    "The Café Zürich",
    "A choir of beekeepers",
    "The last signal box",
    "An orchard's archive",
    "The tide clock",
    "Wool & weather",
    "The mountain bakery",
    "Łódź's tram museum",
)
_EVENTS = (
    "opens again",
    "changes its timetable",
    "moves to a new home",
    "finds a lost map",
    "counts the swallows",
    "turns one hundred",
    "asks for volunteers",
    "is seen from above",
    "learns to wait",
    "wins a naïve prize",
)
_PLACES = (
    "Malmö",
    "São Paulo",
    "東京",
    "Reykjavík",
    "Kraków",
    "서울",
    "Αθήνα",
    "Ulaanbaatar",
    "Galway",
    "Trois-Rivières",
    "Київ",
    "the valley 🌿",
)
_ACTORS = (
    "the keeper",
    "a retired engineer",
    "the council of Göteborg",
    "her grandmother",
    "the crew of the tender",
    "a visitor from 札幌",
    "the younger archivist",
    "every second member",
    "nobody in the village",
    "the weather service",
)
_DEEDS = (
    "keeps a careful record of",
    "has never quite believed in",
    "walked twice around",
    "wrote a long letter about",
    "paid almost nothing for",
    "can still remember",
    "repaired, with some patience,",
    "drew a faithful picture of",
    "would rather not sell",
    "measured the depth of",
)
_THINGS = (
    "the old lighthouse lamp",
    "a jar of dark honey",
    "the northern platform",
    "those 3 < 4 blue doors",
    "bread & salt",
    "the piano on the landing",
    "a crème brûlée recipe",
    "the winter timetable",
    "two boxes of glass negatives",
    "the ☕ machine by the stairs",
)
_ENDINGS = (
    "before the first snow.",
    "while the kettle boils.",
    "as the papers of 1907 show.",
    "and that is all we know.",
    "in the hour between two trains.",
    "without telling the owner.",
    "on a Tuesday, of all days.",
    "for reasons of their own…",
)
_AUTHORS = ("Ada Novák", "Jun'ichi Tanaka", "Maëlle Le Goff", "Sam Okafor", "Ingrid Þórsdóttir", "Lee 민")
_CATEGORIES = ("Harbours", "Food & drink", "Música", "Railways", "Weather", "本", "Gardens", "Archives")


@dataclass(frozen=True, slots=True)
class Article:
    """One article, before `documents` renders it."""

    entry_id: str
    url: str
    title: str
    """Plain text, one line, single spaces: MD5(url + title) is the article's identity."""
    paragraphs: tuple[str, ...]
    """Plain text."""
    author: str
    categories: tuple[str, ...]
    published_at: datetime
    style: int
    """0: HTML in CDATA, 1: escaped HTML, 2: plain text, as far as the format can express it."""


def write_article(source: str, number: int, *, published_at: datetime, text_length: int, edition: str) -> Article:
    """Return article `number` of `source`: always the same, in whatever feed.

    The edition is part of the link and the entry id, so another edition has other articles.
    """
    random = Random(f"{source}/{number}")  # noqa: S311
    subject = _SUBJECTS[(crc32(source.encode()) + number) % len(_SUBJECTS)]
    headline = f"{subject} {random.choice(_EVENTS)} in {random.choice(_PLACES)}"
    query = f"?id={number}&view=full" if number % 4 == 3 else ""
    return Article(
        entry_id=f"tag:{source}.farm.example,2026:{edition}/{number}",
        url=f"https://{source}.farm.example/{edition}/{number}.html{query}",
        title=f"{headline} ({source}, no. {number})",
        paragraphs=_write_paragraphs(random, text_length),
        author=random.choice(_AUTHORS),
        categories=tuple(random.sample(_CATEGORIES, k=1 + number % 3)),
        published_at=published_at,
        style=number % 3,
    )


def _write_paragraphs(random: Random, text_length: int) -> tuple[str, ...]:
    paragraphs: list[str] = []
    sentences: list[str] = []
    length = 0
    while length < text_length:
        sentences.append(random.choice(_sentences()))
        length += len(sentences[-1]) + 1
        if len(sentences) == 4:
            paragraphs.append(" ".join(sentences))
            sentences = []
    if sentences:
        paragraphs.append(" ".join(sentences))
    return tuple(paragraphs)


@lru_cache(maxsize=1)
def _sentences() -> tuple[str, ...]:
    """Return the sentences of all articles, made once."""
    return tuple(
        f"{actor[0].upper()}{actor[1:]} {deed} {thing} {ending}"
        for actor in _ACTORS
        for deed in _DEEDS
        for thing in _THINGS
        for ending in _ENDINGS
    )

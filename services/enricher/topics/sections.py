"""Pure: the topics that a feed's categories and an article's address name (`Sport`, `Wirtschaft`, `/economia/…`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from services.enricher.topics.taxonomy import MEDIA_TOPICS

_MOST = 20
_LONGEST = 60
"""So many categories are looked at, and of so many characters: a section's name is short."""

_CODE = re.compile(r"(?:medtop:|iptc:|mediatopic/)?(\d{2})\d{6}")
_BETWEEN = re.compile(r"[^\w]+|_")
_SPLIT = re.compile(r"\s*(?:[/>|:;,»·•→]|\s[-–—]\s|&amp;|&)\s*")


def topics_named(categories: Sequence[str], sections: Sequence[str] = ()) -> list[str]:
    """Return the topics that are named, each once, in their order."""
    return list(dict.fromkeys(_topics(categories, sections)))


def plain(name: str) -> str:
    """Return a name as it is compared: small letters, no accents, words with one space between."""
    bare = "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))
    return _BETWEEN.sub(" ", bare.casefold()).strip()


def _topics(categories: Sequence[str], sections: Sequence[str]) -> Iterator[str]:
    for name in (*categories[:_MOST], *sections[:_MOST]):
        if len(name) > _LONGEST:
            continue
        if topic := _by_code(name) or _TOPICS.get(plain(name)):
            yield topic
        else:
            yield from (_TOPICS[part] for part in map(plain, _SPLIT.split(name)) if part in _TOPICS)


def _by_code(name: str) -> str | None:
    code = _CODE.fullmatch(name)
    return code and MEDIA_TOPICS.get(f"{code[1]}000000")


def _read(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names in sections.txt, each with its topic."""
    topic = ""
    for line in text.splitlines():
        if line.startswith("["):
            topic = line.strip("[]")
        elif not line.startswith("#"):
            yield from ((plain(name), topic) for name in line.split(",") if name.strip())


_TOPICS = dict(_read(Path(__file__).with_name("sections.txt").read_text(encoding="utf-8")))

"""The entities that are found for the list, and what tells whether a form is a common word."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


SOURCES = Path(sys.argv[1])
DICTIONARIES = {
    "en": "american-english-small",
    "de": "ngerman",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "sv": "swedish",
    "da": "danish",
}
NO_NAMES = set(
    words_of("""
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
    October November December World Police North South East West Central Northern Southern Eastern Western Capital
    Union Province State Region City Center Centro Most Many Of Man Jewish Swiss Este Hotel Open Same Date Bar Bank Best
    Action Boots Metro Express San Dominique Landes Mitte Favoriten Pueblo Buda
    위해 후에 고마 저지 세부 최고의 고양 동경 가자 이천 나주 원주 진주 공주 부여 보령 상주 영주 경주 전주 성주
    """)
)
ARTICLES = {"Der", "Die", "Das", "Den", "Des", "Les", "Los", "Las", "Una", "Het"}
KEPT = set(
    words_of("""
    Adobe Caterpillar Dodge Ford Fox Jaguar Puma Target Visa
    Angular Dart Discord Electron Elm Flutter Groovy Messenger Opera Postman Puppet Python Racket React Ruby Rust
    Scratch Sentry Snowflake Steam Swift Tinder Twitch Unity Yelp
    """)
)
"""Organisations and technologies that are ordinary English words, and named often enough to be looked for."""


class Lists:
    """The entities, by kind and name."""

    def __init__(self) -> None:
        self.entities: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}
        self.kinds: dict[str, str] = {}
        self.words = {language: set(dictionary(name)) for language, name in DICTIONARIES.items()}
        self.dictionaries = set().union(*self.words.values())
        self.given, self.family = people()
        by_hand = Path(__file__).with_name("given.txt").read_text(encoding="utf-8").splitlines()
        self.given.update(word for line in by_hand if not line.startswith("#") for word in words_of(line))
        self.strong: set[str] = set()
        """Forms that are no common words, whatever dictionaries say."""
        self.by_hand: set[str] = set(KEPT)
        """Forms that stay, ordinary words or not."""
        self.asked_for: set[tuple[str, str]] = set()
        """Forms that are common words of a language by decree."""
        self.known: set[str] = set()
        """Forms that every reader knows: only the English dictionary is asked, others have such names, too."""

    def add(
        self,
        kind: str,
        name: str,
        forms: Iterable[str] = (),
        wikidata: str = "",
        *,
        strong: bool = False,
        known: bool = False,
    ) -> None:
        """Add an entity, or forms of it. A form belongs to whom it was given first."""
        wanted = dict.fromkeys(form for form in (name, *forms) if is_name(form) or strong)
        own = {form: None for form in wanted if self.kinds.setdefault(form, kind + name) == kind + name}
        if own:
            before, found = self.entities.setdefault((kind, name), (wikidata, {}))
            self.entities[kind, name] = (before or wikidata, found | own)
        if strong:
            self.strong |= own.keys()
        if known:
            self.known |= own.keys()

    def marked(self, form: str, kind: str) -> str:
        """Return the form, `~` and where it is a common word; `?`: a person's name, `t`: needs a technical text."""
        if form in self.strong or " " in form or not form[0].isalpha():
            return form
        asked = ("en", "de") if form in self.known else self.words
        common = [language for language in asked if self.is_common(form, language)]
        if kind == "L" and "de" not in common and self.is_german_noun(form):
            common.append("de")
        if form not in self.known and (form in self.given or form in self.family):
            common.append("?")
        if kind == "T":
            common.append("t")
        return f"{form}~{','.join(common)}" if common else form

    def is_common(self, form: str, language: str) -> bool:
        """Tell if a form is a word of the language that is not rare."""
        from wordfreq import zipf_frequency

        if (form, language) in self.asked_for:
            return True
        return form.lower() in self.words[language] and zipf_frequency(form, language) > 2.5

    def is_german_noun(self, form: str) -> bool:
        """Tell if a form is in the German dictionary with an ending that names seldom have."""
        plural = form + ("n" if form.endswith("e") else "es")
        return form in self.words["de"] and not form.endswith(("land", "lande")) and plural in self.words["de"]

    def is_ordinary(self, form: str, kind: str) -> bool:
        """Tell if a form of an organisation or a technology is an English word, so that few mean the thing."""
        return kind in "OT" and " " not in form and form not in self.by_hand and self.is_common(form, "en")


def dictionary(name: str) -> Iterator[str]:
    """Yield the words of a dictionary."""
    raw = (SOURCES / "dictionaries" / name).read_bytes()
    text = raw.decode("latin-1" if name in {"swedish", "danish"} else "utf-8")
    yield from (word for word in text.splitlines() if "'" not in word)


def is_name(form: str) -> bool:
    """Tell if a form can be looked for: long enough for its script, not of the stop list, capitalised if it can be."""
    if not 2 <= len(form) <= 60 or "~" in form or "\t" in form or form in NO_NAMES or "(" in form:
        return False
    letters = [c for c in form if c.isalpha()]
    if not letters:
        return False
    script = unicodedata.name(letters[0], "").split()[0]
    if script in {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}:
        return len(letters) >= 3 and form[0].isupper() and not form.isupper()
    return len(letters) >= (2 if script in {"CJK", "HANGUL"} else 3)


def read(path: str) -> dict[str, object]:
    """Return a JSON file."""
    found: dict[str, object] = json.loads((SOURCES / path).read_text(encoding="utf-8"))
    return found


def people() -> tuple[set[str], set[str]]:
    """Return the given and the family names of all languages with capitals."""
    import faker.providers.person as persons

    given, family = set(), set()
    for module in pkgutil.iter_modules(persons.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for name in dir(provider):
            values = getattr(provider, name)
            if isinstance(values, tuple | list | dict):
                into = given if name.startswith("first_name") else family if name.startswith("last_name") else set()
                into.update(v for v in values if isinstance(v, str) and re.fullmatch(r"[^\W\d_]{3,}(-[^\W\d_]+)?", v))
    return {g for g in given if g[0].isupper() and g not in ARTICLES}, {f for f in family if f[0].isupper()}

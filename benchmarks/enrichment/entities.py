"""How good entities are.

No package brings labelled news, so three things are measured, none of them the whole:
- people: names of Django's translators, who come from all countries, in sentences of eight languages. The sentences are
  ours; no rule was tuned on the names. Those who don't write a given and a family name are left out.
- places: the capitals that zone names have, in the same way: these *are* in the list, so it measures only the rules.
- agreement with spaCy's small English model on the Lee corpus (Australian news of 2000 and 2001, in gensim). The model
  itself is right in about 72 of 100 (IEER newswire): what it misses counts against us here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import files

from benchmarks.enrichment.__main__ import Measure
from services.enricher.entities import load_entities
from services.enricher.entities.model import load_model
from services.enricher.parts import Entities
from services.enricher.text import Text
from shared.wire.enrichment import Entity

PEOPLE = {
    "en": "The committee heard on Tuesday that {} had signed the contract",
    "de": "Nach Angaben der Behörde hat {} den Vertrag unterschrieben",
    "fr": "Selon le journal, {} aurait signé le contrat mardi",
    "es": "Según el diario, {} firmó el contrato el martes",
    "it": "Secondo il giornale, {} ha firmato il contratto martedì",
    "nl": "Volgens de krant heeft {} het contract dinsdag getekend",
    "pl": "Jak podaje gazeta, {} podpisał umowę we wtorek",
    "tr": "Gazeteye göre {} sözleşmeyi salı günü imzaladı",
}
PLACES = {
    "en": "The talks were held in {} on Tuesday",
    "de": "Die Gespräche wurden in {} geführt",
    "fr": "Les discussions ont eu lieu à {} mardi",
    "es": "Las conversaciones se celebraron en {} el martes",
}
ARTICLES = 300
CHARACTERS = 400


def evaluate() -> Iterator[Measure]:
    """Measure the list and the rules, and the models where they are asked."""
    find = load_entities()
    people = sorted(translators())
    for language, sentence in PEOPLE.items():
        yield _recall(find, "person", f"people, {language}", language, sentence, people)
    zones = sorted(capitals())
    for language, sentence in PLACES.items():
        yield _recall(find, "place", f"capitals by their English names, {language}", language, sentence, zones)
    yield from agreement(find)


def _recall(find: Entities, kind: str, name: str, language: str, sentence: str, words: list[str]) -> Measure:
    start = sentence.index("{")
    found = find([Text("", sentence.format(word)) for word in words], [language] * len(words))
    hits = sum(
        any(e.kind == kind and (m.start, m.end) == (start, start + len(word)) for e in entities for m in e.mentions)
        for word, entities in zip(words, found, strict=True)
    )
    others = sum(len(entities) for entities in found) - hits
    value = f"{hits / len(words):.1%} found, {others / len(words):.1%} with a wrong one"
    return Measure(name, value, f"{len(words)} names, each in one sentence")


def translators() -> set[str]:
    """Return the full names of Django's translators."""
    found = set()
    for path in files("django") or ():
        if path.name == "django.po":
            head = path.locate().read_text(encoding="utf-8")[:4_000]  # type: ignore[attr-defined]
            for name in re.findall(r"^# ([^\W\d_]+ [^\W\d_]+) <", head, re.MULTILINE):
                if all(word[0].isupper() and word[1:].islower() and word.isalpha() for word in name.split()):
                    found.add(name)
    return {name for name in found if name.split()[0] not in {"Django", "Translators"}}


def capitals() -> set[str]:
    """Return the cities of the time zones of Europe, Asia and Africa."""
    import zoneinfo

    zones = (zone.rsplit("/", 1) for zone in zoneinfo.available_timezones() if zone.count("/") == 1)
    return {city for region, city in zones if region in {"Europe", "Asia", "Africa"} and city.isalpha()}


def agreement(find: Entities) -> Iterator[Measure]:
    """Compare the list with the model: text and kind."""
    path = next(path for path in files("gensim") or () if path.name == "lee_background.cor")
    articles = path.locate().read_text(encoding="utf-8").splitlines()[:ARTICLES]  # type: ignore[attr-defined]
    texts = [Text("", article[:CHARACTERS]) for article in articles]
    model = load_model()
    ours = [spans(entities) for entities in find(texts, ["en"] * len(texts))]
    theirs = [{(s.start, s.end, str(s.name.kind)) for s in model.find(t.body, "en")} for t in texts]
    for kind in ("person", "organisation", "place"):
        us, them = (sum(len(by_kind(found, kind)) for found in side) for side in (ours, theirs))
        both = sum(len(by_kind(a, kind) & by_kind(b, kind)) for a, b in zip(ours, theirs, strict=True))
        value = f"it finds {both / us:.1%} of ours, we {both / them:.1%} of its own"
        yield Measure(f"agreement with the model, {kind}", value, f"{us} and {them} mentions in {len(texts)} texts")


def spans(entities: Iterable[Entity]) -> set[tuple[int, int, str]]:
    """Return where entities are mentioned, and their kinds."""
    return {(m.start, m.end, str(e.kind)) for e in entities for m in e.mentions}


def by_kind(found: set[tuple[int, int, str]], kind: str) -> set[tuple[int, int, str]]:
    """Return those of a kind."""
    return {span for span in found if span[2] == kind}

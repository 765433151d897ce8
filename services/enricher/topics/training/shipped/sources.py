"""Reads the texts that the shipped model is made of, each with the topic that its source gives it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

import yaml

from services.enricher.topics import taxonomy as t
from services.enricher.topics.training.shipped.headings import CURRENT_EVENTS, HUFFPOST, HUFFPOST_NUMBERS
from services.enricher.topics.training.texts import read_texts

OWN = Path(__file__).with_name("texts.csv")
"""Texts that were written for Feedmill, of what the other sources have little."""

WORDS = Path(__file__).with_name("words.txt")
"""Words that newsrooms use for a topic, in the other languages."""

LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh")
"""Those that the teacher knows."""

_SIB = {
    "ar": "arb_Arab", "de": "deu_Latn", "en": "eng_Latn", "es": "spa_Latn", "fr": "fra_Latn", "it": "ita_Latn",
    "ja": "jpn_Jpan", "ko": "kor_Hang", "nl": "nld_Latn", "pl": "pol_Latn", "pt": "por_Latn", "ru": "rus_Cyrl",
    "th": "tha_Thai", "tr": "tur_Latn", "zh": "zho_Hans",
}  # fmt: skip
_SIB_TOPICS = {
    "sports": t.SPORT,
    "politics": t.POLITICS,
    "health": t.HEALTH,
    "entertainment": t.ARTS,
    "science/technology": t.SCIENCE,
}
_REFERENCES = re.compile(r"(\s*\([^()]*\),?)+\s*$")
_VIOLENCE = re.compile(r"kill|attack|bomb|shoot|gunm|soldier|missile|arrest|murder|explo", re.IGNORECASE)
_WITHOUT_HEADING = {
    t.LABOUR: re.compile(
        r"trade union|labou?r union|workers? (?:go|walk|strike|begin|stage)|general strike|on strike|walkout|"
        r"minimum wage|industrial action|strike action|unemployment|layoff|job cuts|lay off",
        re.IGNORECASE,
    ),
    t.RELIGION: re.compile(
        r"\b(?:Pope|cardinals?|archbishop|bishops?|Vatican|imam|mosque|synod|canoni[sz]\w*|rabbi|Dalai Lama|Hajj|"
        r"pilgrims?|Catholic Church|Orthodox Church|Church of England)\b"
    ),
    t.WEATHER: re.compile(
        r"heat ?wave|snowfall|blizzard|cold (?:wave|snap)|temperature record|hottest|coldest|winter storm|meteorolog|"
        r"heavy snow|tropical storm",
        re.IGNORECASE,
    ),
    t.EDUCATION: re.compile(
        r"\b(?:university|universities|schools?|students?|teachers?|exams?|pupils|tuition)\b", re.IGNORECASE
    ),
}
_NOT_EDUCATION = re.compile(r"protest|police|covid|coronavirus|scientist|research|stud(?:y|ies) ", re.IGNORECASE)
_ENVIRONMENT = re.compile(
    r"climat|species|emission|pollut|wildlife|forest|carbon|endangered|oil spill|arctic|glacier|biodivers|smog|"
    r"coral|whale|renewable|conservation|extinct|ozone|warming|ecolog|environment",
    re.IGNORECASE,
)
_HEALTH = re.compile(
    r"covid|virus|vaccin|disease|hospital|outbreak|ebola|malaria|cholera|cancer|patient|measles|polio|health|drug|"
    r"influenza|pandemic|dengue|zika|medic|doctor",
    re.IGNORECASE,
)


_OF_WORDS = 40
_AMONG = 8
"""So many texts are made of a topic's words in a language, with so many common ones in each."""
_MOST_OF_EACH = 1300
"""So many texts of a topic are taken from a source: none shall outweigh the others."""


class Text(NamedTuple):
    """A text with a topic, or in another language without."""

    text: str
    topic: str | None
    source: str
    language: str = "en"


def labelled(data: Path) -> list[Text]:
    """Return the English texts with topics, each once."""
    found: dict[str, Text] = {}
    for text in (*_own(), *_current_events(data / "current-events"), *_huffpost(data)):
        found.setdefault(text.text.lower()[:80], text)
    taken = Counter[tuple[str | None, str]]()
    chosen = []
    for _, text in sorted(found.items(), key=lambda item: crc32(item[0].encode())):
        taken[text.topic, text.source] += 1
        if taken[text.topic, text.source] <= _MOST_OF_EACH:
            chosen.append(text)
    return chosen


def in_other_languages(data: Path) -> Iterator[Text]:
    """Yield the texts without topics that the teacher is asked about: words, and sentences."""
    from wordfreq import top_n_list

    for language in LANGUAGES:
        if language not in {"en", "th"}:
            least = 1 if language in {"ja", "ko", "zh"} else 3
            words = [word for word in top_n_list(language, 12_000) if len(word) >= least and not re.search(r"\d", word)]
            yield from (Text(word, None, "word", language) for word in words[:10_000])
        for part in ("train", "dev"):
            yield from (text._replace(topic=None) for text in sib(data, language, part))
    for path in sorted((data / "ud").glob("*.conllu")):
        sentences = re.findall(r"^# text = (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        yield from (Text(line, None, "sentence", path.name[:2]) for line in sentences if len(line) > 15)


def of_words() -> Iterator[Text]:
    """Yield texts of three words of a topic among common ones: teachers of single words make them weigh too little."""
    from wordfreq import top_n_list

    chance = Random(18)  # noqa: S311 - no secret
    for language, topic, words in _words():
        between = "" if language in {"ja", "th", "zh"} else " "
        common = [] if language == "th" else [word for word in top_n_list(language, 600) if word.isalpha()]
        for _ in range(_OF_WORDS):
            chosen = chance.sample(words, 3) + chance.sample(common, min(_AMONG, len(common)))
            chance.shuffle(chosen)
            yield Text(between.join(chosen), topic, "words", language)


def _words() -> Iterator[tuple[str, str, list[str]]]:
    language = ""
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            language = line.strip("[]")
        elif not line.startswith("#"):
            topic, _, words = line.partition(": ")
            yield language, getattr(t, topic), words.split(", ")


def sib(data: Path, language: str, part: str) -> Iterator[Text]:
    """Yield the sentences of a part of SIB-200; a topic only where it is one of ours."""
    path = data / "sib-200" / "data" / "annotated" / _SIB[language] / f"{part}.tsv"
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        _, category, text = line.split("\t")[:3]
        yield Text(text, _SIB_TOPICS.get(category), "sentence", language)


def _own() -> Iterator[Text]:
    for line in read_texts(OWN):
        yield Text(line.text, line.label, "own")


def _current_events(folder: Path) -> Iterator[Text]:
    for path in sorted(folder.glob("20*/*/*.yaml")):
        try:
            day = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        except yaml.YAMLError:
            continue
        headings = day.get("Intelligence_Payload") if isinstance(day, dict) else None
        for heading, lines in (headings or {}).items():
            for line in lines or ():
                text = _REFERENCES.sub("", str(line)).strip()
                if len(text) >= 50 and (topic := _topic_of_event(heading, text)):
                    yield Text(text, topic, "current-events")


def _topic_of_event(heading: str, text: str) -> str | None:
    topic = CURRENT_EVENTS.get(heading)
    if heading == "Health and environment":
        green, ill = bool(_ENVIRONMENT.search(text)), bool(_HEALTH.search(text))
        topic = (t.ENVIRONMENT if green else t.HEALTH) if green != ill else None
    if not _VIOLENCE.search(text):
        for other, words in _WITHOUT_HEADING.items():
            if words.search(text) and not (other == t.EDUCATION and _NOT_EDUCATION.search(text)):
                return other
    return topic


def _huffpost(data: Path) -> Iterator[Text]:
    for row in _json_lines(data / "huffpost-36900.json"):
        if topic := HUFFPOST_NUMBERS.get(row["label"]):
            yield Text(_joined(row["raw"]), topic, "huffpost")
    for row in _json_lines(data / "huffpost-2022.json"):
        if topic := HUFFPOST.get(row["category"]):
            yield Text(f"{row['headline']}. {row['short_description']}", topic, "huffpost")


def _json_lines(path: Path) -> Iterable[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the last line of a file that was cut
            continue


def _joined(text: str) -> str:
    """Return text whose signs stand apart as it was written."""
    return re.sub(r"\s+([,.!?;:%)’'])", r"\1", text).replace(" n't", "n't").replace(" - ", "-")

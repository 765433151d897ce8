"""What the enricher found out about an article, in words for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = {"person": "people", "organisation": "organisations", "place": "places", "technology": "technologies"}
UNDETERMINED = "und"


def in_words_of_people(article: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of an article, with each label and its confidence as one text."""
    words = dict(article)
    words["detected_language"] = language_in_words(
        words.get("detected_language"), words.pop("language_confidence", None)
    )
    words["topic"] = with_share(words.get("topic"), words.pop("topic_confidence", None))
    words["entities"] = entities_in_words(words.get("entities") or ())
    score = words.pop("duplicate_score", None)
    kind = words.get("duplicate_kind")
    words["duplicate_kind"] = kind if kind is None or score is None else f"{kind}, {score * 100:.0f} % is the same"
    return {name: value for name, value in words.items() if value is not None or name in article}


def language_in_words(language: str | None, confidence: float | None) -> str | None:
    """Return a language with its confidence."""
    return "the text does not tell" if language == UNDETERMINED else with_share(language, confidence)


def with_share(label: str | None, confidence: float | None) -> str | None:
    """Return a label with its confidence: `politics (87 %)`."""
    return label if label is None or confidence is None else f"{label} ({confidence * 100:.0f} %)"


def entities_in_words(entities: Sequence[Mapping[str, Any]]) -> str | None:
    """Return who and what an article names, by kind; None: nobody and nothing."""
    named: dict[str, list[str]] = {}
    for entity in entities:
        about = f"{entity['name']} ({entity['id']})" if entity.get("id") else entity["name"]
        named.setdefault(KINDS.get(entity["kind"], entity["kind"]), []).append(about)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in named.items()) or None

"""What the enricher and the writer found out about an article."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

_MENTION: dict[str, JsonValue] = {"field": "title", "start": 4, "end": 6}

LABELS: dict[str, JsonValue] = {
    "detected_language": "en",
    "language_confidence": 0.998,
    "topic": "politics and government",
    "topic_confidence": 0.87,
    "entities": [{"name": "European Union", "kind": "organisation", "id": "Q458", "mentions": [_MENTION]}],
    "duplicate_of": "e4d909c290d0fb1ca068ffaddf22cbd0",
    "duplicate_kind": "text",
    "duplicate_score": 0.93,
}


class Mention(BaseModel):
    """Where a text names an entity: characters from `start` to before `end`."""

    field: str
    start: int
    end: int


class Entity(BaseModel):
    """A person, organisation, place or technology that an article names."""

    name: Annotated[str, Field(description="Normalised, as far as the enricher knows it.")]
    kind: Annotated[str, Field(description="person, organisation, place or technology.")]
    id: Annotated[str | None, Field(description="Its id at Wikidata.")] = None
    mentions: list[Mention] = []


DetectedLanguage = Annotated[
    str | None, Field(description="The text's own (ISO 639-1); `und`: it does not tell; null: no enricher saw it.")
]
Confidence = Annotated[float | None, Field(description="The share of such labels that is right, from 0 to 1.")]
Topic = Annotated[str | None, Field(description="Null: none is sure enough, or no enricher saw it.")]
Original = Annotated[str | None, Field(description="The article that came first with the same story.")]
Kind = Annotated[str | None, Field(description="Why `duplicate_of` is set: `address`, `title` or `text`.")]
Score = Annotated[float | None, Field(description="How much of the text is the same, from 0 to 1.")]
Entities = Annotated[list[Entity] | None, Field(description="Null: they were not looked for.")]

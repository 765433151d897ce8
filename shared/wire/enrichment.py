"""The wire: what the enricher found out about an entry."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from shared.wire.envelope import Many, Record

UNDETERMINED = "und"
"""The language of a text that does not tell it (BCP 47)."""

EntityKind = Literal["person", "organisation", "place", "technology"]


class Mention(Record):
    """Where a text names an entity: characters `start` to `end` (exclusive) of a column."""

    field: Literal["title", "body"]
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Entity(Record):
    """A person, organisation, place or technology that an article names."""

    name: str
    """Normalised: the list's name of it where it has one, else the first mention's."""
    kind: EntityKind
    id: str | None = None
    """Its id at Wikidata (`Q458`), where the list gives one."""
    mentions: Many[Mention] = ()


class Sketch(Record):
    """What near-duplicates are found by (docs/explanation/enrichment.md). Hashes are little-endian."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    version: int = 1
    """Sketches of two versions can't be compared."""
    count: int = Field(ge=0)
    """How many different word 3-shingles the text has."""
    head: bytes = Field(default=b"", max_length=512)
    """Hashes of its first shingles, 4 bytes each, in their order."""
    rest: bytes = Field(default=b"", max_length=512)
    """The smallest hashes of its other shingles, 4 bytes each, ascending."""
    numbers: bytes = Field(default=b"", max_length=256)
    """Numbers and dates of title and text, 4 bytes each: the lower 18 bits for the words beside, 14 for the value."""
    names: bytes = Field(default=b"", max_length=256)
    """Its words that are capitalised within a sentence, likewise."""
    title: bytes = Field(default=b"", max_length=128)
    """Hashes of the title's words, 4 bytes each, in their order."""
    words: bytes = Field(default=b"", max_length=256)
    """A Bloom filter of the words of title and text, of scripts without spaces of pairs of characters: each sets its
    `filter_bits`, lowest bit first."""
    told: bytes = Field(default=b"", max_length=64)
    """The digests, 2 bytes each, of those of the title that stand at the text's beginning, too."""
    is_telling: bool = False
    """Whether the title is so long, and so free of dates, that it hardly stands over two stories."""

    @classmethod
    def of_valid(cls, fields: dict[str, Any]) -> Self:
        """Return the sketch with these fields: all fields, all valid. Nothing is checked or copied.

        For the writer, which reads what it has written. It takes a tenth of the time of `model_construct`.
        """
        sketch = cls.__new__(cls)
        set_attribute = object.__setattr__
        set_attribute(sketch, "__dict__", fields)
        set_attribute(sketch, "__pydantic_fields_set__", _SKETCH_FIELDS)
        set_attribute(sketch, "__pydantic_extra__", None)
        set_attribute(sketch, "__pydantic_private__", None)
        return sketch


_SKETCH_FIELDS = set(Sketch.model_fields)
"""The fields that are set in a sketch with all of them."""


def filter_bits(digest: int) -> tuple[int, int, int]:
    """Return which bits of the 1,024 of a sketch's filter a word of this digest sets."""
    mixed = digest * 0x9E3779B1
    return mixed & 1023, mixed >> 10 & 1023, mixed >> 20 & 1023


class Enrichment(Record):
    """What the enricher found out about an entry. None of a field: it was not looked for, or not found."""

    language: str | None = None
    """The text's own (ISO 639-1), whatever the feed says; `und`: the text does not tell it."""
    language_confidence: float | None = Field(default=None, ge=0, le=1)
    topic: str | None = None
    """One of the taxonomy's labels."""
    topic_confidence: float | None = Field(default=None, ge=0, le=1)
    """The share of texts with such a value whose topic is right."""
    entities: Annotated[tuple[Entity, ...] | None, Field(fail_fast=True)] = None
    """Empty: it names none."""
    sketch: Sketch | None = None
    flags: Many[str] = ()
    """What was cut or failed, for example `enrichment_failed` (docs/reference/queues.md)."""

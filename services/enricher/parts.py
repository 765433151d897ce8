"""The parts of the enricher, each a function over the texts of one result, and how they are put together.

All texts of a result are given at once, since a feed's other entries may help where a text is short. A part returns one
finding per text, None where it found nothing. It takes any text that a stranger can write, and time that grows with its
length at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.enricher.text import Text
from shared.wire.enrichment import Entity, Sketch


class Missing(Exception):
    """A part's package or model is not installed. Its message says what to install.

    The enricher does without the part, and says so; or with what stands in for it.
    """

    def __init__(self, said: str, instead: object = None) -> None:
        super().__init__(said)
        self.instead = instead
        """A lesser part, if there is one."""


class Label(NamedTuple):
    """A language or a topic, and the share of such labels that is right, from 0 to 1."""

    name: str
    confidence: float


Languages = Callable[[Sequence[Text]], Sequence[Label | None]]
Sketches = Callable[[Sequence[Text], Sequence[str | None]], Sequence[Sketch | None]]
"""Takes the texts' languages, too; None or `und` where they are not known."""
Topics = Callable[[Sequence[Text], Sequence[str | None]], Sequence[Label | None]]
"""Takes the texts' languages, too."""
Entities = Callable[[Sequence[Text], Sequence[str | None]], Sequence[tuple[Entity, ...]]]
"""Takes the texts' languages, too."""


@dataclass(frozen=True)
class Parts:
    """What this enricher can do. A part that is switched off, or whose package or model is missing, is None."""

    languages: Languages | None = None
    sketches: Sketches | None = None
    topics: Topics | None = None
    entities: Entities | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """What is asked for and not installed, by name, with what to install."""

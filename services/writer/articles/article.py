"""An entry on its way into the tables."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from shared.wire.results import Entry


@dataclass(frozen=True)
class Article:
    """What a batch says of one article: its owner's newest entry."""

    name: str
    """`md5` in all tables."""
    entry: Entry
    feed_id: int
    result_id: UUID
    """The result that the entry stands in."""
    place: int
    """Among the entries of its result."""
    brought_by: UUID
    """The first result of the batch that has the article: its news, if it is new."""

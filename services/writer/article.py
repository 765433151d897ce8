"""An article on its way into the tables, and SQL that is made from a list of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from shared.wire.results import Entry

ROWS_PER_STATEMENT = 500
"""More rows gain nothing (measured), and cost memory here and in the server."""

DuplicateKind = Literal["address", "title", "text"]
"""What tells that two articles are one story."""

T = TypeVar("T")


@dataclass(slots=True)
class Article:
    """What a batch says of one article: the newest entry of the feed that owns it."""

    name: str
    """`md5` in all tables."""
    feed_id: int
    entry: Entry
    result: int
    """The number of the result that has the entry, in the batch."""
    place: int
    """The entry's place in its result."""
    brought_by: int
    """The first result of the batch that has the article. A new article counts as new in that one."""
    key: str | None = None
    """Its entry key (`identity.entry_key`) in the ledger."""
    canonical: str | None = None
    """The digest of its canonical URL; None if that does not tell which article it is."""
    duplicate_of: str | None = None
    """The name of the article that came first under another address, or with nearly the same text."""
    duplicate_kind: DuplicateKind | None = None
    duplicate_score: float | None = None
    """How much of the text is the same, from 0 to 1; None for an address."""
    revision: int = 0
    """How often its text has changed."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and where its value comes from."""

    name: str
    type: str
    value: Callable[[Any], object]
    """Takes an article, or what else is a row."""
    follows_text: bool = False
    """Whether it is written again when the article's text changes."""

    @property
    def sent_as(self) -> str:
        """The type in which the value travels: text for digests, and for lists, since unnest would flatten them."""
        return "text" if self.type.endswith("[]") or self.type in {"jsonb", "uuid"} else self.type


def insert_statement(table: str, columns: Sequence[Column], *, set_to_now: Sequence[str]) -> str:
    """Return an INSERT of many articles: one array parameter for each column (`arrays`), and `now`."""
    names = ", ".join(column.name for column in columns)
    values = ", ".join(
        column.name if column.sent_as == column.type else f"{column.name}::{column.type}" for column in columns
    )
    sent = ", ".join(f"%({column.name})b::{column.sent_as}[]" for column in columns)
    now = ", %(now)s" * len(set_to_now)
    return (
        f"INSERT INTO {table} ({names}, {', '.join(set_to_now)})"  # noqa: S608 - names of ours
        f" SELECT {values}{now} FROM unnest({sent}) AS article ({names})"
    )


def arrays(columns: Sequence[Column], rows: Sequence[object]) -> dict[str, object]:
    """Return the parameters of `insert_statement` for these rows, without `now`."""
    return {column.name: [column.value(row) for row in rows] for column in columns}


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in parts of `ROWS_PER_STATEMENT`: a result may hold thousands."""
    for first in range(0, len(items), ROWS_PER_STATEMENT):
        yield items[first : first + ROWS_PER_STATEMENT]

"""Pages of a list: a cursor says where the next one begins, so that rows that come and go shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from services.admin.errors import Invalid

MOST = 1000

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that PostgreSQL has not: NUL, and halves of others."""

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=MOST, description="Rows of one page, at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=2000, description="Where the page begins: `next` of the page before."),
]


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(None, description="The `cursor` of the next page; null: this is the last one.")


def write_cursor(*key: Any) -> str:
    """Return the cursor behind the row whose sort key this is. Values are JSON's, or are written as text."""
    text = json.dumps(key, default=str, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kinds: Sequence[type]) -> list[Any] | None:
    """Return the sort key in a cursor, which has values of these kinds; None without a cursor.

    Raises:
        Invalid: it was made up.
    """
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        key = json.loads(base64.b64decode(padded, altchars="-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        key = None
    fits = isinstance(key, list) and len(key) == len(kinds) and all(map(_is_of, key, kinds))
    if not fits:
        raise made_up()
    return list(key)


def read_moment(text: str) -> datetime:
    """Return a moment that a cursor holds, in UTC. Raises Invalid if it is none."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise made_up()


def made_up() -> Invalid:
    """Return the error of a cursor that no page had."""
    return Invalid("cursor: this is none of this list; give `next` of the page before as it is", "query.cursor")


def _is_of(value: Any, kind: type) -> bool:
    if kind is float and type(value) is int:
        return True
    if kind is int:
        return type(value) is int and -(2**63) <= value < 2**63
    return type(value) is kind and not _UNSTORABLE.search(str(value))

"""Articles that wait for a consumer, and dead ones: lists them, counts them, and looks at one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, LiteralString

from services.admin.errors import Invalid, NotFound
from services.admin.feeds.tags import HAS_TAG, clean_tag
from shared.database.postgres import Connection
from shared.observability.secrets import mask_credentials

_LARGEST_ID = 2**63 - 1

MOST_SEARCHED = 10_000
"""Articles that one page of a search reads."""

STATE_OF_ROW: LiteralString = """
CASE WHEN claimed_until IS NULL THEN 'new'
    WHEN lease_id IS NOT NULL AND claimed_until > now() THEN 'claimed'
    WHEN lease_id IS NOT NULL THEN 'lease expired'
    WHEN claimed_until > now() THEN 'waiting for retry'
    ELSE 'back'
END AS state
"""

_MATCHES: LiteralString = f"""
(%(feed)s::bigint IS NULL OR feed_id = %(feed)s)
AND (%(text)s::text IS NULL OR strpos(lower(title || ' ' || url), lower(%(text)s)) > 0)
AND (%(tag)s::text IS NULL OR feed_id IN (SELECT id FROM feeds WHERE {HAS_TAG}))
AND (%(language)s::text IS NULL OR lower(language) = lower(%(language)s)
    OR starts_with(lower(language), lower(%(language)s) || '-'))
AND (%(detected_language)s::text IS NULL OR detected_language = lower(%(detected_language)s))
AND (%(topic)s::text IS NULL OR coalesce(topic, 'none') = %(topic)s)
AND (%(duplicate_kind)s::text IS NULL
    OR CASE WHEN duplicate_of IS NULL THEN 'none' ELSE coalesce(duplicate_kind, 'address') END = %(duplicate_kind)s
    OR (%(duplicate_kind)s = 'any' AND duplicate_of IS NOT NULL))
AND (%(md5)s::text IS NULL OR (md5 >= %(md5)s AND md5 < %(md5)s || 'g'))
"""  # noqa: S608 - our own text; keys are hexadecimal, so that `g` ends those that begin so

_COLUMNS: LiteralString = """
md5, feed_id, title, url, retry_count, expiries, revision, published_at, language, detected_language,
language_confidence, topic, topic_confidence, duplicate_of, duplicate_kind, duplicate_score, flags, content_hash,
created_at
"""

_LISTED: LiteralString = f"{_COLUMNS}, {STATE_OF_ROW}, claimed_until, last_error"

_CAME: LiteralString = """
(%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s)
"""

_DEAD: LiteralString = f"""
SELECT {_COLUMNS}, 'dead' AS state, failed_at, error
FROM dead_articles WHERE {_MATCHES}
    AND (%(since)s::timestamptz IS NULL OR failed_at >= %(since)s)
    AND (%(until)s::timestamptz IS NULL OR failed_at < %(until)s)
    AND (%(failed_at)s::timestamptz IS NULL OR (failed_at, md5) < (%(failed_at)s, %(after)s))
ORDER BY failed_at DESC, md5 DESC LIMIT %(limit)s
"""  # noqa: S608 - our own text


class State(StrEnum):
    """Which pending articles: what they wait for."""

    PENDING = "pending"
    CLAIMABLE = "claimable"
    CLAIMED = "claimed"
    WAITING = "waiting"


# In the order in which they are, or will be, given out; each part by its index, since a sort of all would take a while.
_FRESH = 1
_WHICH: dict[int, LiteralString] = {
    0: "claimed_until <= %(as_of)s",
    _FRESH: "claimed_until IS NULL",
    2: "claimed_until > %(as_of)s",
}
_PARTS: dict[State, tuple[dict[int, LiteralString], LiteralString]] = {
    State.PENDING: (_WHICH, ""),
    State.CLAIMABLE: ({part: _WHICH[part] for part in (0, _FRESH)}, ""),
    State.CLAIMED: ({2: _WHICH[2]}, " AND lease_id IS NOT NULL"),
    State.WAITING: ({2: _WHICH[2]}, " AND lease_id IS NULL"),
}


@dataclass(frozen=True)
class Labels:
    """Which labels an article of a list has; None: no matter which. `none`: it has none."""

    detected_language: str | None = None
    """`und`: its text does not tell it."""
    topic: str | None = None
    duplicate_kind: str | None = None
    """`any`: it is a duplicate."""


@dataclass(frozen=True)
class Filter:
    """Which articles a list has; None: no matter which."""

    feed: str | None = None
    """Its id or URL."""
    text: str | None = None
    """In title or URL, in upper or lower case."""
    tag: str | None = None
    """Of the feed."""
    language: str | None = None
    """As the feed says, with all its regions: `en` is also `en-GB`."""
    md5: str | None = None
    """The beginning of the key."""
    since: datetime | None = None
    until: datetime | None = None
    """When they came, or died: from `since` to before `until`."""
    exact: bool = False
    """Whether a feed is found by a URL with credentials."""
    labels: Labels = Labels()


@dataclass(frozen=True)
class Place:
    """A place in the list of pending articles, behind a row."""

    as_of: datetime
    """When the first page was read: it decides what comes back and what is held."""
    part: int
    claimed_until: datetime | None
    created_at: datetime
    md5: str


async def read_clock(connection: Connection) -> datetime:
    """Return the database's time: the `as_of` of a first page."""
    row = await (await connection.execute("SELECT now() AS moment")).fetchone()
    assert row is not None
    moment: datetime = row["moment"]
    return moment


async def list_pending(
    connection: Connection, chosen: Filter, state: State, limit: int, as_of: datetime, after: Place | None = None
) -> list[dict[str, Any]]:
    """Return pending articles in the order in which they are given out, each with its `part` of the list.

    Raises:
        NotFound: there is no feed of that URL.
    """
    parts = _parts(_LISTED, f" AND {_CAME} AND {_MATCHES}", state, after)
    values = await _values(connection, chosen, limit) | {"as_of": as_of} | _place(after)
    query: LiteralString = f"SELECT * FROM ({parts}) AS in_order LIMIT %(limit)s"  # noqa: S608
    return await (await connection.execute(query, values, prepare=False)).fetchall()  # each filter has its own plan


async def search_pending(
    connection: Connection, chosen: Filter, state: State, limit: int, as_of: datetime, after: Place | None = None
) -> tuple[list[dict[str, Any]], Place | None]:
    """Return what `list_pending` does of the next `MOST_SEARCHED` articles, and the place where a search goes on.

    A filter without an index would read all articles to find a few.
    """
    values = await _values(connection, chosen, limit) | {"as_of": as_of, "most": MOST_SEARCHED} | _place(after)
    searched = _parts("*", "", state, after, most="%(most)s")
    query: LiteralString = (
        f"SELECT part, {_LISTED} FROM (SELECT * FROM ({searched}) AS in_order LIMIT %(most)s) AS searched"  # noqa: S608
        f" WHERE {_CAME} AND {_MATCHES} LIMIT %(limit)s"
    )
    rows = await (await connection.execute(query, values, prepare=False)).fetchall()
    if len(rows) == limit:
        return rows, place_of(rows[-1], as_of)
    keys = _parts("claimed_until, created_at, md5", "", state, after, most="%(most)s")
    query = f"SELECT * FROM ({keys}) AS in_order LIMIT 1 OFFSET %(most)s - 1"  # noqa: S608
    last = await (await connection.execute(query, values, prepare=False)).fetchone()
    return rows, place_of(last, as_of) if last else None


def place_of(row: dict[str, Any], as_of: datetime) -> Place:
    """Return the place behind a row of the list."""
    return Place(as_of, row["part"], row["claimed_until"], row["created_at"], row["md5"])


def _place(after: Place | None) -> dict[str, Any]:
    if after is None:
        return {}
    return {"claimed_until": after.claimed_until, "created_at": after.created_at, "after": after.md5}


def _parts(
    columns: LiteralString,
    more: LiteralString,
    state: State,
    after: Place | None,
    most: LiteralString = "%(limit)s",
) -> LiteralString:
    which, of_state = _PARTS[state]
    parts = [part for part in which if after is None or part >= after.part]
    if not parts:
        raise Invalid("cursor: it is of a list with another `state`", "query.cursor")
    return " UNION ALL ".join([_part(part, columns, which[part] + of_state + more, after, most) for part in parts])


def _part(
    part: int, columns: LiteralString, which: LiteralString, after: Place | None, most: LiteralString
) -> LiteralString:
    order: LiteralString = "created_at, md5" if part == _FRESH else "claimed_until, created_at, md5"
    if after and after.part == part:
        place: LiteralString = "%(created_at)s, %(after)s"
        which += f" AND ({order}) > ({place if part == _FRESH else '%(claimed_until)s, ' + place})"
    return (
        f"(SELECT {'012'[part]} AS part, {columns} FROM pending_articles"  # noqa: S608
        f" WHERE {which} ORDER BY {order} LIMIT {most})"
    )


async def list_dead(
    connection: Connection, chosen: Filter, limit: int, after: tuple[datetime, str] | None = None
) -> list[dict[str, Any]]:
    """Return dead articles, the latest first.

    Args:
        connection: to the database.
        chosen: which; `since` and `until` are about their deaths.
        limit: so many at most.
        after: `failed_at` and `md5` of the row before.

    Raises:
        NotFound: there is no feed of that URL.
    """
    failed_at, md5 = after or (None, None)
    values = await _values(connection, chosen, limit) | {"failed_at": failed_at, "after": md5}
    return await (await connection.execute(_DEAD, values, prepare=False)).fetchall()


async def _values(connection: Connection, chosen: Filter, limit: int) -> dict[str, Any]:
    return {
        **vars(chosen),
        **vars(chosen.labels),
        "feed": None if chosen.feed is None else await find_feed(connection, chosen.feed, exact=chosen.exact),
        "tag": None if chosen.tag is None else clean_tag(chosen.tag, "query.tag"),
        "md5": None if chosen.md5 is None else chosen.md5.lower(),
        "limit": limit,
    }


async def find_feed(connection: Connection, feed: str, *, exact: bool) -> int:
    """Return the id of the feed with this URL, or with `exact` also of one with credentials in it.

    A number is an id, also of a feed that was removed.

    Raises:
        NotFound: there is none.
    """
    if feed.isascii() and feed.isdecimal():
        return min(int(feed[:20]), _LARGEST_ID)
    row = await (await connection.execute("SELECT id FROM feeds WHERE url = %s", [feed])).fetchone()
    if row is None or not (exact or mask_credentials(feed) == feed):  # who guesses a password must not learn of it
        raise NotFound(f"there is no feed {mask_credentials(feed)}: `feedmill feeds list` shows all")
    return int(row["id"])


def to_utc(moment: datetime) -> datetime:
    """Return the moment in UTC, as PostgreSQL can read it.

    Raises:
        Invalid: it is outside of the calendar, or has no zone.
    """
    try:
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except OverflowError:
        pass
    raise Invalid(f"{moment}: give a moment with its zone, such as 2026-11-22T12:00:00Z, in the years 1 to 9999")

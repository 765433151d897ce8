"""The writer's SQL for `article_sketches`: finds articles of other feeds that are the same story."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter, itemgetter
from zlib import crc32

from psycopg.rows import tuple_row

from services.writer.article import Article, Column, arrays, chunks
from services.writer.articles.similar import decide
from services.writer.articles.sketched import Sketched
from shared.database.postgres import Connection
from shared.wire.enrichment import Sketch

MOST_HOLDERS = 8
"""A hash that so many articles have is no key of a further one: it is of a template, or of an advertisement."""

MOST_FOUND = 200
"""Articles that one is compared with by keys: more than hold 19 of them, unless writers added some at one moment."""

MOST_COMPARED = 6
"""Articles whose texts one is compared with: those that share most keys."""

FIND = f"""
SELECT place, found.* FROM unnest(%(places)b::integer[], %(wanted)b::text[]) AS wanted (place, wanted)
CROSS JOIN LATERAL (
    SELECT md5, feed_id, keys, count FROM article_sketches
    WHERE keys && wanted.wanted::integer[] AND (first_seen_at > %(since)s) IS TRUE LIMIT {MOST_FOUND}
) AS found
"""  # noqa: S608 - a number of ours
"""IS TRUE: a prepared plan, which knows no dates, would read the index of ages, all rows of it."""

_READ = """
SELECT md5, feed_id, host, version, count, head, rest, numbers, names, title, words, told, is_telling, first_seen_at
FROM article_sketches WHERE md5 = ANY(%b::text[])
"""

_HOST = re.compile(r"[a-z]+://(?:[^/?#@]*@)?(?:www\.)?([^/?#]+)", re.IGNORECASE)


@dataclass
class Drawn:
    """A new article and its sketch."""

    article: Article
    sketched: Sketched
    keys: list[int] = field(default_factory=list)
    """By which it will be found; none: it is a duplicate."""


_SKETCHES = (
    Column("md5", "text", lambda d: d.article.name),
    Column("feed_id", "bigint", lambda d: d.sketched.feed_id),
    Column("host", "bigint", lambda d: d.sketched.host),
    Column("keys", "integer[]", lambda d: _array(d.keys)),
    *(
        Column(name, type_, attrgetter(f"sketched.sketch.{name}"))
        for name, type_ in (
            *(("version", "integer"), ("count", "integer"), ("head", "bytea"), ("rest", "bytea")),
            *(("numbers", "bytea"), ("names", "bytea"), ("title", "bytea")),
            *(("words", "bytea"), ("told", "bytea"), ("is_telling", "boolean")),
        )
    ),
)
_COLUMNS = (*_SKETCHES, Column("duplicate_of", "text", lambda d: d.article.duplicate_of))
_NAMES = ", ".join(column.name for column in _SKETCHES)
_INSERT = f"""
WITH drawn AS MATERIALIZED (
    SELECT * FROM unnest({", ".join(f"%({column.name})b::{column.sent_as}[]" for column in _COLUMNS)})
        AS drawn ({_NAMES}, duplicate_of)
), kept AS (
    INSERT INTO article_sketches ({_NAMES}, first_seen_at)
    SELECT {_NAMES.replace("keys", "keys::integer[]")}, %(now)s FROM drawn WHERE duplicate_of IS NULL
    ON CONFLICT (md5) DO NOTHING
)
INSERT INTO unsettled_articles (md5, feed_id, keys, duplicate_of, added_at)
SELECT md5, feed_id, keys::integer[], duplicate_of, %(now)s FROM drawn
ON CONFLICT (md5) DO NOTHING
"""  # noqa: S608 - names of ours
"""One statement for both tables."""


def host_digest(url: str) -> int:
    """Return a digest of the URL's host, 0 if it has none."""
    found = _HOST.match(url)
    return crc32(found[1].lower().encode("utf-8", "surrogatepass")) if found else 0


async def find_similar(connection: Connection, articles: Iterable[Article], now: datetime, days: float) -> list[Drawn]:
    """Set `duplicate_of` of near-duplicates: to the first like article of the last days, else one of `articles`.

    Returns the articles that have a sketch. Articles that are duplicates already stay as they are.
    """
    drawn = [
        Drawn(article, Sketched(article.feed_id, host_digest(article.entry.url), article.entry.enrichment.sketch))
        for article in articles
        if article.entry.enrichment and article.entry.enrichment.sketch
    ]
    looking = [each for each in drawn if not each.article.duplicate_of]
    if looking:
        _choose(looking, await _find_stored(connection, looking, now - timedelta(days=days)))
    return drawn


async def insert_sketches(connection: Connection, drawn: Sequence[Drawn], now: datetime) -> None:
    """Insert the sketches of new articles that are no duplicates, given by name. All of them are to be settled."""
    for some in chunks(drawn):
        await connection.execute(_INSERT.encode(), {"now": now, **arrays(_COLUMNS, some)})


@dataclass
class _Stored:
    """What the table has for one article."""

    held: list[int] = field(default_factory=list)
    """Its keys that articles have, once for each of these."""
    alike: list[tuple[int, int, str]] = field(default_factory=list)
    """Articles of other feeds: the number of keys in common, negative; by how many shingles they are longer or shorter,
    since phrases of a template fill texts of any length, and a copy mostly has its own; and the name."""
    found: list[tuple[str, Sketched]] = field(default_factory=list)
    """Those that share most keys, in the order in which they came."""


async def _find_stored(connection: Connection, looking: Sequence[Drawn], since: datetime) -> list[_Stored]:
    """Return what the table has for each of these articles, by one look-up for all."""
    wanted = [each.sketched.wanted for each in looking]
    cursor = connection.cursor(binary=True, row_factory=tuple_row)  # there may be a hundred rows for each article
    await cursor.execute(
        FIND.encode(),
        {"places": list(range(len(looking))), "wanted": [_array(keys) for keys in wanted], "since": since},
    )
    stored = [_Stored() for _ in looking]
    sets = [frozenset(keys) for keys in wanted]
    for place, name, feed_id, keys, count in await cursor.fetchall():
        shared, sketched = sets[place].intersection(keys), looking[place].sketched
        stored[place].held.extend(shared)
        if feed_id != sketched.feed_id:
            stored[place].alike.append((-len(shared), abs(count - sketched.sketch.count), name))
    best = [[name for _, _, name in sorted(one.alike)[:MOST_COMPARED]] for one in stored]
    sketches = await read_sketches(connection, {name for names in best for name in names})
    for one, names in zip(stored, best, strict=True):
        there = ((name, *sketches[name]) for name in names if name in sketches)
        one.found = [(name, other) for name, at, other in sorted(there, key=itemgetter(1, 0))]
    return stored


def _choose(looking: Sequence[Drawn], stored: Sequence[_Stored]) -> None:
    """Decide for one article after the other, in their order, and give those that are no duplicates their keys."""
    holders: dict[int, list[int]] = defaultdict(list)
    for place, (drawn, one) in enumerate(zip(looking, stored, strict=True)):
        article, sketched = drawn.article, drawn.sketched
        shared = Counter(other for key in sketched.wanted for other in holders.get(key, ()))
        mates = [looking[other] for other, _ in shared.most_common(MOST_COMPARED)]
        for name, other in (*one.found, *((mate.article.name, mate.sketched) for mate in mates)):
            if match := decide(sketched, other):
                article.duplicate_of, article.duplicate_kind, article.duplicate_score = name, *match
                break
        else:
            counts = Counter(one.held)
            # Where hashes of its own are those of a phrase that many texts have, others stand in for them.
            keys = dict.fromkeys((*sketched.held, *sketched.wanted))
            rare = (key for key in keys if counts[key] + len(holders[key]) < MOST_HOLDERS)
            drawn.keys = list(islice(rare, len(sketched.held)))
            for key in drawn.keys:
                holders[key].append(place)


def collapse(articles: Iterable[Article]) -> None:
    """Let no article of a batch be the duplicate of a duplicate."""
    originals = {article.name: article.duplicate_of for article in articles}
    for article in articles:
        while article.duplicate_of and (first := originals.get(article.duplicate_of)):
            article.duplicate_of = first


async def read_sketches(connection: Connection, names: Iterable[str]) -> dict[str, tuple[datetime, Sketched]]:
    """Return the sketches of these articles, and when they came."""
    if not (wanted := list(names)):
        return {}
    cursor = await connection.cursor(binary=True).execute(_READ.encode(), [wanted])
    found = {}
    for row in await cursor.fetchall():
        name, feed_id, host, at = (row.pop(key) for key in ("md5", "feed_id", "host", "first_seen_at"))
        found[name] = at, Sketched(feed_id, host, Sketch.of_valid(row))
    return found


def _array(keys: Iterable[int]) -> str:
    """Return integers in PostgreSQL's array syntax."""
    return "{" + ",".join(map(str, keys)) + "}"

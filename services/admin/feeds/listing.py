"""Registered feeds, as people see them: a list, one feed with its health, its attempts, the tags in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from services.admin.errors import Invalid, NotFound
from services.admin.feed_health.rule import FACTS, Word
from services.admin.feed_health.words import judge
from services.admin.feeds.configs import mask_config
from services.admin.feeds.states import FAILING, RETRIED, STATES, WAITS_FOR_RETRY, State
from services.admin.feeds.tags import HAS_TAG, clean_tag
from services.admin.health.freshness import read_freshness
from services.fetcher.retries import RetryRules
from shared.database.postgres import Connection
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url

# The feed's next retry: its number (0: the job was deferred without a request) and when it leaves the retry queue.
_RETRY = f"""
{FAILING} AS failing,
CASE WHEN {WAITS_FOR_RETRY} THEN claim_expires_at - make_interval(secs => %(claim_seconds)s) END AS retry_at,
CASE WHEN {WAITS_FOR_RETRY} THEN (
    SELECT attempt + (outcome IN ({RETRIED}))::int FROM feed_fetch_log
    WHERE feed_id = feeds.id ORDER BY started_at DESC, id DESC LIMIT 1
) END AS retry,
CASE WHEN {WAITS_FOR_RETRY} THEN %(max_retries)s::int END AS retries
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class Filters:
    """Which feeds are listed: those that fit all that is given."""

    text: str | None = None
    """In name, title or URL, in upper or lower case."""
    tag: str | None = None
    state: State | None = None
    host: str | None = None
    """The politeness group."""
    source_type: str | None = None
    url: str | None = None
    health: Word | None = None
    exact: bool = False
    """Whether a feed is found by a URL with credentials."""

    @property
    def has_index(self) -> bool:
        """Whether few rows are read: those of a URL or a tag, or a page of all."""
        others = (self.text, self.state, self.host, self.source_type, self.health)
        return self.url is not None or self.tag is not None or others == (None,) * len(others)


_CONDITIONS = {
    "text": "strpos(lower(concat_ws(' ', name, title, url)), lower(%(text)s)) > 0",
    "tag": HAS_TAG,
    "host": "politeness_group = %(host)s",
    "source_type": "source_type = %(source_type)s",
    "url": "url = ANY(%(urls)s)",
    "health": "word = %(health)s",
}

MOST_READ = 10_000
"""Rows that are read at a time while a page has too few that may be found."""

_LAST_LETTER = "\U0010ffff"


@dataclass(frozen=True)
class Sort:
    """An order of the list: `id` makes it unique, and feeds without a value come last in both directions."""

    by: str
    descending: bool = False

    @property
    def key(self) -> str:
        """SQL: the sort key, a number of microseconds for a moment."""
        if self.by in {"id", "failures"}:
            return self.by
        if self.by == "name":
            last = "" if self.descending else _LAST_LETTER
            return f"""coalesce(left(lower(coalesce(name, title)), 200), '{last}') COLLATE "C\""""
        end = -(2**63) if self.descending else 2**63 - 1
        return f"coalesce((extract(epoch FROM {self.by}) * 1000000)::bigint, {end})"

    @property
    def kind(self) -> type:
        """The type of the key."""
        return str if self.by == "name" else int


SORTS = {
    f"{sign}{by}": Sort(by, descending=bool(sign))
    for by in ("id", "name", "next_fetch_at", "last_attempt_at", "last_success_at", "failures")
    for sign in ("", "-")
}
"""By name, in the order in which they are offered."""

# The page is chosen first: what is shown of a feed would otherwise be computed for all that are sorted.
_LIST = """
WITH chosen (chosen_id, sort_key) AS MATERIALIZED (
    SELECT id, {key} FROM feeds {joined} WHERE {conditions} ORDER BY {key} {direction}, id {direction} LIMIT %(limit)s
)
SELECT id, url, coalesce(name, title) AS name, title, tags, source_type, politeness_group, enabled, disabled_reason,
    priority, interval_seconds, poll_seconds, next_fetch_at, last_attempt_at, last_success_at, last_outcome, last_error,
    failures, coalesce(claim_expires_at > now(), false) AS in_flight, sort_key, {retry}, {facts}
FROM chosen JOIN feeds ON feeds.id = chosen_id
ORDER BY sort_key {direction}, id {direction}
"""

# The planner overrates what judging a feed costs: workers and compiled statements take longer than they save.
_PLAINLY = "SELECT set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)"

_STATE = f"""
SELECT id, url, coalesce(name, title) AS name, tags, site_url, politeness_group, priority, enabled, disabled_reason,
    interval_seconds, shortest_seconds, longest_seconds, poll_seconds, items_per_day, ttl_seconds, skip_hours,
    skip_days, next_fetch_at, claim_expires_at, issued_at, last_attempt_at, last_success_at, last_outcome,
    last_error, failures, lying_since, health.*, {_RETRY}, {FACTS},
    source_type, source_config, coalesce(claim_expires_at > now(), false) AS in_flight,
    (SELECT count(*) FROM pending_articles WHERE feed_id = feeds.id) AS pending_articles
FROM feeds CROSS JOIN LATERAL (
    SELECT attempts, success_rate, mean_seconds, stale, seconds_since_success, seconds_since_news
    FROM feed_health WHERE feed_id = feeds.id
) AS health
WHERE id = %(id)s
"""  # noqa: S608 - our own text

_ATTEMPTS = """
SELECT id, started_at, outcome, attempt, status, items_seen, items_new, elapsed_seconds, tier, error
FROM feed_fetch_log
WHERE feed_id = %(feed_id)s AND (%(at)s::timestamptz IS NULL OR (started_at, id) < (%(at)s, %(id)s::bigint))
ORDER BY started_at DESC, id DESC LIMIT %(limit)s
"""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def no_feed(feed: object) -> NotFound:
    """Return the error that there is no feed of this id or URL."""
    return NotFound(f"there is no feed {mask_credentials(str(feed))}: `feedmill feeds list` shows all")


async def list_feeds(
    connection: Connection,
    rules: RetryRules,
    filters: Filters,
    sort: Sort,
    *,
    limit: int,
    after: tuple[Any, int] | None = None,
) -> list[dict[str, Any]]:
    """Return what a person wants to see of feeds, with their `sort_key`. Credentials in URLs are not shown or searched.

    Args:
        connection: to the database.
        rules: when and how often fetchers retry.
        filters: which feeds.
        sort: in which order.
        limit: so many at most.
        after: only feeds behind the one with this sort key and id.
    """
    await connection.execute(_PLAINLY)
    given = {name: value for name, value in vars(filters).items() if value is not None}
    conditions = [_CONDITIONS[name] for name in given if name in _CONDITIONS]
    if filters.state:
        conditions.append(STATES[filters.state])
    if filters.tag is not None:
        given["tag"] = clean_tag(filters.tag, "query.tag")
    if filters.url is not None:
        given["urls"] = _spellings(filters.url)
    place = f"({sort.key}, id) {'<' if sort.descending else '>'} (%(key)s, %(after)s)"
    found: list[dict[str, Any]] = []
    read = limit
    while True:
        if after:
            given |= {"key": after[0], "after": after[1]}
        statement = _statement(sort, filters, [*conditions, place] if after else conditions)
        cursor = await connection.execute(statement.encode(), vars(rules) | given | {"limit": read})
        rows = await cursor.fetchall()
        found += [_shown(row) for row in rows if _may_be_found(row, filters)]
        if len(rows) < read or len(found) >= limit:
            return found[:limit]
        after = rows[-1]["sort_key"], rows[-1]["id"]
        read = min(read * 4, MOST_READ)


def _statement(sort: Sort, filters: Filters, conditions: Sequence[str]) -> str:
    return _LIST.format(
        key=sort.key,
        retry=_RETRY,
        facts=FACTS,
        joined="JOIN feed_words ON feed_words.feed_id = feeds.id" if filters.health else "",
        conditions=" AND ".join(conditions) or "true",
        direction="DESC" if sort.descending else "ASC",
    )


def _may_be_found(row: dict[str, Any], filters: Filters) -> bool:
    """Return whether a feed fits without the credentials in its URL, which nobody may find out by trying."""
    shown = mask_credentials(row["url"])
    if shown == row["url"]:
        return True
    if filters.url is not None and not filters.exact:
        return False
    if filters.text is None:
        return True
    return filters.text.lower() in " ".join(filter(None, (row["name"], row["title"], shown))).lower()


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row without secrets, with the feed's `health`."""
    names = ("url", "site_url", "moved_to", "last_error", "politeness_group")
    masked = row | {name: mask_credentials(row[name]) for name in names if row.get(name)}
    return masked | {"health": judge(masked)}


def _spellings(url: str) -> list[str]:
    try:
        return [url, clean_url(url)]
    except BadUrl:
        return [url]


async def find_by_url(connection: Connection, url: str, *, exact: bool) -> int | None:
    """Return the id of the feed with this URL, as it is given or as it would be registered; None if there is none.

    Feeds with credentials in their URL are found only with `exact`.
    """
    cursor = await connection.execute("SELECT id, url FROM feeds WHERE url = ANY(%s) ORDER BY id", [_spellings(url)])
    filters = Filters(url=url, exact=exact)
    return next((row["id"] for row in await cursor.fetchall() if _may_be_found(row, filters)), None)


async def read_feed(connection: Connection, rules: RetryRules, id_: int) -> dict[str, Any]:
    """Return one feed's state, its health over a week and its freshness. Secrets in its URLs and its config are masked.

    Raises:
        NotFound: there is no such feed.
    """
    cursor = await connection.execute(_STATE.encode(), {**vars(rules), "id": id_})
    row = await cursor.fetchone()
    if row is None:
        raise no_feed(id_)
    found = await read_freshness(connection, feed=id_)
    return _shown(row) | {"config": mask_config(row["source_type"], row["source_config"]), "freshness": found}


async def read_attempts(
    connection: Connection, id_: int, limit: int, after: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    """Return the feed's last attempts, the latest first.

    Args:
        connection: to the database.
        id_: the feed.
        limit: so many at most.
        after: only attempts before the one with this start (microseconds, `micros`) and id.

    Raises:
        NotFound: there is no such feed.
        Invalid: `after` is no moment.
    """
    cursor = await connection.execute("SELECT FROM feeds WHERE id = %s", [id_])
    if await cursor.fetchone() is None:
        raise no_feed(id_)
    try:
        at = EPOCH + timedelta(microseconds=after[0]) if after else None
    except OverflowError:
        raise Invalid("cursor: this is none of ours", "query.cursor") from None
    chosen: Mapping[str, Any] = {"feed_id": id_, "limit": limit, "at": at, "id": after[1] if after else None}
    cursor = await connection.execute(_ATTEMPTS, chosen)
    return [row | {"error": row["error"] and mask_credentials(row["error"])} for row in await cursor.fetchall()]


def micros(moment: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)

"""Checks feeds: each is fetched once and read as the pipeline would, and nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

from services.admin.errors import NotFound
from services.admin.feeds.host_slot import HostBusy, LeftAlone, Sent, patient_slot
from services.admin.feeds.preview import ReadingFailed, parse_body
from services.admin.feeds.single_fetch import SingleFetch
from services.admin.feeds.tags import HAS_TAG, clean_tag
from services.admin.registry import Connection, connect
from services.fetcher.__main__ import make_client
from services.fetcher.attempt import Client
from services.fetcher.http.client import HttpResponse
from services.fetcher.http.redirects import MAX_REDIRECTS
from services.fetcher.settings import FetcherSettings
from shared.observability.secrets import mask_credentials
from shared.politeness import BadUrl, clean_url
from shared.wire.jobs import DEFAULT_SOURCE_TYPE
from shared.wire.outcomes import words_of
from shared.wire.results import Entry, FeedFetched

AT_ONCE = 8
"""Feeds that one series checks at a time; those of one host come one after the other."""

PATIENCE_SECONDS = 60.0
"""A host whose requests are further apart is not asked: its slot would be held for so long."""

PAGE = 500
MAX_WARNINGS = 20

NOT_ASKED = "not_asked"
"""In the place of an outcome: its host must get no request now."""

UNSURE = frozenset({"date_guessed", "date_ambiguous", "date_clamped"})
"""Flags of an entry whose date is not sure."""

_FEEDS = f"""
SELECT id, url, coalesce(name, title) AS name, source_type, source_config,
    coalesce(date_order, date_order_seen) AS date_order
FROM feeds
WHERE id > %(after)s AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
    AND (%(tag)s::text IS NULL OR {HAS_TAG}) AND (%(source_type)s::text IS NULL OR source_type = %(source_type)s)
ORDER BY id LIMIT %(limit)s
"""  # noqa: S608 - our own text

Row = dict[str, Any]


def find_ids(database_url: str, feeds: Sequence[int | str]) -> list[int]:
    """Return the ids of feeds that are given by id or URL.

    Raises:
        NotFound: there is no such feed; names the first one.
    """
    with connect(database_url) as connection:
        return [_find_id(connection, feed) for feed in feeds]


def _find_id(connection: Connection, feed: int | str) -> int:
    urls = [str(feed)]
    with suppress(BadUrl):
        urls.append(clean_url(str(feed)))
    id_ = int(feed) if isinstance(feed, int) or (feed.isascii() and feed.isdecimal() and len(feed) < 19) else None
    statement = "SELECT id FROM feeds WHERE id = %s OR url = ANY(%s) ORDER BY id = %s DESC LIMIT 1"
    row = connection.execute(statement, [id_, urls, id_]).fetchone()
    if row is None:
        raise NotFound(f"there is no feed {mask_credentials(str(feed))[:200]}; `feedmill feeds list` shows all")
    return int(row["id"])


def check_feeds(
    database_url: str,
    settings: FetcherSettings,
    *,
    ids: Sequence[int] | None = None,
    tag: str | None = None,
    source_type: str | None = None,
) -> Generator[Row, None, None]:
    """Yield what was found for each of these feeds, in the order in which the checks end.

    Who stops taking ends the series: no further feed is asked.

    Args:
        database_url: the feeds, and the hosts' turns.
        settings: the fetcher's.
        ids: only these feeds.
        tag: only feeds with this tag.
        source_type: only feeds of this type.

    Raises:
        DatabaseUnavailable: as `connect`.
    """
    chosen = {
        "ids": None if ids is None else list(ids),
        "tag": None if tag is None else clean_tag(tag, "body.tag"),
        "source_type": source_type,
    }
    client, stopped = make_client(settings), threading.Event()
    running: set[Future[Row | None]] = set()

    def check(feed: Row) -> Row | None:
        return None if stopped.is_set() else _check(client, database_url, settings, feed, stopped)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="check") as pool:
        try:
            for feed in _read_feeds(database_url, chosen):
                running.add(pool.submit(check, feed))
                if len(running) >= AT_ONCE:
                    yield from _ended(running)
            while running:
                yield from _ended(running)
        finally:
            stopped.set()
            wait(running)
            client.close()


def _ended(running: set[Future[Row | None]]) -> Iterator[Row]:
    """Yield the results of the checks that end next, and take these out of `running`."""
    ended, _ = wait(running, return_when=FIRST_COMPLETED)
    running -= ended
    yield from filter(None, (each.result() for each in ended))


def _read_feeds(database_url: str, chosen: Row) -> Iterator[Row]:
    after = 0
    while True:
        with connect(database_url) as connection:
            page = connection.execute(_FEEDS.encode(), {**chosen, "after": after, "limit": PAGE}).fetchall()
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1]["id"]


def _check(client: Client, database_url: str, settings: FetcherSettings, feed: Row, stopped: threading.Event) -> Row:
    with connect(database_url) as connection:
        connection.commit()  # the slots begin transactions of their own
        patient = patient_slot(connection, PATIENCE_SECONDS, lambda: PATIENCE_SECONDS)

        @contextmanager
        def slot(group: str, seconds: float) -> Iterator[Sent]:
            with patient(group, seconds) as sent:
                if stopped.is_set():
                    raise LeftAlone("the series was stopped")
                yield sent

        fetching = SingleFetch(client, settings, slot, MAX_REDIRECTS + 1)
        try:
            fetched = fetching.fetch(feed["url"], feed["source_config"], feed["source_type"], feed["date_order"])
        except (LeftAlone, HostBusy) as error:
            return _about(feed) | {"outcome": NOT_ASKED, "words": "the host was not asked", "error": str(error)}
    assert fetched is not None  # the chain of redirects ends before the requests do
    found = _about(feed) | _of_fetch(fetched) | {"redirects": fetching.requests - 1} | _of_entries(fetched.entries)
    if fetched.outcome.is_success and feed["source_type"] == DEFAULT_SOURCE_TYPE and fetching.answer:
        found["warnings"] = _warnings(fetching.answer, settings)
    return found


def _about(feed: Row) -> Row:
    return {
        "feed_id": feed["id"],
        "url": mask_credentials(feed["url"]),
        "name": feed["name"],
        "source_type": feed["source_type"],
        "well": False,
    }


def _of_fetch(fetched: FeedFetched) -> Row:
    masked = {name: mask_credentials(url) if (url := getattr(fetched, name)) else None for name in _URLS}
    return masked | {
        "well": fetched.outcome.is_success,
        "outcome": fetched.outcome.value,
        "words": words_of(fetched.outcome.value) if fetched.outcome.is_final else "failed, and may pass by itself",
        "error": fetched.error,
        "status": fetched.status,
        "tier": fetched.tier,
        "bytes": fetched.decoded_bytes,
        "seconds": round(fetched.elapsed_seconds, 3),
        "title": fetched.feed.title,
    }


_URLS = ("final_url", "moved_to")


def _of_entries(entries: Sequence[Entry]) -> Row:
    dates = [entry.published_at for entry in entries if entry.published_at]
    return {
        "entries": len(entries),
        "newest_at": max(dates, default=None),
        "sure_dates": sum(bool(entry.published_at) and UNSURE.isdisjoint(entry.flags) for entry in entries),
        "full_bodies": sum(entry.content_quality == "full" for entry in entries),
    }


def _warnings(answer: HttpResponse, settings: FetcherSettings) -> list[str]:
    """Return what is wrong with a feed although it was read. A fetch does not keep that, so the body is read again."""
    try:
        parsed = parse_body(answer.body, answer.url, answer.headers.get("content-type"), settings)
    except ReadingFailed as error:
        return [str(error)]
    return list(parsed.warnings[:MAX_WARNINGS])

"""Pure: what a feed's row becomes after an attempt at it. Takes `now`, returns a value, touches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from services.writer.schedule.bounds import (
    add_seconds,
    back_off,
    plan_fixed,
    plan_poll,
    poll_bounds,
    server_floor,
    skip_forbidden,
)
from services.writer.schedule.publication_rate import (
    Limits,
    PublicationRate,
    expected_rate,
    longest_wait,
    next_poll,
    observe,
)
from shared.politeness import DEFAULT_PORTS, BadUrl, clean_url, same_origin
from shared.wire.outcomes import BackOff, Outcome
from shared.wire.results import Entry, FeedFetched

LIE_MARGIN = timedelta(minutes=10)
"""An entry shows in its feed a while after the time that it bears: caches, and people who write it down before."""

GAP_MEMORY = 0.2
"""How much the last gap counts in the usual one (exponential smoothing)."""


MOST_STALE_SECONDS = 900.0
"""How long a feed whose jobs come too late is not issued again, at most: soon enough once the reason has gone."""


@dataclass(frozen=True)
class Rules:
    """The settings that these decisions depend on; spans in seconds."""

    min_poll_seconds: float = 120.0
    max_poll_seconds: float = 86_400.0
    poll_worth: float = Limits().poll_worth
    """In article-seconds (services/writer/schedule/publication_rate.py)."""
    gone_span_seconds: float = 3600.0
    moved_span_seconds: float = 86400.0
    moved_sightings: int = 3


@dataclass(frozen=True)
class FeedState:
    """The columns of `feeds` that an attempt may change."""

    id: int
    url: str
    claim_id: UUID | None
    claim_expires_at: datetime | None
    issued_at: datetime | None
    enabled: bool
    disabled_reason: str | None
    next_fetch_at: datetime
    interval_seconds: float | None
    shortest_seconds: float | None
    longest_seconds: float | None
    poll_seconds: float | None
    pace: PublicationRate
    items_per_day: float | None
    ttl_seconds: float | None
    skip_hours: Sequence[int]
    skip_days: Sequence[int]
    etag: str | None
    last_modified: str | None
    validators_url: str | None
    body_hash: str | None
    cursor_at: datetime | None
    failures: int
    last_attempt_at: datetime | None
    last_success_at: datetime | None
    last_new_at: datetime | None
    last_read_at: datetime | None
    last_outcome: str | None
    last_error: str | None
    gone_since: datetime | None
    moved_to: str | None
    moved_since: datetime | None
    moved_sightings: int
    probed_at: datetime | None
    lying_since: datetime | None
    news_gap_seconds: float | None
    title: str | None
    site_url: str | None
    language: str | None
    has_own_headers: bool = False
    """Whether headers or credentials are sent with its requests. A person sets them, the writer only asks."""


DOUBTFUL = frozenset({"date_guessed", "date_clamped", "date_ambiguous"})
"""Flags of an entry whose date says nothing of when it came."""


def sure_dates(entries: Iterable[Entry]) -> list[datetime]:
    """Return the dates that entries bear, but for those that were guessed."""
    return [entry.published_at for entry in entries if entry.published_at and not DOUBTFUL.intersection(entry.flags)]


@dataclass(frozen=True)
class News:
    """The articles of a result that nobody had seen."""

    count: int = 0
    published: Sequence[datetime] = ()
    """Their dates, as far as they bear any that were not guessed."""


def advance(feed: FeedState, fetched: FeedFetched, *, news: News, now: datetime, rules: Rules) -> FeedState:
    """Return the feed after `fetched`, which brought `news`.

    A result whose claim is not the feed's present one came too late: the feed was issued again, and that job's
    result will tell. Its articles are welcome, its state is not.
    """
    if feed.claim_id != fetched.claim_id:
        return feed
    fetched = _on_our_clock(feed, fetched, now)
    heard = replace(feed, issued_at=None)
    if not fetched.final:
        noted = replace(heard, claim_expires_at=fetched.claim_until)
        return _note_attempt(noted, fetched) if fetched.outcome.is_attempt else noted
    released = replace(heard, claim_id=None, claim_expires_at=None)
    if not fetched.outcome.is_attempt:
        return released if fetched.reason == "batch" else _after_stale(released, now, rules)
    noted = _note_attempt(released, fetched)
    if fetched.outcome.is_success:
        return _after_success(noted, fetched, news, now, rules)
    return _after_failure(noted, fetched, now, rules)


def _after_stale(feed: FeedState, now: datetime, rules: Rules) -> FeedState:
    """Return a feed whose job was dropped unasked. It is as due as it was, but is not issued again at once.

    Jobs that come too late come of a backlog, or of a fetcher whose clock is wrong; that one would drop the next one,
    too, within a second. So the feed waits for as long again as it has been due. A run from cron says so of what it did
    not come to, and the next one is not there within a second.
    """
    overdue = (now - feed.next_fetch_at).total_seconds()
    pause = max(min(overdue, MOST_STALE_SECONDS, rules.max_poll_seconds), rules.min_poll_seconds)
    return replace(feed, claim_expires_at=add_seconds(now, pause))


def _on_our_clock(feed: FeedState, fetched: FeedFetched, now: datetime) -> FeedFetched:
    """Return the result as a fetcher would have sent it whose clock was right.

    No attempt begins before its job was issued, nor after its result is here. Taken as it is, a clock that is slow by
    more than a feed's wait would make the feed due at once, again and again; a fast one would put it off by as much.
    """
    issued_at = feed.issued_at or min(fetched.queued_at, now)
    started_at = max(min(fetched.started_at, now), issued_at)
    if started_at == fetched.started_at:
        return fetched
    shift = (started_at - fetched.started_at).total_seconds()
    until, not_before = fetched.claim_until, fetched.not_before
    return fetched.model_copy(
        update={
            "started_at": started_at,
            "claim_until": until and add_seconds(until, shift),
            "not_before": not_before and add_seconds(not_before, shift),
        }
    )


def _note_attempt(feed: FeedState, fetched: FeedFetched) -> FeedState:
    probed_at = fetched.started_at if fetched.probe else feed.probed_at
    lying = feed.lying_since or (fetched.started_at if _has_lied(feed, fetched) else None)
    return replace(
        feed,
        last_attempt_at=fetched.started_at,
        last_outcome=fetched.outcome.value,
        last_error=fetched.error,
        probed_at=probed_at,
        lying_since=lying,
    )


def _has_lied(feed: FeedState, fetched: FeedFetched) -> bool:
    """Whether a probe shows that the 304 before it was untrue.

    What changed since then is no lie, nor is what another URL answers. But the same validators with another body are
    one, and so is an entry that we don't have though it was out before that 304.
    """
    if not (fetched.probe and fetched.outcome is Outcome.FETCHED and feed.last_outcome == Outcome.NOT_MODIFIED):
        return False
    if (fetched.final_url or fetched.url) != feed.validators_url:
        return False
    if (fetched.etag, fetched.last_modified) == (feed.etag, feed.last_modified):
        return True
    if feed.cursor_at is None or feed.last_attempt_at is None:
        return False
    hidden_until = feed.last_attempt_at - LIE_MARGIN
    return any(
        entry.published_at and feed.cursor_at < entry.published_at < hidden_until and not entry.flags
        for entry in fetched.entries
    )


def _after_success(feed: FeedState, fetched: FeedFetched, news: News, now: datetime, rules: Rules) -> FeedState:
    was_read = fetched.outcome is Outcome.FETCHED
    pace = observe(
        feed.pace,
        now=fetched.started_at,
        new_items=news.count,
        items_seen=len(fetched.entries) if was_read else None,
        published=sure_dates(fetched.entries) if feed.pace.seen_at is None else news.published,
    )
    wait = next_poll(pace, now=fetched.started_at, limits=_limits(feed, rules))
    known = replace(
        _remember_validators(feed, fetched),
        pace=pace,
        items_per_day=expected_rate(pace),
        poll_seconds=wait,
        ttl_seconds=fetched.hints.ttl_seconds if was_read else feed.ttl_seconds,
        skip_hours=list(fetched.hints.skip_hours) if was_read else feed.skip_hours,
        skip_days=list(fetched.hints.skip_days) if was_read else feed.skip_days,
        failures=0,
        gone_since=None,
        last_success_at=fetched.started_at,
        last_read_at=fetched.started_at if was_read else feed.last_read_at,
        last_new_at=fetched.started_at if news.count else feed.last_new_at,
        news_gap_seconds=_usual_gap(feed, fetched.started_at) if news.count else feed.news_gap_seconds,
        cursor_at=_newest(feed.cursor_at, fetched, now),
        title=fetched.feed.title or feed.title,
        site_url=fetched.feed.site_url or feed.site_url,
        language=fetched.feed.language or feed.language,
    )
    planned = _plan(known, fetched, _usual(known, rules), now, _bounds(known, rules))
    return replace(_follow_move(known, fetched, rules), next_fetch_at=planned)


def _usual_gap(feed: FeedState, now: datetime) -> float | None:
    """Return the usual time between two polls that bring something new, in seconds; None before the second."""
    if feed.last_new_at is None:
        return None
    gap = max((now - feed.last_new_at).total_seconds(), 0.0)
    if feed.news_gap_seconds is None:
        return gap
    return (1 - GAP_MEMORY) * feed.news_gap_seconds + GAP_MEMORY * gap


def _remember_validators(feed: FeedState, fetched: FeedFetched) -> FeedState:
    """Keep what the server sent, verbatim. A 304 may name new validators, and then they replace the old ones."""
    if fetched.outcome is Outcome.NOT_MODIFIED:
        return replace(
            feed,
            etag=fetched.etag or feed.etag,
            last_modified=fetched.last_modified or feed.last_modified,
        )
    return replace(
        feed,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        validators_url=fetched.final_url or fetched.url,
        body_hash=fetched.body_hash,
    )


def _newest(cursor: datetime | None, fetched: FeedFetched, now: datetime) -> datetime | None:
    moments = [entry.published_at for entry in fetched.entries if entry.published_at and entry.published_at <= now]
    return max([*moments, cursor] if cursor else moments, default=cursor)


def _plan(feed: FeedState, fetched: FeedFetched, wait: float, now: datetime, bounds: tuple[float, float]) -> datetime:
    """Return when to look again, if it were for the poll at hand: in `wait` seconds, within `bounds`."""
    floor = _floor(feed, fetched, now)
    period = feed.interval_seconds
    if period is None:
        return plan_poll(
            feed.id,
            now=fetched.started_at,
            wait=wait,
            bounds=bounds,
            floor=floor,
            skip_hours=feed.skip_hours,
            skip_days=feed.skip_days,
        )
    return plan_fixed(
        feed.id,
        now=add_seconds(fetched.started_at, max(wait - period, 0.0)),  # later than now after failures
        period=period,
        floor=floor,
        skip_hours=feed.skip_hours,
        skip_days=feed.skip_days,
    )


def _bounds(feed: FeedState, rules: Rules) -> tuple[float, float]:
    limits = _limits(feed, rules)
    return limits.shortest, max(limits.shortest, longest_wait(feed.pace, limits))


def _limits(feed: FeedState, rules: Rules) -> Limits:
    shortest, longest = poll_bounds(
        feed.shortest_seconds, feed.longest_seconds, shortest=rules.min_poll_seconds, longest=rules.max_poll_seconds
    )
    return Limits(poll_worth=rules.poll_worth, shortest=shortest, longest=longest)


def _floor(feed: FeedState, fetched: FeedFetched, now: datetime) -> datetime:
    return server_floor((fetched.hints.max_age_seconds, feed.ttl_seconds), now, fetched.not_before)


def _follow_move(feed: FeedState, fetched: FeedFetched, rules: Rules) -> FeedState:
    """Count sightings of a permanent redirect; adopt it once it has stood long enough (3 over a day).

    That a host has got TLS is adopted at once: with its certificate it says so itself. A feed with headers or
    credentials of its own does not leave its origin: they were meant for that one, and would go to the new one.
    """
    moved_to = _as_registered(fetched.moved_to)
    if moved_to is None:
        return replace(feed, moved_to=None, moved_since=None, moved_sightings=0)
    if _is_upgrade(feed.url, moved_to):
        return replace(feed, url=moved_to, moved_to=None, moved_since=None, moved_sightings=0)
    if moved_to != feed.moved_to or feed.moved_since is None:
        return replace(feed, moved_to=moved_to, moved_since=fetched.started_at, moved_sightings=1)
    seen = replace(feed, moved_sightings=feed.moved_sightings + 1)
    span = (fetched.started_at - feed.moved_since).total_seconds()
    if seen.moved_sightings < rules.moved_sightings or span < rules.moved_span_seconds:
        return seen
    if feed.has_own_headers and not same_origin(feed.url, moved_to):
        return seen
    return replace(seen, url=moved_to, moved_to=None, moved_since=None, moved_sightings=0)


def _as_registered(url: str | None) -> str | None:
    """Return a new address as the registry would take it, None if it would not."""
    try:
        return clean_url(url) if url else None
    except BadUrl:
        return None


def _is_upgrade(before: str, after: str) -> bool:
    """Whether `after` is the same URL with https for http."""
    schemes = urlsplit(before).scheme, urlsplit(after).scheme
    return schemes == ("http", "https") and _without_scheme(before) == _without_scheme(after)


def _without_scheme(url: str) -> tuple[str | int | None, ...]:
    parts = urlsplit(url)
    port = None if parts.port == DEFAULT_PORTS[parts.scheme] else parts.port
    return parts.username, parts.password, parts.hostname, port, parts.path or "/", parts.query


def _after_failure(feed: FeedState, fetched: FeedFetched, now: datetime, rules: Rules) -> FeedState:
    if fetched.outcome.back_off is BackOff.AS_ASKED:
        planned = _plan(feed, fetched, _usual(feed, rules), now, _bounds(feed, rules))
        return replace(feed, next_fetch_at=planned)
    failed = replace(feed, failures=feed.failures + 1)
    failed = replace(failed, next_fetch_at=_plan_after_failure(failed, fetched, now, rules))
    if fetched.outcome.back_off is not BackOff.DISABLE_IF_CONFIRMED:
        return replace(failed, gone_since=None)
    if feed.gone_since is None:
        # Look again as soon as the second sighting may count, rather than after the usual wait.
        again = max(_floor(feed, fetched, now), now + timedelta(seconds=rules.gone_span_seconds))
        again = skip_forbidden(again, feed.skip_hours, feed.skip_days)
        return replace(failed, gone_since=fetched.started_at, next_fetch_at=again)
    if (fetched.started_at - feed.gone_since).total_seconds() < rules.gone_span_seconds:
        return failed
    return replace(failed, enabled=False, disabled_reason="gone: the server answered 410 twice")


def _plan_after_failure(feed: FeedState, fetched: FeedFetched, now: datetime, rules: Rules) -> datetime:
    """Return when to look again after a failure: later and later, where the interval is fixed too."""
    usual = _usual(feed, rules)
    wait = back_off(
        feed.failures,
        fetched.outcome,
        fetched.error_class,
        feed_id=feed.id,
        usual=usual,
        longest=max(_limits(feed, rules).longest, usual),
        first=feed.interval_seconds,
    )
    return _plan(feed, fetched, wait, now, (_limits(feed, rules).shortest, wait))


def _usual(feed: FeedState, rules: Rules) -> float:
    return feed.interval_seconds or feed.poll_seconds or rules.min_poll_seconds

"""Pure: a feed's row after an attempt at it."""

from __future__ import annotations

from copy import copy
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from services.writer.schedule.bounds import (
    add_seconds,
    back_off,
    plan_fixed,
    plan_poll,
    server_lower_bound,
    skip_forbidden,
)
from services.writer.schedule.feed_state import AMBIGUOUS, FeedState, NewItems, Rules, sure_dates
from services.writer.schedule.publication_rate import Limits, items_per_day, longest_wait, next_poll, observe
from shared.politeness import DEFAULT_PORTS, BadUrl, clean_url, same_origin
from shared.wire.outcomes import BackOff, Outcome
from shared.wire.results import FeedFetched

LIE_MARGIN = timedelta(minutes=10)
"""An entry may appear in its feed so long after its date: caches, and people who set the date beforehand."""

GAP_MEMORY = 0.2
"""Weight of the last gap in the usual one (exponential smoothing)."""

MOST_STALE_SECONDS = 900.0
"""The longest pause of a feed whose jobs come too late."""


def advance(feed: FeedState, fetched: FeedFetched, *, new: NewItems, now: datetime, rules: Rules) -> FeedState:
    """Return the feed after the result `fetched`, which brought the items `new`.

    A result of an older claim came too late: the feed was issued again, and the new job's result sets its state. Only
    the articles of the late result are used.
    """
    if feed.claim_id != fetched.claim_id:
        return feed
    fetched = _on_our_clock(feed, fetched, now)
    after = copy(feed)  # the functions below change this copy: a copy for each step would take half of the time
    after.issued_at = None
    if fetched.final:
        after.claim_id = after.claim_expires_at = None
    else:
        after.claim_expires_at = fetched.claim_until
    if fetched.outcome.is_attempt:
        _note_attempt(after, fetched)
        if fetched.final and fetched.outcome.is_success:
            _note_success(after, fetched, new, now, rules)
        elif fetched.final:
            _note_failure(after, fetched, now, rules)
    elif fetched.final and fetched.reason != "batch":
        _wait_after_stale(after, now, rules)
    return after


def _wait_after_stale(feed: FeedState, now: datetime, rules: Rules) -> None:
    """Let a feed whose job was dropped without a request wait: it is still due, but not issued again at once.

    Jobs come too late because of a backlog, or because a fetcher's clock is wrong. Such a fetcher would drop the next
    job, too, within a second. So the feed waits as long as it was overdue.
    """
    overdue = (now - feed.next_fetch_at).total_seconds()
    pause = max(min(overdue, MOST_STALE_SECONDS, rules.max_poll_seconds), rules.min_poll_seconds)
    feed.claim_expires_at = add_seconds(now, pause)


def _on_our_clock(feed: FeedState, fetched: FeedFetched, now: datetime) -> FeedFetched:
    """Return the result with its moments corrected for a wrong clock of the fetcher.

    An attempt begins between its job's issue and now. Uncorrected, a clock that is slow by more than a feed's wait
    would make the feed due at once, again and again; a fast clock would delay it by as much.
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


def _note_attempt(feed: FeedState, fetched: FeedFetched) -> None:
    if feed.lying_since is None and _has_lied(feed, fetched):
        feed.lying_since = fetched.started_at
    if fetched.probe:
        feed.probed_at = fetched.started_at
    feed.last_attempt_at = fetched.started_at
    feed.last_outcome, feed.last_error = fetched.outcome.value, fetched.error
    if fetched.outcome.is_success:
        feed.failing_since = None
    elif fetched.outcome.back_off is not BackOff.AS_ASKED and feed.failing_since is None:
        feed.failing_since = fetched.started_at


def _has_lied(feed: FeedState, fetched: FeedFetched) -> bool:
    """Whether a probe shows that the 304 before it was untrue.

    It was untrue if the same validators now come with another body, or if the feed has an entry that is older than that
    304 and unknown. A later change, or another URL's answer, proves nothing.
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


def _note_success(feed: FeedState, fetched: FeedFetched, new: NewItems, now: datetime, rules: Rules) -> None:
    started_at = fetched.started_at
    was_read = fetched.outcome is Outcome.FETCHED
    feed.pace = observe(
        feed.pace,
        now=started_at,
        new_items=new.count,
        items_seen=fetched.items_seen if was_read else None,
        published=sure_dates(fetched.entries) if feed.pace.seen_at is None else new.published,
    )
    feed.items_per_day = items_per_day(feed.pace)
    feed.poll_seconds = next_poll(feed.pace, now=started_at, limits=_limits(feed, rules))
    feed.failures, feed.gone_since = 0, None
    feed.last_success_at = started_at
    if was_read:
        _note_date_order(feed, fetched)
        feed.last_read_at = started_at
        feed.ttl_seconds = fetched.hints.ttl_seconds
        feed.skip_hours, feed.skip_days = list(fetched.hints.skip_hours), list(fetched.hints.skip_days)
    if new.count:
        feed.news_gap_seconds = _usual_gap(feed, started_at)
        feed.last_new_at = started_at
    feed.cursor_at = _newest(feed.cursor_at, fetched, now)
    feed.title = fetched.feed.title or feed.title
    feed.site_url = fetched.feed.site_url or feed.site_url
    feed.language = fetched.feed.language or feed.language
    _remember_validators(feed, fetched)
    feed.next_fetch_at = _plan(feed, fetched, _usual(feed, rules), now, _bounds(feed, rules))
    _follow_permanent_redirect(feed, fetched, rules)


def _note_date_order(feed: FeedState, fetched: FeedFetched) -> None:
    """Remember what the dates prove, and since when there are dates that may be read in two ways."""
    feed.date_order_seen = fetched.date_order or feed.date_order_seen
    if any(AMBIGUOUS in entry.flags for entry in fetched.entries):
        feed.ambiguous_since = feed.ambiguous_since or fetched.started_at
    elif fetched.entries:
        feed.ambiguous_since = None


def _usual_gap(feed: FeedState, now: datetime) -> float | None:
    """Return the usual time between two polls that bring something new, in seconds; None before the second."""
    if feed.last_new_at is None:
        return None
    gap = max((now - feed.last_new_at).total_seconds(), 0.0)
    if feed.news_gap_seconds is None:
        return gap
    return (1 - GAP_MEMORY) * feed.news_gap_seconds + GAP_MEMORY * gap


def _remember_validators(feed: FeedState, fetched: FeedFetched) -> None:
    """Keep the validators verbatim. New ones in a 304 replace the old ones."""
    if fetched.outcome is Outcome.NOT_MODIFIED:
        feed.etag, feed.last_modified = fetched.etag or feed.etag, fetched.last_modified or feed.last_modified
    else:
        feed.etag, feed.last_modified = fetched.etag, fetched.last_modified
        feed.validators_url, feed.body_hash = fetched.final_url or fetched.url, fetched.body_hash


def _newest(cursor: datetime | None, fetched: FeedFetched, now: datetime) -> datetime | None:
    moments = [entry.published_at for entry in fetched.entries if entry.published_at and entry.published_at <= now]
    return max([*moments, cursor] if cursor else moments, default=cursor)


def _plan(feed: FeedState, fetched: FeedFetched, wait: float, now: datetime, bounds: tuple[float, float]) -> datetime:
    """Return the next poll: `wait` seconds after this one, within `bounds` and the feed's own rules."""
    earliest, hours, days = _lower_bound(feed, fetched, now), feed.skip_hours, feed.skip_days
    start, period = fetched.started_at, feed.interval_seconds
    if period is None:
        return plan_poll(
            feed.id, now=start, wait=wait, bounds=bounds, lower_bound=earliest, skip_hours=hours, skip_days=days
        )
    start = add_seconds(start, max(wait - period, 0.0))  # later after failures
    return plan_fixed(feed.id, now=start, period=period, lower_bound=earliest, skip_hours=hours, skip_days=days)


def _bounds(feed: FeedState, rules: Rules) -> tuple[float, float]:
    limits = _limits(feed, rules)
    return limits.shortest, max(limits.shortest, longest_wait(feed.pace, limits))


def _limits(feed: FeedState, rules: Rules) -> Limits:
    """Return the feed's own limits, else those of the settings. The shortest wait prevails over the longest."""
    shortest = rules.min_poll_seconds if feed.shortest_seconds is None else feed.shortest_seconds
    longest = rules.max_poll_seconds if feed.longest_seconds is None else feed.longest_seconds
    return Limits(poll_worth=rules.poll_worth_seconds, shortest=shortest, longest=max(shortest, longest))


def _lower_bound(feed: FeedState, fetched: FeedFetched, now: datetime) -> datetime:
    return server_lower_bound((fetched.hints.max_age_seconds, feed.ttl_seconds), now, fetched.not_before)


def _follow_permanent_redirect(feed: FeedState, fetched: FeedFetched, rules: Rules) -> None:
    """Count sightings of a permanent redirect; adopt it after enough of them (by default 3 over a day).

    A redirect to the same URL with https is adopted at once: the host's certificate proves it. A feed with headers or
    credentials of its own stays at its origin, since they must not be sent to another one.
    """
    moved_to = _as_registered(fetched.moved_to)
    if moved_to is None or _is_upgrade(feed.url, moved_to):
        feed.url = moved_to or feed.url
        feed.moved_to, feed.moved_since, feed.moved_sightings = None, None, 0
        return
    if moved_to != feed.moved_to or feed.moved_since is None:
        feed.moved_to, feed.moved_since, feed.moved_sightings = moved_to, fetched.started_at, 1
        return
    feed.moved_sightings += 1
    span = (fetched.started_at - feed.moved_since).total_seconds()
    is_confirmed = feed.moved_sightings >= rules.moved_sightings and span >= rules.moved_span_seconds
    if is_confirmed and (same_origin(feed.url, moved_to) or not feed.has_own_headers):
        feed.url, feed.moved_at = moved_to, fetched.started_at
        feed.moved_to, feed.moved_since, feed.moved_sightings = None, None, 0


def _as_registered(url: str | None) -> str | None:
    """Return a URL as the registry spells it, None if the registry refuses it."""
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


def _note_failure(feed: FeedState, fetched: FeedFetched, now: datetime, rules: Rules) -> None:
    if fetched.outcome.back_off is BackOff.AS_ASKED:
        feed.next_fetch_at = _plan(feed, fetched, _usual(feed, rules), now, _bounds(feed, rules))
        return
    feed.failures += 1
    feed.next_fetch_at = _plan_after_failure(feed, fetched, now, rules)
    if fetched.outcome.back_off is not BackOff.DISABLE_IF_CONFIRMED:
        feed.gone_since = None
    elif feed.gone_since is None:
        # Poll again as soon as the second 410 may count, rather than after the usual wait.
        again = max(_lower_bound(feed, fetched, now), now + timedelta(seconds=rules.gone_span_seconds))
        feed.gone_since = fetched.started_at
        feed.next_fetch_at = skip_forbidden(again, feed.skip_hours, feed.skip_days)
    elif (fetched.started_at - feed.gone_since).total_seconds() >= rules.gone_span_seconds:
        feed.enabled, feed.disabled_reason = False, "gone: the server answered 410 twice"


def _plan_after_failure(feed: FeedState, fetched: FeedFetched, now: datetime, rules: Rules) -> datetime:
    """Return the next poll after a failure: it backs off with a fixed interval, too."""
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

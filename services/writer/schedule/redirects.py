"""Pure: when a permanent redirect becomes a feed's URL."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from services.writer.schedule.feed_state import FeedState, Rules
from shared.politeness import DEFAULT_PORTS, BadUrl, clean_url, same_origin
from shared.wire.messages import FeedFetched


def follow_permanent_redirect(feed: FeedState, fetched: FeedFetched, rules: Rules) -> FeedState:
    """Count sightings of a permanent redirect; adopt it after enough of them (by default 3 over a day).

    A redirect to the same URL with https is adopted at once: the host's certificate proves it. A feed with headers or
    credentials of its own stays at its origin, since they must not be sent to another one.
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

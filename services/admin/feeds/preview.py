"""One feed, fetched or at hand, read as the pipeline would read it, and written nowhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from services.enricher.enriching import enrich_entries
from services.enricher.settings import EnrichSettings
from services.fetcher.__main__ import make_client
from services.fetcher.http.decoding import BodyBroken, BodyTooLarge, decode_body
from services.fetcher.http.failure import FetchFailed
from services.fetcher.http.redirects import RedirectChain
from services.fetcher.http.request import HttpRequest
from services.fetcher.outcomes import outcome_of_failure, outcome_of_parse_error, outcome_of_status
from services.fetcher.parse import ParsedFeed, ParseError, parse_feed
from services.fetcher.settings import FetcherSettings
from shared.observability.secrets import mask_credentials
from shared.settings import read_settings
from shared.wire.outcomes import Outcome


class ReadingFailed(Exception):
    """The source was not read. Carries what the pipeline would have recorded."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(mask_credentials(reason))
        self.outcome = outcome


def read_url(url: str, *, base_url: str | None, content_type: str | None) -> ParsedFeed:
    """Fetch a feed once and read it.

    Args:
        url: where it is.
        base_url: where relative links start from; None: where it was found.
        content_type: in place of what the server says.

    Raises:
        ReadingFailed: it could not be fetched, or it is no feed.
    """
    settings = read_settings(FetcherSettings)
    body, said, found_at = _fetch(url, settings)
    return parse_body(body, base_url or found_at, content_type or said, settings)


def read_bytes(content: bytes, *, base_url: str | None, content_type: str | None) -> ParsedFeed:
    """Read a feed that is at hand, compressed with gzip or zstd or not. Raises ReadingFailed."""
    settings = read_settings(FetcherSettings)
    return parse_body(_unpacked(content, settings.max_body_bytes), base_url or "", content_type, settings)


def parse_body(body: bytes, url: str, content_type: str | None, settings: FetcherSettings) -> ParsedFeed:
    """Return the feed in a body that came from `url`. Raises ReadingFailed."""
    end = time.thread_time() + settings.parse_seconds
    try:
        return parse_feed(
            body,
            url=url,
            content_type=content_type,
            now=datetime.now(UTC),
            max_entries=settings.max_entries,
            keep_html=settings.keep_html,
            deadline=lambda: time.thread_time() > end,
        )
    except ParseError as error:
        raise ReadingFailed(outcome_of_parse_error(error), str(error)) from error


def enrich(parsed: ParsedFeed) -> tuple[ParsedFeed, Mapping[str, str]]:
    """Return the feed with what the enricher finds out about its entries, and the parts that are not installed.

    Raises:
        ConfigurationError: FEEDMILL_ENRICH, or a setting of a part, is wrong.
    """
    parts = read_settings(EnrichSettings).parts()
    found = enrich_entries(parsed.entries, parsed.feed.language, parts)
    entries = (
        entry.model_copy(update={"enrichment": enrichment})
        for entry, enrichment in zip(parsed.entries, found, strict=True)
    )
    return replace(parsed, entries=tuple(entries)), parts.missing


def _unpacked(body: bytes, limit: int) -> bytes:
    """Return a file's content, unpacked if it is gzip or zstd, as the fetcher does without being told."""
    try:
        return decode_body(iter([body]), "", limit, lambda: None)[0]
    except BodyTooLarge as error:
        raise ReadingFailed(Outcome.TOO_LARGE, str(error)) from error
    except BodyBroken as error:
        raise ReadingFailed(Outcome.SOFT_ERROR, str(error)) from error


def _fetch(source: str, settings: FetcherSettings) -> tuple[bytes, str | None, str]:
    """Return the body, its content type, and the URL that redirects led to."""
    client = make_client(settings)
    try:
        chain = RedirectChain(source)
        while (answer := client.get(HttpRequest(chain.url))).redirect is not None:
            chain = chain.follow(answer.status, answer.redirect)
    except FetchFailed as error:
        raise ReadingFailed(outcome_of_failure(error.failure), str(error)) from error
    finally:
        client.close()
    outcome = outcome_of_status(answer.status)
    if outcome is not None:
        raise ReadingFailed(outcome, f"the server answered {answer.status}")
    return answer.body, answer.headers.get("content-type"), answer.url


def as_json(parsed: ParsedFeed) -> dict[str, Any]:
    """Return the feed as the object that `feedmill parse --json` prints."""
    return {
        "feed": parsed.feed.model_dump(mode="json") | facts_of(parsed),
        "format": parsed.format,
        "tier": parsed.tier,
        "warnings": list(parsed.warnings),
        "entries": [
            entry.model_dump(mode="json", exclude={"id_is_given": True, "enrichment": {"sketch"}})
            for entry in parsed.entries
        ],
    }


def facts_of(parsed: ParsedFeed) -> dict[str, Any]:
    """Return what the feed says of itself, beside its title, site and language."""
    hints = parsed.hints.model_dump(mode="json", include={"ttl_seconds", "skip_hours", "skip_days"})
    return (
        hints
        | {name: value or None for name, value in asdict(parsed.facts).items()}
        | {"hubs": list(parsed.facts.hubs)}
    )

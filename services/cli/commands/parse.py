"""`feedmill parse`: one feed from a file, a URL or standard input, as the pipeline would read it."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from services.fetcher.__main__ import make_client
from services.fetcher.http.client import HttpRequest
from services.fetcher.http.decoding import BodyBroken, BodyTooLarge, decode_body
from services.fetcher.http.failure import FetchFailed
from services.fetcher.http.redirects import RedirectChain
from services.fetcher.outcomes import outcome_of_failure, outcome_of_status
from services.fetcher.parse import NotAFeed, ParsedFeed, ParseError, parse_feed
from services.fetcher.settings import FetcherSettings
from shared.observability.display import safe_to_show
from shared.observability.secrets import mask_credentials
from shared.settings import read_settings
from shared.wire.outcomes import Outcome


class ReadingFailed(Exception):
    """The source was not read. Carries what the pipeline would have recorded."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(mask_credentials(reason))
        self.outcome = outcome


def read_source(source: str, *, base_url: str | None, content_type: str | None) -> ParsedFeed:
    """Return the feed at `source`: a URL, a file's path, or `-`.

    Raises:
        ReadingFailed: it could not be had, or it is no feed.
        OSError: the file can't be read.
    """
    settings = read_settings(FetcherSettings)
    url = base_url or (source if "://" in source else "")
    if "://" in source:
        body, content_type, url = _fetch(source, content_type, base_url, settings)
    else:
        body = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        body = _unpacked(body, settings.max_body_bytes)
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
        outcome = Outcome.NOT_A_FEED if isinstance(error, NotAFeed) else Outcome.UNPARSEABLE
        raise ReadingFailed(outcome, str(error)) from error


def _unpacked(body: bytes, limit: int) -> bytes:
    """Return a file's content, unpacked if it is gzip or zstd, as the fetcher does without being told."""
    try:
        return decode_body(iter([body]), "", limit, lambda: None)[0]
    except BodyTooLarge as error:
        raise ReadingFailed(Outcome.TOO_LARGE, str(error)) from error
    except BodyBroken as error:
        raise ReadingFailed(Outcome.SOFT_ERROR, str(error)) from error


def _fetch(
    source: str, content_type: str | None, base_url: str | None, settings: FetcherSettings
) -> tuple[bytes, str | None, str]:
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
    return answer.body, content_type or answer.headers.get("content-type"), base_url or answer.url


def as_json(parsed: ParsedFeed) -> dict[str, Any]:
    """Return the feed as the object that `feedmill parse --json` prints."""
    return {
        "feed": parsed.feed.model_dump(mode="json") | _facts(parsed),
        "tier": parsed.tier,
        "warnings": list(parsed.warnings),
        "entries": [entry.model_dump(mode="json", exclude={"id_is_given"}) for entry in parsed.entries],
    }


def _facts(parsed: ParsedFeed) -> dict[str, Any]:
    hints = parsed.hints.model_dump(mode="json", include={"ttl_seconds", "skip_hours", "skip_days"})
    return (
        hints
        | {name: value or None for name, value in asdict(parsed.facts).items()}
        | {"hubs": list(parsed.facts.hubs)}
    )


def show(parsed: ParsedFeed, console: Console) -> None:
    """Print the feed as a table."""
    facts = parsed.feed.model_dump() | _facts(parsed)
    for name, value in facts.items():
        if value and name != "title":
            shown = ", ".join(map(str, value)) if isinstance(value, tuple | list) else value
            console.print(f"{name.replace('_', ' ')}: {safe_to_show(shown)}", soft_wrap=True)
    console.print(f"read by: the {parsed.tier} tier")
    title = safe_to_show(parsed.feed.title or "(a feed without a title)")
    table = Table(title=title, caption=f"{len(parsed.entries)} entries")
    for column in ("published", "title", "url", "quality", "text", "flags"):
        table.add_column(column, overflow="fold" if column == "url" else "ellipsis")
    for entry in parsed.entries:
        published = entry.published_at.strftime("%Y-%m-%d %H:%M") if entry.published_at else "-"
        table.add_row(
            published,
            safe_to_show(entry.title),
            safe_to_show(entry.url),
            entry.content_quality,
            f"{len(entry.body)} characters",
            ", ".join(entry.flags),
        )
    console.print(table)
    for warning in parsed.warnings:
        console.print(f"warning: {safe_to_show(warning)}", style="yellow")

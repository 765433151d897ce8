"""Filters of templates: moments, spans, numbers and strangers' texts, as people read them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup

from services.admin.health.diagnosis import in_words
from shared.observability.display import safe_to_show

NOTHING = "–"


def moment(at: datetime | None) -> str | Markup:
    """Return a moment as `<time>`, which the script shows by the browser's locale and zone."""
    return NOTHING if at is None else _time(at, f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC", "data-local")


def ago(at: datetime | None) -> str | Markup:
    """Return how long ago a moment was, or in what time it comes, as `<time>`."""
    if at is None:
        return NOTHING
    seconds = (datetime.now(UTC) - at).total_seconds()
    words = f"{in_words(seconds)} ago" if seconds >= 0 else f"in {in_words(-seconds)}"
    return _time(at, words, "data-ago")


def _time(at: datetime, text: str, kind: str) -> Markup:
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}" {}>{}</time>').format(
        utc.isoformat().replace("+00:00", "Z"), f"{utc:%Y-%m-%d %H:%M:%S} UTC", kind, text
    )


def span(seconds: float | None) -> str:
    """Return a span in words."""
    return NOTHING if seconds is None else in_words(seconds)


def number(value: float | None) -> str:
    """Return a number with separators of thousands."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def counted(value: int, noun: str) -> str:
    """Return how many there are of something: `1 poll`, `2,000 polls`."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}"


def percent(share: float | None) -> str:
    """Return a share from 0 to 1."""
    return NOTHING if share is None else f"{share:.0%}" if share in {0, 1} or 0.1 <= share <= 0.9 else f"{share:.1%}"


def shown(text: object, most: int | None = 300) -> str:
    """Return a stranger's text on one line, without credentials and invisible characters."""
    return NOTHING if text is None else safe_to_show(text, most)


def link(url: str | None, text: object = None) -> str | Markup:
    """Return a link to a stranger's page; only its text unless it is http(s). Credentials are masked."""
    if url is None:
        return shown(text)
    label = shown(text or url)
    if not _is_web(url):
        return label
    return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(shown(url, None), label)


def _is_web(url: str) -> bool:
    try:
        return urlsplit(url).scheme in {"http", "https"}
    except ValueError:
        return False


def sentence(text: object) -> str:
    """Return a reason as a sentence: with a capital at its beginning."""
    shown_text = safe_to_show(text)
    return shown_text[:1].upper() + shown_text[1:]


def code(text: object) -> Markup:
    """Return a text whose parts in backticks are commands or names."""
    code_part = Markup("<code>{}</code>")
    parts = enumerate(safe_to_show(text).split("`"))
    return Markup("").join(code_part.format(part) if number % 2 else part for number, part in parts)


FILTERS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (moment, ago, span, number, counted, percent, shown, link, sentence, code)
}

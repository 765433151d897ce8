"""Pure: what a server asks of our pace, from its headers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_SECONDS = 86400.0

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,12})", re.IGNORECASE)


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the wait that a Retry-After header asks for, delta or HTTP-date (RFC 9110 10.2.3), at most 24 h."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_RETRY_AFTER_SECONDS)
    moment = _http_date(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER_SECONDS)


def max_age_seconds(cache_control: str | None, expires: str | None, date: str | None) -> float | None:
    """Return for how long the answer is fresh: max-age, else Expires against the answer's own Date (RFC 9111)."""
    found = _MAX_AGE.search(cache_control or "")
    if found:
        return float(found.group(1))
    if cache_control and "no-" in cache_control.lower():
        return None
    until, since = _http_date(expires or ""), _http_date(date or "")
    if until is None or since is None or until <= since:
        return None
    return (until - since).total_seconds()


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

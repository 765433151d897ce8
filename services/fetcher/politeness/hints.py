"""Pure: how soon a server wants the next request, from its headers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_SECONDS = 86400.0

_DIRECTIVE = re.compile(r'([^\s,;="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]*)))?')
"""A name, and what may stand behind it: quoted or not. Servers also write semicolons or spaces for the comma."""

_SECONDS = re.compile(r"[0-9]{1,12}")

_DELTA = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)[0-9]*\s*(?:,|$)")
"""Some servers write fractions, some the header twice, which arrives as a list: of that the first counts."""


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the wait that a Retry-After header asks for, delta or HTTP-date (RFC 9110 10.2.3), at most 24 h."""
    if value is None:
        return None
    text = value.strip()
    delta = _DELTA.match(text)
    if delta:
        return min(float(delta[1]), MAX_RETRY_AFTER_SECONDS)
    moment = _http_date(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER_SECONDS)


def max_age_seconds(cache_control: str | None, expires: str | None, date: str | None) -> float | None:
    """Return for how long the answer is fresh: max-age, else Expires against the answer's own Date (RFC 9111).

    Of Cache-Control only `no-cache` and `no-store` take Expires away; `s-maxage` is for caches that many share.
    """
    directives = _directives(cache_control or "")
    age = _SECONDS.match(directives.get("max-age") or "")
    if age:
        return float(age.group())
    # `no-cache="Set-Cookie"` is about that field alone.
    if "no-store" in directives or directives.get("no-cache", "a field") is None:
        return None
    until, since = _http_date(expires or ""), _http_date(date or "")
    if until is None or since is None or until <= since:
        return None
    return (until - since).total_seconds()


def _directives(cache_control: str) -> dict[str, str | None]:
    """Return the directives by their names in lower case; of several with one name the first counts."""
    found: dict[str, str | None] = {}
    for name, quoted, plain in _DIRECTIVE.findall(cache_control):
        found.setdefault(name.lower(), (quoted or plain) or None)
    return found


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Pure: what one feed asks for itself: headers, credentials, a deadline. From `source_config`, a stranger's JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from shared.politeness import same_origin

LEAST_TIMEOUT_SECONDS = 1.0
MOST_TIMEOUT_SECONDS = 300.0
MOST_HEADERS = 30

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
"""A header's name (RFC 9110 5.6.2)."""

_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4000}")
"""A header's value (RFC 9110 5.5): no CR, LF or NUL, and nothing outside of Latin-1."""

_NOT_THEIRS = re.compile(
    r"accept-encoding|connection|content-.*|cookie2?|expect|host|if-.*|keep-alive|proxy-.*|range|referer|te|trailer"
    r"|transfer-encoding|upgrade|via"
)
"""Framing and hop-by-hop fields (RFC 9110 7.6.1), what the fetcher decides by itself, and what it never sends."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Json = object
"""A value as JSON has it; what is in it is found out here."""


class BadOptions(ValueError):
    """The feed's options can't be used. The message names the key and what is expected, never a secret's value."""


@dataclass(frozen=True)
class FeedOptions:
    """A feed's own options, checked."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent beside ours, or in their place (User-Agent, Accept)."""
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """User and password (Basic, RFC 7617)."""
    timeout_seconds: float | None = None
    """The wall-clock deadline of its fetches; None: the fetcher's own."""

    def for_url(self, origin_url: str, url: str) -> FeedOptions:
        """Return what may be sent to `url`, a hop of the fetch that began at `origin_url`.

        User and password in `origin_url` count as the feed's credentials, so that a redirect within its origin keeps
        them. When a redirect leaves the origin, all headers and credentials stay behind: one is as likely a secret
        as the other. From http to https on the same host's default ports is no leaving.
        """
        if not same_origin(origin_url, url):
            return FeedOptions(timeout_seconds=self.timeout_seconds)
        if self.credentials or any(name.lower() == "authorization" for name in self.headers):
            return self
        return replace(self, credentials=_userinfo(origin_url))


def read_options(config: Mapping[str, Json]) -> FeedOptions:
    """Return the options in a feed's `source_config`; keys that mean nothing here are let be.

    Raises:
        BadOptions: `headers`, `user`, `password` or `timeout_seconds` can't be used.
    """
    headers = _headers(config.get("headers"))
    credentials = _credentials(config.get("user"), config.get("password"))
    if credentials and any(name.lower() == "authorization" for name in headers):
        raise BadOptions("user: expected either user and password or an Authorization header, found both")
    return FeedOptions(headers, credentials, _timeout(config.get("timeout_seconds")))


def _headers(value: Json) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MOST_HEADERS:
        raise BadOptions(f"headers: expected an object of at most {MOST_HEADERS} names and texts")
    headers: dict[str, str] = {}
    for name, text in value.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise BadOptions(f"headers: expected a header's name, found {str(name)[:50]!r}")
        if _NOT_THEIRS.fullmatch(name.lower()):
            raise BadOptions(f"headers.{name}: this header is not a feed's to set")
        if not isinstance(text, str) or not _VALUE.fullmatch(text):
            raise BadOptions(
                f"headers.{name}: expected a text of at most 4000 Latin-1 characters without line breaks and NUL"
            )
        if name.lower() in map(str.lower, headers):
            raise BadOptions(f"headers.{name}: expected each name once, in upper or lower case")
        headers[name] = text.strip()
    return headers


def _credentials(user: Json, password: Json) -> tuple[str, str] | None:
    if user is None and password is None:
        return None
    if not isinstance(user, str) or not user or ":" in user or _CONTROL.search(user):
        raise BadOptions("user: expected a text without colons and control characters (RFC 7617)")
    if password is not None and (not isinstance(password, str) or _CONTROL.search(password)):
        raise BadOptions("password: expected a text without control characters (RFC 7617)")
    return user, password or ""


def _timeout(value: Json) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):  # True is an int to Python
        value = math.nan
    if LEAST_TIMEOUT_SECONDS <= value <= MOST_TIMEOUT_SECONDS:
        return float(value)
    raise BadOptions(
        f"timeout_seconds: expected a number from {LEAST_TIMEOUT_SECONDS:.0f} to {MOST_TIMEOUT_SECONDS:.0f}"
    )


def _userinfo(url: str) -> tuple[str, str] | None:
    parts = urlsplit(url)
    if not (parts.username or parts.password):
        return None
    return unquote(parts.username or ""), unquote(parts.password or "")

"""Which feeds of a list are taken, and why others are not. No name is looked up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from services.admin.feeds.urls import without_feed
from services.admin.registry import NewFeed, registered_url
from services.admin.subscriptions.model import Listed
from services.fetcher.http.address_guard import Blocked, Network, check_host
from services.fetcher.http.options import BadOptions
from shared.politeness import DEFAULT_PORTS, MAX_URL_CHARACTERS, BadUrl, host_of

_SITE_URL = re.compile(r"https?://\S{1,1990}", re.IGNORECASE)


class Reason(StrEnum):
    """Why a line of a list was skipped."""

    NO_URL = "no_url"
    NOT_HTTP = "not_http"
    BAD_URL = "bad_url"
    TOO_LONG = "too_long"
    REFUSED_ADDRESS = "refused_address"
    UNKNOWN_SOURCE_TYPE = "unknown_source_type"
    DUPLICATE = "duplicate"
    ALREADY_THERE = "already_there"

    @property
    def is_known(self) -> bool:
        """Whether the feed was there before, as a feed that is imported again."""
        return self is Reason.ALREADY_THERE

    @property
    def is_refusal(self) -> bool:
        """Whether the feed is not registered afterwards."""
        return self not in {Reason.DUPLICATE, Reason.ALREADY_THERE}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line of a list that adds no feed."""

    line: int
    reason: Reason
    detail: str
    """The reason for a person; without the URL."""
    url: str
    """As the list has it, or the feed's name if it has none. It may hold credentials."""


def check_listed(listed: Listed, allowed: tuple[Network, ...]) -> NewFeed | Skipped:
    """Return the feed to register, with its URL as it is registered, or why it can't be.

    Args:
        listed: the feed.
        allowed: networks that may be fetched from although they are not public.
    """
    try:
        return NewFeed(
            _check_url(listed, allowed),
            name=listed.name or None,
            tags=listed.tags,
            site_url=listed.site_url if _SITE_URL.fullmatch(listed.site_url) else None,
            source_type=listed.source_type,
        )
    except _Refused as refused:
        return Skipped(listed.line, refused.reason, str(refused), listed.url or listed.name)


class _Refused(Exception):
    def __init__(self, reason: Reason, detail: object) -> None:
        super().__init__(str(detail))
        self.reason = reason


def _check_url(listed: Listed, allowed: tuple[Network, ...]) -> str:
    url = without_feed(listed.url)
    if not url:
        raise _Refused(Reason.NO_URL, "no URL")
    if len(url) > MAX_URL_CHARACTERS:
        raise _Refused(Reason.TOO_LONG, f"the URL has {len(url)} characters; at most {MAX_URL_CHARACTERS} are taken")
    scheme, colon, _ = url.partition(":")
    if colon and scheme.isalnum() and scheme.lower() not in DEFAULT_PORTS:
        detail = f"the scheme is {scheme.lower()!r}; only http and https feeds can be fetched"
        raise _Refused(Reason.NOT_HTTP, detail)
    try:
        clean = registered_url(NewFeed(url, source_type=listed.source_type))
        check_host(host_of(clean), allowed)
    except BadUrl as error:
        raise _Refused(Reason.BAD_URL, error) from None
    except BadOptions as error:
        raise _Refused(Reason.UNKNOWN_SOURCE_TYPE, error) from None
    except Blocked as error:
        raise _Refused(Reason.REFUSED_ADDRESS, error) from None
    return clean

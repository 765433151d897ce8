"""Which feeds of a list are taken, and why others are not. No name is looked up."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import StrEnum

from services.admin.registry import NewFeed, registered_url
from services.admin.subscriptions.model import Listed
from services.fetcher.http.address_guard import Blocked, Network, check_address
from services.fetcher.http.options import BadOptions
from shared.politeness import DEFAULT_PORTS, MAX_URL_CHARACTERS, BadUrl, clean_url, host_of


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
    """Return the feed to register, with its URL as it is registered, or why it can't be."""
    if not listed.url.strip():
        return Skipped(listed.line, Reason.NO_URL, "no URL", listed.name)
    if refused := _refusal(listed, allowed):
        return Skipped(listed.line, *refused, listed.url)
    return NewFeed(
        clean_url(listed.url),
        name=listed.name or None,
        tags=listed.tags,
        site_url=_site_url(listed.site_url),
        source_type=listed.source_type,
    )


def _refusal(listed: Listed, allowed: tuple[Network, ...]) -> tuple[Reason, str] | None:
    url = listed.url.strip()
    if len(url) > MAX_URL_CHARACTERS:
        return Reason.TOO_LONG, f"the URL has {len(url)} characters; at most {MAX_URL_CHARACTERS} are taken"
    scheme, colon, _ = url.partition(":")
    if colon and scheme.isalnum() and scheme.lower() not in DEFAULT_PORTS and "." not in scheme:
        return Reason.NOT_HTTP, f"the scheme is {scheme.lower()!r}; only http and https feeds can be fetched"
    try:
        registered_url(NewFeed(url, source_type=listed.source_type))
        _check_host(host_of(url), allowed)
    except BadUrl as error:
        return Reason.BAD_URL, str(error)
    except BadOptions as error:
        return Reason.UNKNOWN_SOURCE_TYPE, str(error)
    except Blocked as error:
        return Reason.REFUSED_ADDRESS, str(error)
    return None


def _check_host(host: str, allowed: tuple[Network, ...]) -> None:
    """Raise Blocked if the host is an address, or a name of this machine, that fetchers refuse."""
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        name = "127.0.0.1"
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return
    check_address(name, allowed)


def _site_url(url: str) -> str | None:
    try:
        return clean_url(url) if url else None
    except BadUrl:
        return None

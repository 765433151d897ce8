"""The fetcher's settings."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from services.fetcher.http.address_guard import Network
from services.fetcher.http.options import MOST_TIMEOUT_SECONDS
from services.fetcher.politeness.limits import Limits, parse_policies
from shared.build import PROJECT_URL
from shared.settings import (
    BrokerSettings,
    ClaimSettings,
    Count,
    PolitenessSettings,
    Prefetch,
    Seconds,
    TelemetrySettings,
)

if TYPE_CHECKING:
    from services.fetcher.attempt import FetchLimits


def _check_networks(text: str) -> str:
    _parse_networks(text)
    return text


def _parse_networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError("expected networks such as 10.1.0.0/16, without host bits, separated by commas") from None


def _check_policies(text: str) -> str:
    parse_policies(text)
    return text


class FetcherSettings(BrokerSettings, ClaimSettings, PolitenessSettings, TelemetrySettings):
    """All that the fetcher reads. It has no database."""

    fetch_threads: Count = Field(64, description="Worker threads, each busy with one fetch.")
    fetcher_prefetch: Prefetch = Field(
        400,
        description="Jobs that one fetcher holds, running or waiting for a slot; at least four per shard.",
    )
    max_active: Count = Field(200, description="Fetches under way in one process, at most.")
    host_concurrency: Count = Field(2, description="Fetches under way per politeness group, at most.")
    host_min_interval_seconds: Seconds = Field(1.0, description="Least time between two starts in one group.")
    host_policies: Annotated[str, AfterValidator(_check_policies)] = Field(
        "",
        description="Exceptions from both for some hosts: `*.slow.example concurrency=1 interval=10;"
        " feeds.example concurrency=8 interval=0.2`. The first pattern that fits counts.",
    )
    writer_high_water: Count = Field(
        2000,
        description="Fetchers take no jobs while more results wait in `enricher` and `writer`, until half are written.",
    )
    connect_failure_seconds: Seconds = Field(
        600.0, description="How long a group is left alone after a failure to connect."
    )
    throttle_seconds: Seconds = Field(30.0, description="Least time that a group is left alone after a 429.")
    max_retries: int = Field(12, ge=0, description="How often a feed with a soft error is retried before giving up.")
    fetch_deadline_seconds: Seconds = Field(30.0, description="Wall-clock limit of one fetch: names, redirects, body.")
    connect_timeout_seconds: Seconds = Field(
        10.0, description="Limit for connecting to one address, and again for its TLS handshake."
    )
    read_timeout_seconds: Seconds = Field(15.0, description="Longest silence of a server within a fetch.")
    max_body_bytes: Count = Field(10 * 1024 * 1024, description="Largest body, counted after decompression.")
    large_bodies: Count = Field(
        12,
        description="Bodies over 512 KiB in memory at a time. Others wait, which does not count against their"
        " deadline.",
    )
    max_entries: Count = Field(5000, description="Entries taken from one feed; of more, the newest.")
    keep_html: bool = Field(False, description="Keep articles' bodies as safe HTML, too, beside their text.")
    parse_seconds: Seconds = Field(
        10.0, description="CPU time for reading one body; beyond it the body is `unparseable`."
    )
    allow_networks: Annotated[str, AfterValidator(_check_networks)] = Field(
        "",
        description="Networks that may be fetched from although they are not public, comma-separated"
        " (`127.0.0.0/8,10.1.0.0/16`).",
    )
    contact_url: str = Field(
        PROJECT_URL,
        pattern=r"^[!-~]+$",
        description="A page that says who polls and how to reach them. Polled servers see it in the User-Agent.",
    )

    def allowed(self) -> tuple[Network, ...]:
        """Return the networks of `allow_networks`."""
        return _parse_networks(self.allow_networks)

    def limits(self) -> Limits:
        """Return the scoreboard's limits."""
        return Limits(
            host_concurrency=self.host_concurrency,
            host_min_interval_seconds=self.host_min_interval_seconds,
            max_active=min(self.max_active, self.fetch_threads),
            max_held_per_group=max(1, self.fetcher_prefetch // 4),
            max_hold_seconds=self.fast_delay_seconds,
            connect_failure_seconds=self.connect_failure_seconds,
            throttle_seconds=self.throttle_seconds,
            policies=parse_policies(self.host_policies),
        )

    def longest_fetch_seconds(self) -> float:
        """Return how long any fetch may take. A feed may have a deadline of its own."""
        return max(self.fetch_deadline_seconds, MOST_TIMEOUT_SECONDS)

    def fetch_limits(self) -> FetchLimits:
        """Return the limits of one fetch."""
        from services.fetcher.attempt import FetchLimits  # the API and the command read settings, and fetch nothing

        return FetchLimits(
            self.fetch_deadline_seconds,
            self.max_entries,
            self.proxy_host_set(),
            parse_seconds=self.parse_seconds,
            keep_html=self.keep_html,
        )

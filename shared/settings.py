"""Settings that several services read, in groups.

A service's `settings.py` combines the groups that it needs with its own fields; only these files read the environment.
Every field is a variable `FEEDMILL_<NAME>`; docs/reference/configuration.md lists them
all, and a test compares.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, AmqpDsn, BeforeValidator, Field, PostgresDsn, UrlConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.broker.shards import MOST_SHARDS, SHARDS
from shared.broker.topology import Topology, build_topology
from shared.errors import ConfigurationError
from shared.observability.logs import LogFormat
from shared.wire.envelope import MAX_MESSAGE_BYTES

Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]
"""A time span in seconds, at most a year. Fractions allow a test to watch a day's behaviour in a minute."""

DelaySeconds = Annotated[float, Field(ge=0.001, le=4_000_000, allow_inf_nan=False)]
"""A queue's time to live; RabbitMQ counts it in milliseconds of 32 bits."""

Count = Annotated[int, Field(ge=1, le=1_000_000_000)]

Prefetch = Annotated[int, Field(ge=1, le=65_535)]
"""AMQP's prefetch count has 16 bits."""


def _check_encoded(url: object) -> object:
    """Refuse a URL whose user or password holds a character that ends it too early; the libraries would guess."""
    if not isinstance(url, str):
        return url
    rest = url.partition("://")[2]
    before_query, _, query = rest.partition("?")
    authority = before_query.partition("/")[0]
    is_cut = (
        before_query.count("@") > 1
        or authority.count("@") < before_query.count("@")
        or "#" in rest
        or (query and not all("=" in part for part in query.split("&")))
        or re.search(r"%(?![0-9A-Fa-f]{2})", rest)
    )
    if is_cut:
        raise ValueError(
            "special characters of the user and the password have to be percent-encoded"
            " (@ is %40, / is %2F, : is %3A, ? is %3F, # is %23, % is %25)"
        )
    return url


AmqpUrl = Annotated[AmqpDsn, BeforeValidator(_check_encoded)]
DatabaseUrl = Annotated[
    PostgresDsn, UrlConstraints(allowed_schemes=["postgres", "postgresql"]), BeforeValidator(_check_encoded)
]


def _check_collector(url: str) -> str:
    parts = urlsplit(url)  # ValueError: "Invalid IPv6 URL" and the like
    if url and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise ValueError("expected http://HOST:PORT or https://…, the address of a collector")
    return url


CollectorUrl = Annotated[str, BeforeValidator(_check_encoded), AfterValidator(_check_collector)]


class FeedmillSettings(BaseSettings):
    """Read from `FEEDMILL_*`. Empty variables are ignored, and unknown ones: each service sees the variables of all."""

    model_config = SettingsConfigDict(env_prefix="FEEDMILL_", env_ignore_empty=True, frozen=True, extra="ignore")


class TelemetrySettings(FeedmillSettings):
    """Logs, metrics, health."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Write log lines of this level and above."
    )
    log_format: LogFormat = Field("json", description="Log lines as `json` for machines or as `text` for people.")
    metrics_host: str = Field("127.0.0.1", description="Address of the HTTP server for /metrics, /healthz, /readyz.")
    metrics_port: int = Field(0, ge=0, le=65535, description="Its port; 0 takes a free one and logs it.")
    traces_url: CollectorUrl = Field(
        "",
        description="Collector that traces are sent to, over OTLP/HTTP: `http://collector:4318`. Without it there are"
        " none.",
    )


class BrokerSettings(FeedmillSettings):
    """RabbitMQ and the delays that are part of the topology."""

    amqp_url: AmqpUrl = Field(
        AmqpDsn("amqp://guest:guest@localhost:5672/"),
        description="RabbitMQ: `amqp://user:password@host:port/vhost` (or `amqps://`).",
    )
    max_message_bytes: int = Field(
        MAX_MESSAGE_BYTES,
        ge=1024,
        description="Largest message body that is published (RabbitMQ 4 takes 16 MiB by default). A body may"
        " be four times as large when unpacked.",
    )
    fast_delay_seconds: DelaySeconds = Field(
        20.0, description="How long a job that can't start yet waits in fast-delay."
    )
    retry_delay_seconds: DelaySeconds = Field(
        3600.0, description="How long a feed with a soft error waits for its retry."
    )
    message_retry_seconds: DelaySeconds = Field(
        60.0, description="How long a result waits after its handling failed in the enricher or the writer."
    )
    message_retries: int = Field(
        5, ge=0, description="How often a message whose handling failed is tried again before it is dead-lettered."
    )

    fetcher_shards: int = Field(
        SHARDS,
        ge=1,
        le=MOST_SHARDS,
        description="Queues that the jobs are spread over, by host. One fetcher reads each, so more fetchers"
        " than shards are idle. The same for all services.",
    )

    enricher: bool = Field(
        False,
        description="Whether results with entries pass the enricher on their way to the writer. `docker compose`,"
        " `feedmill up` and the manifests switch it on.",
    )
    declare_topology: bool = Field(
        True,
        description="Whether services declare exchanges and queues. Off where `feedmill migrate` does it and"
        " the services may not.",
    )

    def topology(self) -> Topology:
        """Return the topology for these settings."""
        topology = build_topology(
            fast_delay_seconds=self.fast_delay_seconds,
            retry_delay_seconds=self.retry_delay_seconds,
            message_retry_seconds=self.message_retry_seconds,
            fetcher_shards=self.fetcher_shards,
            switched_off=() if self.enricher else ("enricher",),
        )
        return replace(topology, declared_on_connect=self.declare_topology)


class DatabaseSettings(FeedmillSettings):
    """PostgreSQL."""

    database_url: DatabaseUrl = Field(
        PostgresDsn("postgresql://postgres@localhost:5432/feedmill"),
        description="PostgreSQL: `postgresql://user:password@host:port/database`.",
    )
    prepared_statements: bool = Field(
        True, description="Off behind a PgBouncer in transaction mode that does not support prepared statements."
    )
    statement_seconds: Seconds = Field(
        60.0,
        description="A statement that takes longer is cancelled and tried again; a transaction that is idle"
        " for longer is ended.",
    )


class PolitenessSettings(FeedmillSettings):
    """How URLs are grouped for politeness."""

    proxy_hosts: str = Field(
        "",
        description="Hosts that stand for many sites (an RSSHub), comma-separated. The first path segment is"
        " part of their politeness group.",
    )

    def proxy_host_set(self) -> frozenset[str]:
        """Return the hosts, lower-case."""
        return frozenset(host.strip().lower() for host in self.proxy_hosts.split(",") if host.strip())


class ClaimSettings(FeedmillSettings):
    """What scheduler and fetcher must agree on."""

    claim_seconds: Seconds = Field(
        3600.0,
        description="How long a job may be under way before the scheduler takes it for lost and issues the feed again.",
    )


SECRETS: Final = "FEEDMILL_SECRETS"
"""The variable that names a directory of secrets: each file holds the value of the setting that it is named for."""

S = TypeVar("S", bound=FeedmillSettings)


def read_settings(cls: type[S]) -> S:
    """Return the settings from the environment, and those that it lacks from the files in the directory of secrets.

    Raises:
        ConfigurationError: names each wrong variable and the reason; never its value, which may be a secret.
    """
    secrets = os.environ.get(SECRETS)
    if secrets and not Path(secrets).is_dir():
        raise ConfigurationError(f"{SECRETS}: there is no directory {secrets}")
    try:
        return cls(_secrets_dir=secrets or None)
    except ValidationError as error:
        wrong = [
            f"FEEDMILL_{'_'.join(str(part) for part in item['loc']).upper()}: {item['msg']}"
            for item in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("; ".join(wrong) + ". See docs/reference/configuration.md") from None

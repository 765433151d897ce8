"""The API's settings."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from shared.errors import ConfigurationError
from shared.settings import (
    BrokerSettings,
    ClaimSettings,
    Count,
    DatabaseSettings,
    PolitenessSettings,
    Seconds,
    TelemetrySettings,
)


def _check_networks(text: str) -> str:
    for part in filter(None, (part.strip() for part in text.split(","))):
        ipaddress.ip_network(part)
    return text


Networks = Annotated[str, AfterValidator(_check_networks)]
"""Networks, comma-separated."""


def _check_page(url: str) -> str:
    if url and not re.fullmatch(r"https?://[^\s@]+", url):
        raise ValueError("has to be an address (http or https) without user and password")
    return url


WebPage = Annotated[str, AfterValidator(_check_page)]


class ApiSettings(BrokerSettings, ClaimSettings, DatabaseSettings, PolitenessSettings, TelemetrySettings):
    """What the API reads itself. Feeds are added and checked by the settings of fetcher and writer."""

    api_host: str = Field("127.0.0.1", description="Address on which the API listens.")
    api_port: int = Field(8080, ge=0, le=65535, description="Its port; 0 takes a free one and logs it.")
    fire_seconds: Seconds = Field(300.0, description="A fetch by hand without a result after this time is an error.")
    api_connections: Count = Field(10, description="Database connections of one API process, at most.")
    api_open: bool = Field(
        False,
        description="Whether anybody may do everything without a token: for development, and only while"
        " FEEDMILL_API_HOST is a loopback address.",
    )
    api_hosts: str = Field(
        "",
        description="Names of the API beside `localhost` and IP addresses, comma-separated; `*` is any.",
    )
    api_proxies: Networks = Field(
        "", description="Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed, comma-separated."
    )
    api_rabbitmq_page: WebPage = Field(
        "", description="Address of RabbitMQ's management UI, as browsers reach it; the dashboard links to it."
    )
    api_grafana_page: WebPage = Field(
        "", description="Address of Grafana, as browsers reach it; the dashboard links to it."
    )
    audit_days: float = Field(
        365.0, gt=0, le=36_500, allow_inf_nan=False, description="Days for which the audit log is kept."
    )

    def host_set(self) -> frozenset[str]:
        """Return the API's names, in lower case."""
        return frozenset(host.strip().lower() for host in self.api_hosts.split(",") if host.strip())

    def require_loopback_if_open(self) -> None:
        """Check that an open API is for this machine alone.

        Raises:
            ConfigurationError: others could reach it.
        """
        if self.api_open and not _is_loopback(self.api_host):
            raise ConfigurationError(
                f"FEEDMILL_API_OPEN is on, and FEEDMILL_API_HOST is {self.api_host}, which others can reach: listen on"
                " 127.0.0.1, or switch it off and use tokens (`feedmill token create`)"
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"

"""Settings of the commands on one machine: the servers, and the directory of private ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from shared.settings import AmqpUrl, DatabaseSettings, DatabaseUrl, PolitenessSettings, TelemetrySettings


class LocalSettings(PolitenessSettings):
    """The servers of the environment, and the directory of private ones."""

    amqp_url: AmqpUrl | None = Field(None, description="RabbitMQ, if one is given.")
    database_url: DatabaseUrl | None = Field(None, description="PostgreSQL, if one is given.")
    home: Path = Field(Path(".feedmill"), description="Directory of the private servers that `feedmill` starts.")


class FarmSettings(DatabaseSettings, TelemetrySettings):
    """Settings of `feedmill farm`: the database where it registers its feeds and counts articles."""


def child_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with `settings` added: the environment of a service."""
    return {**os.environ, **settings}

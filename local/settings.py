"""Where Feedmill runs on one machine: the servers, if they are given, and the directory of private ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from shared.settings import AmqpUrl, DatabaseSettings, DatabaseUrl, PolitenessSettings, TelemetrySettings


class LocalSettings(PolitenessSettings):
    """Where the servers are, if they are given, and where private ones live."""

    amqp_url: AmqpUrl | None = Field(None, description="RabbitMQ, if one is given.")
    database_url: DatabaseUrl | None = Field(None, description="PostgreSQL, if one is given.")
    home: Path = Field(Path(".feedmill"), description="Directory of the private servers that `feedmill` starts.")


class FarmSettings(DatabaseSettings, TelemetrySettings):
    """What `feedmill farm` reads: where to register its feeds and to count."""


def child_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with `settings` over it, for a service to read in its own settings.py."""
    return {**os.environ, **settings}

"""The command's settings, and the environment that it hands down to the services it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, SecretStr

from shared.settings import AmqpUrl, DatabaseSettings, DatabaseUrl, PolitenessSettings, TelemetrySettings


class CliSettings(PolitenessSettings):
    """Where the servers are, if they are given, and where private ones live."""

    amqp_url: AmqpUrl | None = Field(None, description="RabbitMQ, if one is given.")
    database_url: DatabaseUrl | None = Field(None, description="PostgreSQL, if one is given.")
    feed_password: SecretStr = Field(
        SecretStr(""), description="The password for `feedmill feeds add --user NAME`, instead of asking for it."
    )
    broker_users: str = Field(
        "",
        description="Directory of passwords, each in a file that is named like its user: with it, `feedmill migrate`"
        " declares the queues and makes these users at the broker, each with the rights of its service.",
    )
    management_url: str = Field(
        "http://127.0.0.1:15672", description="RabbitMQ's management API, which `feedmill migrate` asks to make users."
    )
    home: Path = Field(Path(".feedmill"), description="Directory of the private servers that `feedmill` starts.")


class FarmSettings(DatabaseSettings, TelemetrySettings):
    """What `feedmill farm` reads: where to register its feeds and to count."""


def child_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with `settings` over it, for a service to read in its own settings.py."""
    return {**os.environ, **settings}

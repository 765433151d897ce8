"""The command's settings."""

from __future__ import annotations

from pydantic import Field, SecretStr

from local.settings import LocalSettings


class CliSettings(LocalSettings):
    """What commands read beside the servers' addresses."""

    feed_password: SecretStr = Field(
        SecretStr(""), description="The password for `feedmill feeds add --user NAME`, instead of a prompt."
    )
    broker_users: str = Field(
        "",
        description="Directory with a password file per broker user. With it `feedmill migrate` declares the"
        " queues and makes these users, each with the rights of its service.",
    )
    management_url: str = Field(
        "http://127.0.0.1:15672", description="RabbitMQ's management API, where `feedmill migrate` makes users."
    )
    api_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="The API that commands speak to, in place of the servers: `https://host/prefix`.",
    )
    api_token: SecretStr = Field(
        SecretStr(""), description="The token for it: `feedmill token create` beside the database makes one."
    )
    seed_file: str = Field(
        "",
        description="Feeds that `feedmill migrate` and `feedmill up` register, each URL once, ever: a file of OPML or"
        " YAML, or `default`.",
    )

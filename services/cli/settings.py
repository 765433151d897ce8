"""The command's settings."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from local.settings import LocalSettings


def _check_api_url(text: str) -> str:
    try:
        url = urlsplit(text.strip())
        is_url = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0 and len(text.split()) == 1
    except ValueError:  # a port that is none, or half a pair of brackets
        is_url = False
    if text and not is_url:
        raise PydanticCustomError("api_url", "it is no URL of an API: expected https://HOST[:PORT][/PREFIX]")
    return text


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
    api_url: Annotated[str, AfterValidator(_check_api_url)] = Field(
        "",
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

"""A command shows the same from afar, over HTTP, as beside the servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from typer.testing import CliRunner

from local.servers import Servers
from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.errors import FeedmillError
from tests.conftest import own_database, own_vhost
from tests.integration.api.served import serving_api

SERVERS = ("FEEDMILL_DATABASE_URL", "FEEDMILL_AMQP_URL")

READS = (
    "feeds list",
    "feeds list --json",
    "feeds list --limit 1 --json",
    "feeds list --grep site-1 --utc",
    "feeds list --tag news --wide",
    "feeds list --tag nobody",
    "feeds list --grep \0",
    "feeds show 1 --utc",
    "feeds show http://site-1.example/feed --json",
    "feeds show 99",
    "feeds show http://nobody.example/",
    "feeds export",
    "feeds export --format csv",
    "feeds tags",
    "pending",
    "pending --json",
    "pending list",
    "pending list --json",
    "pending dead --json",
    "pending show 0123456789abcdef0123456789abcdef",
    "dead list",
    "dead list --json",
    "dead show nothing",
    "hosts",
    "hosts --json",
    "sources",
    "sources --json",
    "sources feed",
    "sources none",
    "audit",
    "audit --json",
    "token list",
    "token list --json",
    "status",
)
"""What changes nothing: each is run in both ways, on the same rows."""


@pytest.fixture(scope="module")
def urls(servers: Servers) -> Iterator[dict[str, str]]:
    """The servers, and an API on them."""
    with ExitStack() as stack:
        amqp_url, database_url = stack.enter_context(own_vhost(servers)), stack.enter_context(own_database(servers))
        with connect(database_url) as connection:
            for number in range(3):
                add_feed(connection, NewFeed(f"http://site-{number}.example/feed"))
            connection.execute(
                "UPDATE feeds SET next_fetch_at = '2026-01-01T12:00:00Z'"  # or a table shows hours of today
            )
        yield {
            "FEEDMILL_DATABASE_URL": database_url,
            "FEEDMILL_AMQP_URL": amqp_url,
            "FEEDMILL_API_URL": stack.enter_context(serving_api(database_url, amqp_url)),
        }


def run(arguments: str, environment: dict[str, str]) -> tuple[int, str, str]:
    """Return exit code, output and error."""
    names = {*SERVERS, "FEEDMILL_API_URL"}
    result = CliRunner().invoke(app, arguments.split(" "), env=dict.fromkeys(names, None) | environment)
    if isinstance(result.exception, FeedmillError):
        return 1, result.stdout, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("arguments", READS)
def test_it_is_the_same_from_afar(urls: dict[str, str], arguments: str) -> None:
    here = run(arguments, {name: urls[name] for name in SERVERS})
    afar = run(arguments, {"FEEDMILL_API_URL": urls["FEEDMILL_API_URL"]})
    assert afar == here


def test_the_api_s_address_comes_before_the_servers(urls: dict[str, str]) -> None:
    wrong = {"FEEDMILL_DATABASE_URL": "postgresql://127.0.0.1:1/none", "FEEDMILL_AMQP_URL": "amqp://127.0.0.1:1/"}
    code, output, _ = run("feeds list", {**wrong, "FEEDMILL_API_URL": urls["FEEDMILL_API_URL"]})
    assert (code, "3 feeds" in output) == (0, True)


def test_json_is_what_the_api_sends(urls: dict[str, str]) -> None:
    _, output, _ = run("feeds list --json", {"FEEDMILL_API_URL": urls["FEEDMILL_API_URL"]})
    sent = httpx.get(f"{urls['FEEDMILL_API_URL']}/api/feeds").json()
    assert json.loads(output) == sent["items"]

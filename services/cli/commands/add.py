"""The command `feedmill feeds add`: what it asks of a person and of a server, and what it registers."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from local import addresses
from local.terminal import Interrupted
from services.admin import registry
from services.admin.host_slot import host_slot
from services.cli import credentials
from services.cli.commands.feeds import LONGEST_INTERVAL, console
from services.cli.settings import CliSettings
from shared.observability.display import safe_to_show
from shared.settings import read_settings
from shared.wire.results import FeedFetched

if TYPE_CHECKING:
    from services.admin.discovery import Found


def add(
    url: Annotated[str, typer.Argument(help="The feed's http(s) URL, or that of a page that links to it.")],
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    interval: Annotated[
        float | None,
        typer.Option(min=1, max=LONGEST_INTERVAL, help="Poll exactly every so many seconds, without adapting."),
    ] = None,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Higher goes first when many feeds are due.")] = 0,
    header: Annotated[list[str] | None, typer.Option(help="'Name: value', sent with its requests; repeatable.")] = None,
    header_file: Annotated[
        Path | None, typer.Option(help="A file with such lines, for secrets; - is standard input.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Log in as NAME (HTTP Basic); asks for the password, unless a file or a variable has it."),
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="A file whose first line is the password; - is standard input.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that a fetch of it may take, redirects included.")
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(help="Look whether a feed is there. By default only if the URL doesn't say that it is one."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Of a page's feeds take the first, without asking.")] = False,
) -> None:
    """Register a feed; it is due at once. Its own headers and password go to its own origin only.

    Given a page, its feeds are looked for: asks which at a terminal, otherwise takes the first. A feed that is found
    where it was looked for is polled with that: its articles are there, and it is not asked again.
    """
    from services.admin.discovery import config_for

    settings = read_settings(CliSettings)
    credentials.warn_of_secrets(url, user, header or [])
    config = registry.make_config(
        [*(header or []), *credentials.read_headers(header_file)],
        credentials.read_login(user, password_file, settings.feed_password.get_secret_value()),
        timeout,
    )
    url = registry.check_feed(registry.NewFeed(url, config=config))
    with addresses.open_database(settings, create=True) as database_url:
        found = _find(database_url, url, config, check=check, yes=yes)
        config = config_for(config, url, found.url)
        feed = registry.NewFeed(found.url, name=name, interval_seconds=interval, priority=priority, config=config)
        fetched = found.fetched if found.fetched and found.fetched.status is not None else None
        with registry.connect(database_url) as connection:
            claim = fetched.claim_id if fetched else None
            id_, is_new = registry.add_feed(connection, feed, settings.proxy_host_set(), claim)
        if is_new and fetched:
            asyncio.run(_write(database_url, fetched.model_copy(update={"feed_id": id_})))
    said = "added as" if is_new else "is there already, unchanged, as"
    console.print(f"{safe_to_show(found.url)} {said} feed {id_}", soft_wrap=True)


def _find(database_url: str, url: str, config: dict[str, Any], *, check: bool | None, yes: bool) -> Found:
    """Return the feed to register: the page's, if `url` is a page."""
    from services.admin import discovery
    from services.fetcher.__main__ import make_client
    from services.fetcher.settings import FetcherSettings

    if check is False or (check is None and discovery.looks_like_feed(url)):
        return discovery.Found(url)
    settings = read_settings(FetcherSettings)
    with registry.connect(database_url) as connection:
        if check is None and registry.is_registered(connection, url):
            return discovery.Found(url)
        connection.commit()  # the slots begin transactions of their own
        client = make_client(settings)
        try:
            search = discovery.Discovery(
                client, settings, config, lambda group, seconds: host_slot(connection, group, seconds)
            )
            return discovery.choose_feed(url, search, lambda found: _choose(found, yes=yes), _say)
        finally:
            client.close()


def _say(text: str) -> None:
    console.print(safe_to_show(text), soft_wrap=True)


def _choose(found: list[Found], *, yes: bool) -> Found:
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return found[0]
    for number, one in enumerate(found, 1):
        title = safe_to_show(one.title or "(no title)", TITLE_CHARACTERS)
        console.print(f"{number}  {title}  {safe_to_show(one.url)}", soft_wrap=True)
    return found[_ask_number("Which feed", len(found)) - 1]


TITLE_CHARACTERS = 200


def _ask_number(question: str, most: int) -> int:
    """Ask until the answer is a number from 1 to `most`. Not by click's IntRange: newer typers refuse its types."""
    while True:
        try:
            typed = typer.prompt(question, default="1").strip()
        except typer.Abort:  # Ctrl-C or Ctrl-D
            raise Interrupted from None
        if typed.isascii() and typed.isdecimal() and len(typed) < 5 and 1 <= int(typed) <= most:
            return int(typed)
        console.print(f"a number from 1 to {most}, please")


async def _write(database_url: str, fetched: FeedFetched) -> None:
    """Write the result of the first poll: its articles, validators and state in one transaction."""
    from services.writer.handler import WriteArticles
    from services.writer.settings import WriterSettings
    from shared.database.postgres import Database

    settings = read_settings(WriterSettings)
    database = Database(
        database_url, size=1, prepared=settings.prepared_statements, statement_seconds=settings.statement_seconds
    )
    async with database.open():
        await database.require_schema()
        write = WriteArticles(
            database,
            rules=settings.rules(),
            proxy_hosts=settings.proxy_host_set(),
            now=lambda: datetime.now(UTC),
            policy=settings.policy(),
        )
        await write([fetched])

"""The command `feedmill feeds add`: registers a feed, or the feed that a page links to."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from local import addresses
from local.terminal import Interrupted
from services.admin import registry
from services.cli import credentials
from services.cli.options import Yes, span
from services.cli.output import console
from services.cli.settings import CliSettings
from shared.observability.display import safe_to_show
from shared.settings import read_settings

if TYPE_CHECKING:
    from services.admin.discovery import Found


def add(
    url: Annotated[str, typer.Argument(help="The feed's http(s) URL, or that of a page that links to it.")],
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            parser=span(1), metavar="SPAN", help="Poll exactly this often, without adapting: 90, 90s, 5m, 2h, 1d."
        ),
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
        float | None,
        typer.Option(parser=span(), metavar="SPAN", help="How long a fetch of it may take, redirects included."),
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(help="Look whether a feed is there. By default only if the URL doesn't say that it is one."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Register a feed; it is due at once. Its own headers and password go to its own origin only.

    Given a page, its feeds are looked for: asks which at a terminal, otherwise (`--yes`) takes the first. A feed that
    is found where it was looked for is polled with that: its articles are there, and it is not asked again.
    """
    from services.admin import adding

    settings = read_settings(CliSettings)
    credentials.warn_of_secrets(url, user, header or [])
    config = registry.make_config(
        [*(header or []), *credentials.read_headers(header_file)],
        credentials.read_login(user, password_file, settings.feed_password.get_secret_value()),
        timeout,
    )
    feed = registry.NewFeed(url, name=name, interval_seconds=interval, priority=priority, config=config)
    feed = replace(feed, url=registry.check_feed(feed))
    with addresses.open_database(settings, create=True) as database_url:
        found = adding.find_feed(
            database_url, feed, check=check, choose=lambda feeds: _choose(feeds, yes=yes), say=_say
        )
        id_, is_new = adding.register(database_url, feed, found, settings.proxy_host_set())
    said = "added as" if is_new else "is there already, unchanged, as"
    console.print(f"{safe_to_show(found.url)} {said} feed {id_}", soft_wrap=True)


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

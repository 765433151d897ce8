"""The commands `feedmill pending …`: articles that wait for a consumer, and those that no consumer could digest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from services.admin import pending_articles as articles
from services.admin.diagnosis import in_words
from services.admin.feeds import find_feed
from services.admin.registry import Connection
from services.cli.options import AsJson, Grep, OfFeed, Utc, Wide, connect_here
from services.cli.output import Column, Times, console, print_facts, print_table
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show

app = typer.Typer(
    help="Articles that wait for a consumer: count, look, acknowledge, release, bury, revive.",
    invoke_without_command=True,
)

Md5 = Annotated[str, typer.Argument(help="The article's key, or its beginning (four characters or more).")]
Md5s = Annotated[list[str], typer.Argument(help="Keys of articles, or their beginnings (four characters or more).")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="So many at most.")]


@app.callback()
def count(context: typer.Context, as_json: AsJson = False) -> None:
    """Count the articles that wait: claimable, claimed, waiting for a retry, dead; how old the oldest is."""
    if context.invoked_subcommand is not None:
        return
    with connect_here() as connection:
        row = articles.count_articles(connection)
    if as_json:
        print(ascii_json(row))
        return
    oldest = row.pop("oldest_seconds")
    counts = [(name.replace("_", " "), f"{number:,}") for name, number in row.items()]
    print_facts([*counts, ("oldest", "-" if oldest is None else f"{in_words(max(oldest, 0.0))} old")])


@app.command("list")
def list_pending(
    feed: OfFeed = None,
    grep: Grep = None,
    limit: Limit = 20,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List pending articles in the order in which they are given out."""
    rows = _read(articles.list_pending, limit, feed, grep)
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("created", lambda row: times(row["created_at"])),
        Column("feed", "feed_id", right=True),
        Column("title", flexible=True),
        Column("state"),
        Column("failures", lambda row: row["retry_count"] + row["expiries"] or None, right=True),
        Column("error", "last_error", flexible=True),
        Column("md5", cut=8),
        Column("url", only_wide=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} shown; {times.note}")


@app.command("dead")
def list_dead(
    feed: OfFeed = None,
    grep: Grep = None,
    limit: Limit = 20,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List articles that no consumer could digest, the latest first, with the reason."""
    rows = _read(articles.list_dead, limit, feed, grep)
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("died", lambda row: times(row["failed_at"])),
        Column("feed", "feed_id", right=True),
        Column("title", flexible=True),
        Column("error", flexible=True),
        Column("md5", cut=8),
        Column("url", only_wide=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} shown; {times.note}")


Lister = Callable[[Connection, int, int | None, str | None], list[dict[str, Any]]]


def _read(lister: Lister, limit: int, feed: str | None, text: str | None) -> list[dict[str, Any]]:
    with connect_here() as connection:
        return lister(connection, limit, None if feed is None else find_feed(connection, feed), text)


@app.command()
def show(md5: Md5, utc: Utc = False, as_json: AsJson = False) -> None:
    """Show one article, pending or dead, with all its columns."""
    with connect_here() as connection:
        (key,) = articles.find_keys(connection, [md5], dead=True)
        row = articles.read_article(connection, key)
    if row is None:
        raise ConfigurationError(
            f"there is no article {md5[:100]}, pending or dead: it was acknowledged, or never came"
            f" (give its MD5, or at least {articles.PREFIX_CHARACTERS} characters of the beginning)"
        )
    if as_json:
        print(ascii_json(row))
        return
    times = Times(utc=utc)
    for name, value in row.items():
        if value not in (None, [], ""):
            shown = times.with_zone(value) if isinstance(value, datetime) else _of_article(name, value)
            console.print(f"{name}: {shown}", soft_wrap=True, highlight=False)


def _of_article(column: str, value: object) -> str:
    """Return a value as it is shown. A text that has lines is indented, so that none of them looks like a column."""
    is_text = column in {"body", "html"}
    return safe_to_show(value, None, lines=is_text).replace("\n", "\n    ")


@app.command()
def ack(md5s: Md5s) -> None:
    """Drop pending articles as if a consumer had acknowledged the text that they have now."""
    _report("acknowledged", md5s, articles.acknowledge)


@app.command()
def release(md5s: Md5s) -> None:
    """Take claimed articles away from their consumer: they are given out again at once."""
    _report("released", md5s, articles.release)


@app.command()
def bury(md5s: Md5s, reason: Annotated[str, typer.Option(help="Why no consumer shall have them.")] = "by hand") -> None:
    """Move pending articles to the dead ones, with a reason: no consumer is given them. `revive` brings them back."""
    _report("moved to the dead", md5s, lambda connection, keys: articles.dead_letter(connection, keys, reason))


def _report(done: str, md5s: Sequence[str], act: Callable[[Connection, Sequence[str]], int]) -> None:
    with connect_here() as connection:
        number = act(connection, articles.find_keys(connection, md5s))
    missing = len(set(md5s)) - number
    console.print(f"{number} {done}" + f"; {missing} not, see `feedmill pending show MD5`" * (missing > 0))


@app.command()
def revive(
    md5s: Annotated[list[str] | None, typer.Argument(help="Keys of dead articles, or their beginnings.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Make dead articles pending again, with nothing counted against them."""
    if bool(md5s) == everything:
        raise ConfigurationError("say which: keys of dead articles, or --all")
    with connect_here() as connection:
        keys = articles.find_keys(connection, md5s, pending=False, dead=True) if md5s else None
        revived = articles.revive(connection, keys)
    console.print(f"{revived} revived")
    if keys and revived < len(set(keys)):
        raise ConfigurationError(f"{len(set(keys)) - revived} not: they are not dead, or their feed was removed")

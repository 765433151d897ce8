"""The commands `feedmill feeds …`: the registry, and one feed by its id or URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.admin.feed_health.rule import Word
from services.cli import feed_words
from services.cli.calls.feeds import find_feed
from services.cli.calls.opening import open_api
from services.cli.commands.add import add
from services.cli.commands.feed_checks import check
from services.cli.commands.feed_lists import export, import_
from services.cli.options import AsJson, Grep, OfTag, Utc, Wide, Yes, span
from services.cli.output import Column, Times, confirm, console, print_facts, print_json_rows, print_table
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json

if TYPE_CHECKING:
    from services.cli.calls.api import Api

app = typer.Typer(help="The registry: which feeds are polled.", no_args_is_help=True)
app.command("add")(add)
app.command("import")(import_)
app.command("export")(export)
app.command("check")(check)

Feed = Annotated[str, typer.Argument(help="A feed's id, or its URL.")]
Feeds = Annotated[list[str], typer.Argument(help="Ids or URLs of feeds.")]
OfState = Annotated[
    str | None,
    typer.Option(
        "--state", help="Only those that are enabled, disabled, due, in_flight, retrying, failing or throttled."
    ),
]
OfHost = Annotated[str | None, typer.Option("--host", help="Only those of this host (politeness group).")]
OfHealth = Annotated[
    str | None, typer.Option("--health", metavar="WORD", help=f"Only those that are {', '.join(Word)}.")
]
Sort = Annotated[
    str | None,
    typer.Option(help="By id, name, next_fetch_at, last_attempt_at, last_success_at or failures; with - backwards."),
]


@app.command("list")
def list_(
    grep: Grep = None,
    tag: OfTag = None,
    state: OfState = None,
    host: OfHost = None,
    health: OfHealth = None,
    sort: Sort = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List all feeds with how they fare."""
    from services.api.models.feeds import FeedRow

    word = health and health.strip().lower().replace(" ", "_").replace("-", "_")
    chosen = {"q": grep, "tag": tag, "state": state, "host": host, "health": word, "sort": sort}
    with open_api() as api:
        if as_json:
            print_json_rows(api.rows("/api/feeds", dict[str, Any], limit=limit, **chosen))
            return
        rows = [row.model_dump() for row in api.rows("/api/feeds", FeedRow, limit=limit, **chosen)]
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("id", right=True),
        Column("feed", lambda row: row["name"] or "(no name yet)", flexible=True),
        Column("health", lambda row: feed_words.health(row["health"], times), flexible=True),
        Column("next fetch", lambda row: _next(row, times)),
        Column(
            "last outcome",
            lambda row: feed_words.last(row) if row["enabled"] else row["disabled_reason"],
            flexible=True,
        ),
        Column("tags", lambda row: ", ".join(row["tags"]), flexible=True),
        Column("url", below=True),
    )
    failing = sum(row["failing"] for row in rows)
    print_table(columns, rows, wide=wide, note=f"{len(rows)} feeds, {failing} failing; {times.note}")


def _next(row: dict[str, Any], times: Times) -> str:
    if not row["enabled"]:
        return "disabled"
    if row["retry_at"]:
        return feed_words.retry(row, times(row["retry_at"]))
    return "in flight" if row["in_flight"] else times(row["next_fetch_at"])


@app.command()
def tags(wide: Wide = False, as_json: AsJson = False) -> None:
    """List the tags in use, with how many feeds have them."""
    with open_api() as api:
        rows = api.rows("/api/tags", dict[str, Any])
        if as_json:
            print_json_rows(rows)
            return
        columns = (Column("tag", flexible=True), Column("feeds", right=True), Column("polled", "enabled", right=True))
        print_table(columns, list(rows), wide=wide)


@app.command()
def show(
    feed: Feed,
    attempts: Annotated[int, typer.Option(min=0, max=1000, help="So many of the last attempts.")] = 10,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """Show one feed: its state, its health over a week, when it is polled and why, its last attempts."""
    from services.api.models.feeds import Attempt, Feed

    with open_api() as api:
        path = f"/api/feeds/{find_feed(api, feed)}"
        found = api.get(path, Feed)
        log = list(api.rows(f"{path}/fetches", Attempt, limit=attempts))
    if as_json:
        last = [row.model_dump(mode="json") for row in log]
        print(ascii_json({**found.model_dump(mode="json"), "last_attempts": last}))
        return
    times = Times(utc=utc, wide=wide)
    print_facts(feed_words.facts(found.model_dump() | {"freshness": found.freshness}, times))
    if log:
        console.print()
        _show_attempts([row.model_dump() for row in log], times, wide=wide)


def _show_attempts(log: list[dict[str, Any]], times: Times, *, wide: bool) -> None:
    columns = (
        Column("started", lambda row: times(row["started_at"])),
        Column("outcome"),
        Column("status"),
        Column("entries", "items_seen", right=True),
        Column("new", "items_new", right=True),
        Column("seconds", lambda row: f"{row['elapsed_seconds']:.2f}", right=True),
        Column("error", flexible=True),
    )
    print_table(columns, log, wide=wide, note=f"last attempts; {times.note}")


Interval = Annotated[
    float | None,
    typer.Option(parser=span(1, or_zero=True), metavar="SPAN", help="Fixed: 90, 90s, 5m, 2h, 1d; 0: adapt."),
]
Bound = Annotated[
    float | None, typer.Option(parser=span(1, or_zero=True), metavar="SPAN", help="As 5m; 0: as for all.")
]


@app.command("set")
def set_(
    feeds: Feeds,
    interval: Interval = None,
    shortest: Bound = None,
    longest: Bound = None,
    priority: Annotated[int | None, typer.Option(min=-1000, max=1000, help="Higher is fetched first.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether they are polled.")] = None,
    date_order: Annotated[
        str | None,
        typer.Option(metavar="day|month|auto", help="What stands first in dates as 03/04/2026; auto: its dates tell."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Give them this tag, such as news or a/b; repeatable.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Take this tag from them; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change feeds: polling, name, tags. One that is enabled again starts anew, with its failures forgotten."""
    spans = {"interval_seconds": interval, "shortest_seconds": shortest, "longest_seconds": longest}
    changes: dict[str, Any] = {column: seconds or None for column, seconds in spans.items() if seconds is not None}
    changes |= {} if name is None else {"name": name or None}
    changes |= {} if date_order is None else {"date_order": None if date_order == "auto" else date_order}
    given = {"priority": priority, "enabled": enable, "add_tags": tag or None, "remove_tags": untag or None}
    changes |= {field: value for field, value in given.items() if value is not None}
    if not changes:
        raise ConfigurationError(
            "nothing to change: give --interval, --shortest, --longest, --priority, --name, --date-order, --tag,"
            " --untag, --enable or --disable"
        )

    def change(api: Api, id_: int) -> Any:
        return api.call("PATCH", f"/api/feeds/{id_}", body=changes).json()

    _to_each(feeds, change, lambda row: f"feed {row['id']} was changed", as_json=as_json)


def _to_each(
    feeds: list[str], do: Callable[[Api, int], Any], say: Callable[[dict[str, Any]], str], *, as_json: bool
) -> None:
    """Do something to one feed after the other, and show each answer as soon as it is there."""

    def done(api: Api) -> Iterator[dict[str, Any]]:
        for feed in feeds:
            yield do(api, find_feed(api, feed))

    with open_api() as api:
        if as_json:
            print_json_rows(done(api))
            return
        for row in done(api):
            console.print(say(row), soft_wrap=True)


@app.command()
def fetch(feeds: Feeds, utc: Utc = False, as_json: AsJson = False) -> None:
    """Poll feeds now, ahead of their time or of their retry. A host that asked to be left alone is left alone."""
    from services.api.models.feeds import PolledFeed

    times = Times(utc=utc)

    def poll(api: Api, id_: int) -> Any:
        answer = api.call("POST", f"/api/feeds/{id_}/fetch")
        return answer.json() if as_json else PolledFeed.model_validate_json(answer.content).model_dump()

    _to_each(feeds, poll, lambda row: f"feed {row['id']} {feed_words.polling(row, times)}", as_json=as_json)


@app.command()
def remove(feeds: Feeds, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove feeds, with their log and their pending articles. Articles seen are remembered: they don't come again."""

    def delete(api: Api, id_: int) -> Any:
        path = f"/api/feeds/{id_}"
        if not yes:
            pending = api.call("GET", path).json()["pending_articles"]
            confirm(f"remove feed {id_} and its {pending} pending articles?", on_stderr=as_json)
        return api.call("DELETE", path).json()

    _to_each(
        feeds,
        delete,
        lambda row: f"feed {row['id']} was removed, and {row['pending_articles']} pending articles with it",
        as_json=as_json,
    )

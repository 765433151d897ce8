"""The commands `feedmill pending …`: articles that wait for a consumer, and those that no consumer could digest."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from services.admin.health.diagnosis import in_words
from services.cli.calls.opening import open_api
from services.cli.commands import consume
from services.cli.label_words import in_words_of_people
from services.cli.options import AsJson, Grep, OfFeed, OfTag, Utc, Wide
from services.cli.output import Column, Times, console, print_facts, print_table
from shared.observability.display import ascii_json, safe_to_show

app = typer.Typer(
    help="Articles that wait for a consumer: count, look, claim, acknowledge, fail, release, bury, revive.",
    invoke_without_command=True,
)
for command in (consume.claim, consume.ack, consume.fail, consume.renew, consume.release, consume.bury, consume.revive):
    app.command()(command)

Md5 = Annotated[str, typer.Argument(help="The article's key, or its beginning (four characters or more).")]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="So many at most.")]
Language = Annotated[str | None, typer.Option(help="Only those whose feed says this; `en` is also `en-GB`.")]
Detected = Annotated[str | None, typer.Option(help="Only texts in this language (`en`); und: which do not tell it.")]
Topic = Annotated[str | None, typer.Option(help="Only with this topic; none: without.")]
Duplicate = Annotated[str | None, typer.Option(help="Only duplicates by address, title, text or any; none: none.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only from then on: 2026-11-22T12:00:00Z.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only from before.")]

LABELS = (
    Column("language", lambda row: row["detected_language"] or row["language"]),
    Column("topic"),
    Column("duplicate", "duplicate_kind"),
)
"""What the enricher and the writer found out; a terminal shows no column without any value."""


@app.callback()
def count(context: typer.Context, as_json: AsJson = False) -> None:
    """Count the articles that wait: claimable, claimed, waiting for a retry, dead; how old the oldest is."""
    if context.invoked_subcommand is not None:
        return
    from services.api.models.articles import ArticleCounts

    with open_api() as api:
        row = api.get("/api/articles/counts", ArticleCounts).model_dump()
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
    tag: OfTag = None,
    state: Annotated[str, typer.Option(help="pending (all), claimable, claimed or waiting (for a retry).")] = "pending",
    language: Language = None,
    detected_language: Detected = None,
    topic: Topic = None,
    duplicate_kind: Duplicate = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List pending articles in the order in which they are given out."""
    from services.api.models.articles import PendingArticle

    chosen = {"feed": feed, "q": grep, "tag": tag, "state": state, "language": language, "since": since, "until": until}
    chosen |= {"detected_language": detected_language, "topic": topic, "duplicate_kind": duplicate_kind}
    with open_api() as api:
        rows = [row.model_dump() for row in api.rows("/api/articles", PendingArticle, limit=limit, **chosen)]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("created", lambda row: times(row["created_at"])),
        Column("feed", "feed_id", right=True),
        Column("title", flexible=True),
        *LABELS,
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
    tag: OfTag = None,
    language: Language = None,
    detected_language: Detected = None,
    topic: Topic = None,
    duplicate_kind: Duplicate = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List articles that no consumer could digest, the latest first, with the reason."""
    from services.api.models.articles import DeadArticle

    chosen = {"feed": feed, "q": grep, "tag": tag, "language": language, "since": since, "until": until}
    chosen |= {"detected_language": detected_language, "topic": topic, "duplicate_kind": duplicate_kind}
    with open_api() as api:
        rows = [row.model_dump() for row in api.rows("/api/articles/dead", DeadArticle, limit=limit, **chosen)]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("died", lambda row: times(row["failed_at"])),
        Column("feed", "feed_id", right=True),
        Column("title", flexible=True),
        *LABELS,
        Column("error", flexible=True),
        Column("md5", cut=8),
        Column("url", only_wide=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} shown; {times.note}")


@app.command("ledger")
def list_ledger(
    feed: Annotated[str, typer.Argument(help="A feed's id, or its URL.")],
    limit: Limit = 20,
    wide: Wide = False,
    utc: Utc = False,
    as_json: AsJson = False,
) -> None:
    """List the articles that a feed ever brought, acknowledged ones too."""
    from services.api.models.articles import LedgerRow

    with open_api() as api:
        rows = [row.model_dump() for row in api.rows("/api/ledger", LedgerRow, limit=limit, feed=feed)]
    if as_json:
        print(ascii_json(rows))
        return
    times = Times(utc=utc, wide=wide)
    columns = (
        Column("first seen", lambda row: times(row["first_seen_at"])),
        Column("last seen", lambda row: times(row["last_seen_at"])),
        Column("updates", right=True),
        Column("md5", cut=8),
        Column("url", flexible=True),
    )
    print_table(columns, rows, wide=wide, note=f"{len(rows)} shown; {times.note}")


@app.command()
def show(md5: Md5, utc: Utc = False, as_json: AsJson = False) -> None:
    """Show one article, pending or dead, with all its columns."""
    from services.api.models.articles import Article

    with open_api() as api:
        row = api.get(f"/api/articles/{quote(md5, safe='')}", Article).model_dump(exclude_unset=True)
    if as_json:
        print(ascii_json(row))
        return
    times = Times(utc=utc)
    for name, value in in_words_of_people(row).items():
        if value not in (None, [], ""):
            shown = times.with_zone(value) if isinstance(value, datetime) else _of_article(name, value)
            console.print(f"{name}: {shown}", soft_wrap=True, highlight=False)


def _of_article(column: str, value: Any) -> str:
    """Return a value as it is shown. A text that has lines is indented, so that none of them looks like a column."""
    is_text = column in {"body", "html"}
    return safe_to_show(value, None, lines=is_text).replace("\n", "\n    ")

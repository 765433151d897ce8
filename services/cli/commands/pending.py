"""The commands `feedmill pending …`: articles that wait for a consumer, and those that no consumer could digest."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from local.terminal import Terminal
from services.admin.diagnosis import in_words
from services.cli.database import connect_here
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show

app = typer.Typer(help="Articles that wait for a consumer: count, look, settle by hand.", invoke_without_command=True)
console = Terminal()

Md5s = Annotated[list[str], typer.Argument(help="Keys of articles.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Limit = Annotated[int, typer.Option(min=1, max=100_000)]

_COUNTS = """
SELECT count(*) AS pending,
    count(*) FILTER (WHERE claimed_until IS NULL OR claimed_until <= now()) AS claimable,
    count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NOT NULL) AS claimed,
    count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NULL) AS waiting_for_retry,
    count(*) FILTER (WHERE claimed_until <= now() AND lease_id IS NOT NULL) AS lease_expired,
    (SELECT count(*) FROM dead_articles) AS dead,
    extract(epoch FROM now() - min(created_at))::float8 AS oldest_seconds
FROM pending_articles
"""

_STATE = """
CASE WHEN claimed_until IS NULL THEN 'new'
    WHEN lease_id IS NOT NULL AND claimed_until > now() THEN 'claimed'
    WHEN lease_id IS NOT NULL THEN 'lease expired'
    WHEN claimed_until > now() THEN 'waiting for retry'
    ELSE 'back'
END AS state
"""

# In the order in which they are, or will be, given out. Each half by its index: a sort of all would take a while.
_LIST = f"""
SELECT * FROM (
    (SELECT md5, feed_id, title, url, {_STATE}, retry_count, expiries, revision, created_at, claimed_until, last_error
     FROM pending_articles WHERE claimed_until <= now() ORDER BY claimed_until, created_at, md5 LIMIT %(limit)s)
    UNION ALL
    (SELECT md5, feed_id, title, url, {_STATE}, retry_count, expiries, revision, created_at, claimed_until, last_error
     FROM pending_articles WHERE claimed_until IS NULL ORDER BY created_at, md5 LIMIT %(limit)s)
    UNION ALL
    (SELECT md5, feed_id, title, url, {_STATE}, retry_count, expiries, revision, created_at, claimed_until, last_error
     FROM pending_articles WHERE claimed_until > now() ORDER BY claimed_until, created_at, md5 LIMIT %(limit)s)
) AS in_order LIMIT %(limit)s
"""  # noqa: S608 - our own text

_DEAD = """
SELECT md5, feed_id, title, url, retry_count, expiries, revision, created_at, failed_at, error
FROM dead_articles ORDER BY failed_at DESC, md5 LIMIT %s
"""


@app.callback()
def count(context: typer.Context, as_json: AsJson = False) -> None:
    """Count the articles that wait: claimable, claimed, waiting for a retry, dead; how old the oldest is."""
    if context.invoked_subcommand is not None:
        return
    with connect_here() as connection:
        row = connection.execute(_COUNTS).fetchone()
    assert row is not None
    if as_json:
        print(ascii_json(row))
        return
    oldest = row.pop("oldest_seconds")
    table = Table("articles", "", show_lines=False)
    for name, number in row.items():
        table.add_row(name.replace("_", " "), f"{number:,}")
    table.add_row("oldest", "-" if oldest is None else f"{in_words(max(oldest, 0.0))} old")
    console.print(table)


@app.command("list")
def list_pending(limit: Limit = 20, as_json: AsJson = False) -> None:
    """List pending articles in the order in which they are given out."""
    with connect_here() as connection:
        rows = connection.execute(_LIST.encode(), {"limit": limit}).fetchall()
    _show_rows(rows, ("md5", "state", "title", "retry_count", "expiries", "created_at", "last_error"), as_json=as_json)


@app.command("dead")
def list_dead(limit: Limit = 20, as_json: AsJson = False) -> None:
    """List articles that no consumer could digest, the latest first, with the reason."""
    with connect_here() as connection:
        rows = connection.execute(_DEAD, [limit]).fetchall()
    _show_rows(rows, ("md5", "title", "retry_count", "expiries", "failed_at", "error"), as_json=as_json)


def _show_rows(rows: list[dict[str, Any]], columns: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print(ascii_json(rows))
        return
    table = Table(caption=f"{len(rows)} shown")
    table.add_column("md5", no_wrap=True, min_width=32)  # to be copied: never cut
    for column in columns[1:]:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        values = (row[column] for column in columns)
        table.add_row(
            *("" if v is None else f"{v:%Y-%m-%d %H:%M:%S}" if hasattr(v, "year") else safe_to_show(v) for v in values)
        )
    console.print(table)


@app.command()
def show(md5: Annotated[str, typer.Argument(help="The article's key.")], as_json: AsJson = False) -> None:
    """Show one article, pending or dead, with all its columns."""
    with connect_here() as connection:
        query = f"SELECT {_STATE}, pending_articles.* FROM pending_articles WHERE md5 = %s"  # noqa: S608 - our own text
        row = connection.execute(query.encode(), [md5]).fetchone()
        row = row or connection.execute("SELECT 'dead' AS state, * FROM dead_articles WHERE md5 = %s", [md5]).fetchone()
    if row is None:
        raise ConfigurationError(
            f"there is no article {md5[:100]}, pending or dead: it was acknowledged, or never came"
        )
    if as_json:
        print(ascii_json(row))
        return
    for name, value in row.items():
        if value not in (None, [], ""):
            console.print(f"{name}: {_of_article(name, value)}", soft_wrap=True, highlight=False)


def _of_article(column: str, value: object) -> str:
    """Return a value as it is shown. A text that has lines is indented, so that none of them looks like a column."""
    is_text = column in {"body", "html"}
    return safe_to_show(value, None, lines=is_text).replace("\n", "\n    ")


@app.command()
def ack(md5s: Md5s) -> None:
    """Drop pending articles as if a consumer had acknowledged the text that they have now."""
    query = (
        "SELECT ack_articles(array_agg(md5), array_agg(content_hash)) AS n FROM pending_articles WHERE md5 = ANY(%s)"
    )
    console.print(f"{_count(query, md5s)} acknowledged")


@app.command()
def release(md5s: Md5s) -> None:
    """Take claimed articles away from their consumer: they are given out again at once."""
    console.print(f"{_count('SELECT release_articles(%s) AS n', md5s)} released")


@app.command()
def revive(
    md5s: Annotated[list[str] | None, typer.Argument(help="Keys of dead articles.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Make dead articles pending again, with nothing counted against them."""
    if bool(md5s) == everything:
        raise ConfigurationError("say which: keys of dead articles, or --all")
    query = "SELECT revive_articles(array_agg(md5)) AS n FROM dead_articles" if everything else _REVIVE
    revived = _count(query, md5s)
    console.print(f"{revived} revived")
    if md5s and revived < len(set(md5s)):
        raise ConfigurationError(f"{len(set(md5s)) - revived} not: they are not dead, or their feed was removed")


_REVIVE = "SELECT revive_articles(%s) AS n"


def _count(query: str, md5s: list[str] | None) -> int:
    with connect_here() as connection:
        row = connection.execute(query.encode(), None if md5s is None else [md5s]).fetchone()
    assert row is not None
    return int(row["n"] or 0)

"""The commands `feedmill feeds show|set|fetch|remove`: one feed, by its id or its URL."""

from __future__ import annotations

from calendar import day_name
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from psycopg import sql
from rich.table import Table

from local.terminal import Terminal
from services.admin import registry
from services.admin.diagnosis import in_words
from services.cli.database import connect_here
from services.writer.schedule.bounds import next_slot
from shared.errors import ConfigurationError
from shared.observability.display import ascii_json, safe_to_show
from shared.observability.secrets import mask_credentials
from shared.wire.outcomes import words_of

LONGEST_INTERVAL = 31_536_000.0
"""Seconds of a year."""

RESTART_SECONDS = 300.0
"""A feed that is enabled again has its first poll within this time, at a place of its own."""

app = typer.Typer(help="The registry: which feeds are polled.", no_args_is_help=True)
console = Terminal()

Feed = Annotated[str, typer.Argument(help="A feed's id, or its URL.")]
Feeds = Annotated[list[str], typer.Argument(help="Ids or URLs of feeds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _id_of(connection: registry.Connection, feed: str) -> int:
    column = "id" if feed.isdecimal() and len(feed) <= 18 else "url"
    statement = sql.SQL("SELECT id FROM feeds WHERE {} = %s").format(sql.Identifier(column))
    row = connection.execute(statement, [int(feed) if column == "id" else feed]).fetchone()
    if row is None:
        raise ConfigurationError(
            f"there is no feed {mask_credentials(feed)}: `feedmill feeds list` shows those there are"
        )
    return int(row["id"])


@app.command()
def show(feed: Feed, attempts: Annotated[int, typer.Option(min=0, max=1000)] = 10, as_json: AsJson = False) -> None:
    """Show one feed: its state, its health over a week, when it is polled and why, its last attempts."""
    with connect_here() as connection:
        id_ = _id_of(connection, feed)
        row = connection.execute(_STATE, [id_]).fetchone()
        assert row is not None
        log = connection.execute(_ATTEMPTS, [id_, attempts]).fetchall()
    row = {**row, **{name: mask_credentials(row[name]) for name in ("url", "moved_to") if row[name]}}
    if as_json:
        print(ascii_json({**row, "last_attempts": log}))
        return
    state = Table("feed", safe_to_show(row["url"]), show_lines=False)
    for name, value in _facts(row):
        state.add_row(name, safe_to_show(value))
    console.print(state)
    if log:
        console.print(_attempts_table(log))


_STATE = """
SELECT id, url, coalesce(name, title) AS name, site_url, politeness_group, priority, feeds.enabled, disabled_reason,
    interval_seconds, shortest_seconds, longest_seconds, poll_seconds, items_per_day, ttl_seconds, skip_hours,
    skip_days,
    next_fetch_at, claim_expires_at, issued_at, last_attempt_at, last_success_at, last_new_at, last_outcome, last_error,
    feeds.failures, moved_to, moved_sightings, lying_since, attempts, success_rate, mean_seconds, stale,
    feeds.news_gap_seconds, seconds_since_success, seconds_since_news,
    (SELECT max(until) FROM throttled_groups
     WHERE throttled_groups.politeness_group = feeds.politeness_group AND until > now()) AS throttled_until
FROM feeds JOIN feed_health ON feed_health.feed_id = feeds.id
WHERE feeds.id = %s
"""

_ATTEMPTS = """
SELECT started_at, outcome, attempt, status, items_seen, items_new, elapsed_seconds, tier, error
FROM feed_fetch_log WHERE feed_id = %s ORDER BY started_at DESC LIMIT %s
"""


def _facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a person wants to know of a feed, in words; what is not there is left out."""
    facts = [
        ("id", str(row["id"])),
        ("name", row["name"]),
        ("polled", "yes" if row["enabled"] else f"no: {row['disabled_reason'] or 'disabled'}"),
        ("next poll", _moment(row["next_fetch_at"]) if row["enabled"] and not _in_flight(row) else None),
        ("pace", _pace(row)),
        ("in flight", _in_flight(row)),
        ("host throttled until", _moment(row["throttled_until"])),
        ("last outcome", _last_outcome(row) or "never polled"),
        ("last success", _ago(row["seconds_since_success"])),
        ("last news", _ago(row["seconds_since_news"])),
        ("stale", "yes: it answers, and nothing new comes" if row["stale"] else None),
        ("failures in a row", str(row["failures"]) if row["failures"] else None),
        ("this week", _week(row)),
        ("moving to", f"{row['moved_to']} (seen {row['moved_sightings']} times)" if row["moved_to"] else None),
        ("304 untrue since", _moment(row["lying_since"])),
        ("host", row["politeness_group"]),
    ]
    return [(name, value) for name, value in facts if value]


def _pace(row: dict[str, Any]) -> str:
    said = []
    if row["interval_seconds"]:
        said.append(f"every {in_words(row['interval_seconds'])}, as set")
    elif row["poll_seconds"]:
        said.append(f"adaptive, now about every {in_words(row['poll_seconds'])}")
    if row["items_per_day"] is not None:
        said.append(f"{row['items_per_day']:.3g} articles a day")
    bounds = [f"{name} {in_words(row[key])}" for name, key in _BOUNDS.items() if row[key]]
    if row["skip_hours"]:
        bounds.append(f"not in the hours {', '.join(map(str, row['skip_hours']))} (UTC)")
    if row["skip_days"]:
        bounds.append(f"not on {', '.join(day_name[day] for day in row['skip_days'])}")
    return "; ".join([*said, *bounds])


_BOUNDS = {"at least": "shortest_seconds", "at most": "longest_seconds", "the feed asks for": "ttl_seconds"}


def _in_flight(row: dict[str, Any]) -> str | None:
    if row["claim_expires_at"] is None or row["claim_expires_at"] < datetime.now(UTC):
        return None
    since = f"issued {_moment(row['issued_at'])}" if row["issued_at"] else "to be tried again"
    return f"{since}, claimed until {_moment(row['claim_expires_at'])}"


def _week(row: dict[str, Any]) -> str | None:
    if not row["attempts"]:
        return None
    seconds = "" if row["mean_seconds"] is None else f", {row['mean_seconds']:.2f} s each"
    return f"{row['attempts']} attempts, {100 * row['success_rate']:.0f} % good{seconds}"


def _moment(moment: datetime | None) -> str | None:
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}" if moment else None


def _last_outcome(row: dict[str, Any]) -> str | None:
    outcome: str | None = row["last_outcome"]
    return f"{outcome} - {row['last_error'] or words_of(outcome)}" if outcome else None


def _ago(seconds: float | None) -> str | None:
    return None if seconds is None else f"{in_words(max(seconds, 0.0))} ago"


def _attempts_table(log: list[dict[str, Any]]) -> Table:
    table = Table("started", "outcome", "status", "entries", "new", "seconds", "error", title="last attempts")
    for row in log:
        table.add_row(
            _moment(row["started_at"]),
            row["outcome"],
            str(row["status"] or ""),
            str(row["items_seen"]),
            str(row["items_new"]),
            f"{row['elapsed_seconds']:.2f}",
            safe_to_show(row["error"] or ""),
        )
    return table


@app.command("set")
def set_(
    feeds: Feeds,
    interval: Annotated[
        float | None, typer.Option(min=0, max=LONGEST_INTERVAL, help="Fixed, in seconds; 0: adapt.")
    ] = None,
    shortest: Annotated[float | None, typer.Option(min=0, max=LONGEST_INTERVAL, help="Seconds; 0: as for all.")] = None,
    longest: Annotated[float | None, typer.Option(min=0, max=LONGEST_INTERVAL, help="Seconds; 0: as for all.")] = None,
    priority: Annotated[int | None, typer.Option(min=-1000, max=1000)] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether they are polled.")] = None,
) -> None:
    """Change how feeds are polled. One that is enabled again starts anew, with its failures forgotten."""
    changes: dict[str, Any] = {}
    for column, seconds in (
        ("interval_seconds", interval),
        ("shortest_seconds", shortest),
        ("longest_seconds", longest),
    ):
        if seconds is not None:
            changes[column] = seconds or None
    changes |= {} if priority is None else {"priority": priority}
    changes |= {} if name is None else {"name": name or None}
    if not changes and enable is None:
        raise ConfigurationError(
            "nothing to change: give --interval, --shortest, --longest, --priority, --name, --enable or --disable"
        )
    if enable is False:
        changes |= {"enabled": False, "disabled_reason": "by hand"}
    for feed in feeds:
        with connect_here() as connection:
            id_ = _id_of(connection, feed)
            _change(connection, id_, changes | (_restart(id_) if enable else {}))
            _bring_forward(connection, id_, min(filter(None, (interval, longest)), default=None))
            console.print(f"feed {id_} was changed")


def _restart(id_: int) -> dict[str, Any]:
    first = next_slot(id_, after=datetime.now(UTC), period=RESTART_SECONDS)
    return {"enabled": True, "disabled_reason": None, "failures": 0, "gone_since": None, "next_fetch_at": first}


def _change(connection: registry.Connection, id_: int, changes: dict[str, Any]) -> None:
    assignments = sql.SQL(", ").join(sql.SQL("{} = {}").format(sql.Identifier(c), sql.Placeholder(c)) for c in changes)
    connection.execute(sql.SQL("UPDATE feeds SET {} WHERE id = %(id)s").format(assignments), {**changes, "id": id_})


def _bring_forward(connection: registry.Connection, id_: int, seconds: float | None) -> None:
    """Let a shorter interval count from now, and not only after the poll that is planned already."""
    if seconds is not None:
        connection.execute(
            "UPDATE feeds SET next_fetch_at = least(next_fetch_at, now() + make_interval(secs => %s)) WHERE id = %s",
            [seconds, id_],
        )


@app.command()
def fetch(feeds: Feeds) -> None:
    """Poll feeds now: they are due at once, ahead of their time. A host that asked to be left alone is left alone."""
    for feed in feeds:
        with connect_here() as connection:
            id_ = _id_of(connection, feed)
            row = connection.execute(
                "UPDATE feeds SET next_fetch_at = least(next_fetch_at, now()) WHERE id = %s RETURNING enabled", [id_]
            ).fetchone()
            if row is None or not row["enabled"]:
                raise ConfigurationError(f"feed {id_} is disabled: `feedmill feeds set {id_} --enable`")
            console.print(f"feed {id_} is due now")


@app.command()
def remove(feeds: Feeds, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False) -> None:
    """Remove feeds, with their log and their pending articles. Articles seen are remembered: they don't come again."""
    for feed in feeds:
        with connect_here() as connection:
            id_ = _id_of(connection, feed)
            row = connection.execute("SELECT count(*) AS n FROM pending_articles WHERE feed_id = %s", [id_]).fetchone()
            assert row is not None
            pending = row["n"]
            connection.commit()  # a person may take their time
            if not yes:
                typer.confirm(f"remove feed {id_} and its {pending} pending articles?", abort=True)
            # Cascading deletes lock in any order; consumers go by md5.
            connection.execute("SELECT FROM feeds WHERE id = %s FOR UPDATE", [id_])
            connection.execute("SELECT FROM pending_articles WHERE feed_id = %s ORDER BY md5 FOR UPDATE", [id_])
            connection.execute("DELETE FROM feeds WHERE id = %s", [id_])
            console.print(f"feed {id_} was removed, and {pending} pending articles with it")

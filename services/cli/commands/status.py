"""The command `feedmill status`: the backlog, the feeds, the articles, and why nothing moves, at one glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from local.addresses import find
from services.admin.diagnosis import FeedCounts, QueueLevel, in_all, in_words
from services.cli.options import AsJson
from services.cli.output import Column, console, print_facts, print_table
from services.cli.settings import CliSettings
from shared.broker.shards import is_front, is_shard
from shared.observability.display import ascii_json, safe_to_show
from shared.settings import read_settings

if TYPE_CHECKING:
    from services.admin.status import Status


def status(as_json: AsJson = False) -> None:
    """Show the queues, the feeds that are due, overdue or in flight, pending articles, and why nothing moves."""
    from services.admin.status import look

    there = find(read_settings(CliSettings))
    found = look(there.amqp_url, there.database_url)
    if as_json:
        print(ascii_json(found.as_json()))
    else:
        show(found)


def show(status: Status) -> None:
    """Print it: the queues, the counts, the reasons."""
    columns = (
        Column("queue", lambda row: row[0]),
        Column("messages ready", lambda row: f"{row[1].ready:,}" if row[1] else "not declared", right=True),
        Column("consumers", lambda row: row[1] and row[1].consumers, right=True),
    )
    print_table(columns, list(_in_brief(status.queues).items()))
    console.print()
    print_facts(_facts(status.counts, status.busiest))
    for reason in status.reasons:
        console.print(f"- {safe_to_show(reason)}", soft_wrap=True)


def _in_brief(queues: Mapping[str, QueueLevel | None]) -> dict[str, QueueLevel | None]:
    """Return the levels with all shards as one, and all their front queues as one, before the others."""
    shards, fronts = [name for name in queues if is_shard(name)], [name for name in queues if is_front(name)]
    others = {name: level for name, level in queues.items() if name not in {*shards, *fronts}}
    return {
        f"fetcher.* ({len(shards)} shards)": in_all([queues[name] for name in shards]),
        f"fetcher.*.front ({len(fronts)} shards)": in_all([queues[name] for name in fronts]),
        **others,
    }


def _facts(counts: FeedCounts, busiest: Mapping[str, int]) -> list[tuple[str, str]]:
    last = counts.seconds_since_success
    return [
        ("feeds", f"{counts.feeds:,}"),
        ("  disabled", f"{counts.disabled:,}"),
        ("  failing", f"{counts.failing:,}"),
        ("  due", f"{counts.due:,}"),
        ("  overdue (due for over a minute)", f"{counts.overdue:,}"),
        ("  in flight, no result yet", f"{counts.queued:,}"),
        ("  in flight, to be tried again", f"{counts.retrying:,}"),
        *((f"    of {safe_to_show(group)}", f"{jobs:,}") for group, jobs in busiest.items() if jobs > 1),
        ("pending articles", f"{counts.pending_articles:,}"),
        ("longest due for", _span(counts.longest_due_seconds)),
        ("next one due in", _span(counts.next_due_seconds)),
        ("last success, anywhere", f"{_span(last)} ago" if last else "never"),
    ]


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else in_words(seconds)

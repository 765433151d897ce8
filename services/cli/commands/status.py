"""`feedmill status`: the backlog, the feeds, the articles, and why nothing moves, at one glance."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from services.admin.diagnosis import FeedCounts, QueueLevel, in_all, in_words
from services.admin.status import Status
from shared.broker.topology import is_shard
from shared.observability.display import safe_to_show


def show(status: Status, console: Console) -> None:
    """Print it: two tables, and the reasons."""
    queues = Table("queue", title="messages")
    queues.add_column("ready", justify="right")
    queues.add_column("consumers", justify="right")
    for name, level in _in_brief(status.queues).items():
        queues.add_row(name, *("not declared", "") if level is None else (f"{level.ready:,}", str(level.consumers)))
    console.print(queues, _counts_table(status.counts, status.busiest))
    for reason in status.reasons:
        console.print(f"- {safe_to_show(reason)}", soft_wrap=True)


def _in_brief(queues: Mapping[str, QueueLevel | None]) -> dict[str, QueueLevel | None]:
    """Return the levels with all shards as one, before the others."""
    shards = [name for name in queues if is_shard(name)]
    others = {name: level for name, level in queues.items() if name not in shards}
    return {f"fetcher.* ({len(shards)} shards)": in_all([queues[name] for name in shards]), **others}


def _counts_table(counts: FeedCounts, busiest: Mapping[str, int]) -> Table:
    table = Table("what", title="feeds and articles")
    table.add_column("number", justify="right")
    rows: list[tuple[str, str]] = [
        ("feeds", f"{counts.feeds:,}"),
        ("  disabled", f"{counts.disabled:,}"),
        ("  failing", f"{counts.failing:,}"),
        ("  due", f"{counts.due:,}"),
        ("  overdue (due for over a minute)", f"{counts.overdue:,}"),
        ("  in flight, nothing heard yet", f"{counts.queued:,}"),
        ("  in flight, to be tried again", f"{counts.retrying:,}"),
    ]
    rows += [(f"    of {safe_to_show(group)}", f"{jobs:,}") for group, jobs in busiest.items() if jobs > 1]
    rows += [
        ("pending articles", f"{counts.pending_articles:,}"),
        ("longest due for", _span(counts.longest_due_seconds)),
        ("next one due in", _span(counts.next_due_seconds)),
        (
            "last success, anywhere",
            f"{_span(counts.seconds_since_success)} ago" if counts.seconds_since_success else "never",
        ),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _span(seconds: float | None) -> str:
    return "–" if seconds is None else in_words(seconds)

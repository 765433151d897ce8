"""`feedmill status`: the backlog, the feeds, the articles, and why nothing moves, at one glance."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from local.addresses import Addresses
from services.admin.diagnosis import FeedCounts, Marks, QueueLevel, Situation, explain, in_all, in_words
from services.admin.registry import busiest_groups, connect, count_all
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.broker.port import Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import MOST_SHARDS, Topology, is_shard, shard_name
from shared.observability.display import safe_to_show
from shared.settings import BrokerSettings, read_settings


@dataclass(frozen=True)
class Status:
    """How things stand."""

    queues: dict[str, QueueLevel | None]
    """By name; None: there is no such queue yet."""
    counts: FeedCounts
    busiest: dict[str, int]
    """The politeness groups with the most jobs under way."""
    reasons: list[str] = field(default_factory=list)
    """What keeps things from moving."""

    def as_json(self) -> dict[str, Any]:
        """Return it for machines: `queues` holds ready messages, `consumers` who reads them."""
        return {
            "queues": {name: level.ready if level else None for name, level in self.queues.items()},
            "consumers": {name: level.consumers if level else 0 for name, level in self.queues.items()},
            "counts": asdict(self.counts),
            "busiest": self.busiest,
            "reasons": self.reasons,
        }


def look(addresses: Addresses) -> Status:
    """Return how things stand.

    Raises:
        Unavailable: broker or database away.
        ConfigurationError: not migrated yet.
    """
    with connect(addresses.database_url) as connection:
        counts, busiest = count_all(connection), busiest_groups(connection)
    topology = read_settings(BrokerSettings).topology()
    queues = asyncio.run(_levels(addresses.amqp_url, topology))
    shards = {name: level for name, level in queues.items() if is_shard(name)}
    situation = Situation(counts, shards, queues[topology.writer.queue], busiest, _marks())
    return Status(queues, counts, busiest, explain(situation))


def _marks() -> Marks:
    scheduler, fetcher = read_settings(SchedulerSettings), read_settings(FetcherSettings)
    return Marks(
        fetcher_high_water=scheduler.fetcher_high_water,
        writer_high_water=fetcher.writer_high_water,
        group_jobs=scheduler.group_jobs,
        silence_seconds=scheduler.silence_seconds,
    )


async def _levels(amqp_url: str, topology: Topology) -> dict[str, QueueLevel | None]:
    """Look at all queues of the topology, and at the shards that there are beyond those that we know of."""
    broker = RabbitMQ(amqp_url, name="feedmill status", max_message_bytes=1024)
    async with broker.connect(None) as session:
        levels = {queue.name: await _level(session, queue.name) for queue in topology.queues}
        for number in range(len(topology.fetcher.queues), MOST_SHARDS):
            level = await _level(session, shard_name(number))
            if level is None:
                break
            levels[shard_name(number)] = level
    return levels


async def _level(session: Session, queue: str) -> QueueLevel | None:
    ready = await session.count_ready(queue)
    return None if ready is None else QueueLevel(ready, await session.count_consumers(queue))


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

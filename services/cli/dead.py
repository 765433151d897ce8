"""`feedmill dead`: look at dead letters, send them back to where they failed, or throw them away."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from shared.broker import Broker, Delivery, Publication, Session
from shared.errors import ConfigurationError
from shared.secrets import MASK, mask_credentials
from shared.topology import EXCHANGE, Stage, Topology
from shared.waiting import pause

IDLE_SECONDS = 2.0
"""No letter for so long means that the broker has handed out all that it will."""


@dataclass(frozen=True)
class DeadLetter:
    """A message in a dead queue, as a person sees it. Its delivery is ours until the session ends."""

    queue: str
    delivery: Delivery

    def _header(self, ours: str, brokers: str = "", default: str = "") -> str:
        """Return our header, else the one that RabbitMQ writes when it dead-letters by itself (delivery limit)."""
        headers = self.delivery.headers
        return str(headers.get(ours, headers.get(brokers, default)))

    @property
    def first_queue(self) -> str:
        """Where it failed."""
        return self._header("first_queue", "x-first-death-queue", self.queue.removesuffix(".dead"))

    def queue_in(self, stage: Stage) -> str:
        """Return the queue of `stage` that the letter belongs into.

        Not always the one where it failed: a delay queue is one as well, and there may be more or fewer shards by now.
        """
        if self.first_queue in stage.queues:
            return self.first_queue
        try:
            return stage.queue_of(str(json.loads(self._plain())["group"]))
        except (OSError, EOFError, ValueError, TypeError, KeyError):
            return stage.queues[0]  # no job: any fetcher will say so

    def _plain(self) -> bytes:
        body = self.delivery.body
        return gzip.decompress(body) if self.delivery.content_encoding else body

    def summary(self) -> dict[str, Any]:
        """Return one row of `feedmill dead list`."""
        headers = self.delivery.headers
        return {
            "message_id": self.delivery.message_id,
            "queue": self.queue,
            "first_queue": self.first_queue,
            "type": self.delivery.type,
            "reason": self._header("reason", "x-first-death-reason", "unknown"),
            "error": self._header("error"),
            "died_at": self._header("died_at"),
            "attempt": headers.get("attempt", 0),
            "bytes": len(self.delivery.body),
        }

    def body(self) -> str:
        """Return the body as a person can read it: JSON set out in lines, else what can be made of the bytes."""
        try:
            return json.dumps(_without_secrets(json.loads(self._plain())), indent=2, ensure_ascii=False)
        except (OSError, EOFError, ValueError):
            return self.delivery.body.decode("utf-8", errors="backslashreplace")


def _without_secrets(body: Any) -> Any:
    """Return a job's JSON without what the feed logs in with: its own password and headers, and those of URLs."""
    config = body.get("source_config") if isinstance(body, dict) else None
    if isinstance(config, dict):
        if "password" in config:
            config["password"] = MASK
        if isinstance(config.get("headers"), dict):
            config["headers"] = dict.fromkeys(config["headers"], MASK)
    return json.loads(mask_credentials(json.dumps(body)))


def select_stages(topology: Topology, service: str | None) -> list[Stage]:
    """Return the stage of `service`, or all.

    Raises:
        ConfigurationError: no service of that name has a dead queue.
    """
    stages = [stage for stage in topology.stages if service in {None, stage.service}]
    if not stages:
        names = ", ".join(stage.service for stage in topology.stages)
        raise ConfigurationError(f"no service {service!r} has a dead queue; there are {names}")
    return stages


@asynccontextmanager
async def holding(
    broker: Broker, topology: Topology, stage: Stage, most: int
) -> AsyncIterator[tuple[Session, list[DeadLetter]]]:
    """Yield the oldest letters of a stage, at most `most`; those that are not settled go back as they lay."""
    letters: list[DeadLetter] = []
    async with broker.connect(topology) as session:
        wanted = min(await session.count_ready(stage.dead) or 0, most)
        if wanted:
            await session.consume(
                stage.dead, prefetch=wanted, deliver=lambda d: letters.append(DeadLetter(stage.dead, d))
            )
            seen = -1
            while seen < len(letters) < wanted:
                seen = len(letters)
                await _until_more(letters, seen)
        yield session, letters


async def _until_more(letters: Collection[DeadLetter], seen: int) -> None:
    deadline = asyncio.get_running_loop().time() + IDLE_SECONDS
    while len(letters) == seen and asyncio.get_running_loop().time() < deadline:
        await pause(0.01)


async def read_letters(broker: Broker, topology: Topology, stages: list[Stage], most: int) -> list[DeadLetter]:
    """Return the oldest letters of each stage, leaving them where they are."""
    found: list[DeadLetter] = []
    for stage in stages:
        async with holding(broker, topology, stage, most) as (_, letters):
            found += letters
    return found


async def settle_letters(
    broker: Broker, topology: Topology, stages: list[Stage], ids: Collection[str] | None, most: int, *, requeue: bool
) -> int:
    """Requeue or purge the letters with these message ids (None: all); return how many.

    A letter is taken from the dead queue only after the broker has confirmed its way back.
    """
    settled = 0
    for stage in stages:
        async with holding(broker, topology, stage, most) as (session, letters):
            for letter in letters:
                if ids is not None and letter.delivery.message_id not in ids:
                    continue
                if requeue:
                    await session.publish(_way_back(letter, stage))
                await session.ack(letter.delivery)
                settled += 1
    return settled


def _way_back(letter: DeadLetter, stage: Stage) -> Publication:
    """Return the letter as it first was: without failures and reasons, with its attempt."""
    delivery = letter.delivery
    kept = {
        name: delivery.headers[name] for name in ("attempt", "feed_id", "skips", "entries") if name in delivery.headers
    }
    return Publication(
        routing_key=letter.queue_in(stage),
        exchange=EXCHANGE,
        body=delivery.body,
        type=delivery.type,
        content_encoding=delivery.content_encoding,
        headers=kept,
        message_id=delivery.message_id,
    )

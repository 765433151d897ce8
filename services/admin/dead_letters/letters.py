"""Reads dead letters, sends them back to where they failed, or deletes them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from services.admin.errors import Invalid
from shared.broker.port import Broker, Delivery, Publication, Session
from shared.broker.topology import CHAIN, EXCHANGE, Stage, Topology
from shared.errors import DecodeError, MessageTooLarge
from shared.observability.display import readable_json, safe_to_show
from shared.observability.secrets import MASK, mask_credentials, mask_within
from shared.waiting import pause
from shared.wire.envelope import has_more_values, unpack, unpack_beginning

SERVICES = tuple(entry.service for entry in CHAIN)
"""Those that have a dead queue."""

IDLE_SECONDS = 2.0
"""If no message comes for so long, the broker has delivered all that it will."""

READ_BYTES = 4 * 1024 * 1024
"""A body up to this size, uncompressed, is read as JSON. Of a larger one the beginning is shown as it is."""

READ_VALUES = 200_000

SHOWN_CHARACTERS = 100_000
"""The most characters of a letter's body that are shown."""

ROUND = 20
"""The most letters whose bodies are in memory at a time; each body may be as large as a message can be."""


@dataclass(frozen=True)
class DeadLetter:
    """A message in a dead queue. Its delivery is ours until the session ends."""

    queue: str
    delivery: Delivery
    """Its body is empty if only the headers were wanted."""
    bytes: int
    """The size of the body as it was published (compressed)."""

    def _header(self, ours: str, brokers: str = "", default: str = "") -> str:
        """Return our header, masked; else RabbitMQ's, which dead-letters by itself at the delivery limit."""
        headers = self.delivery.headers
        return mask_credentials(str(headers.get(ours, headers.get(brokers, default))))

    @property
    def first_queue(self) -> str:
        """The queue where it failed."""
        return self._header("first_queue", "x-first-death-queue", self.queue.removesuffix(".dead"))

    def queue_in(self, stage: Stage) -> str:
        """Return the queue of `stage` to send the letter back to.

        That is where it failed, unless that was a delay queue or a shard that no longer exists.
        """
        if self.first_queue in stage.queues:
            return self.first_queue
        try:
            body = _json_of(self.delivery)
            return stage.queue_of(str(body["group"]))
        except (DecodeError, MessageTooLarge, ValueError, TypeError, KeyError):
            return stage.queues[0]  # the body is no job: any fetcher will dead-letter it again

    def summary(self) -> dict[str, Any]:
        """Return one row of `feedmill dead list`."""
        headers = self.delivery.headers
        return {
            "message_id": self.delivery.message_id,
            "feed_id": headers.get("feed_id"),
            "queue": self.queue,
            "first_queue": self.first_queue,
            "type": mask_credentials(self.delivery.type),
            "reason": self._header("reason", "x-first-death-reason", "unknown"),
            "error": self._header("error"),
            "died_at": self._header("died_at"),
            "attempt": headers.get("attempt", 0),
            "bytes": self.bytes,
        }

    def body(self) -> str:
        """Return the body for a person: indented JSON, else the bytes as text. Without secrets, cut, safe to show."""
        try:
            text = readable_json(_without_secrets(_json_of(self.delivery)))
        except (DecodeError, MessageTooLarge, ValueError):
            text = self._beginning()
        if len(text) > SHOWN_CHARACTERS:
            return f"{text[:SHOWN_CHARACTERS]}\n… (the body goes on; it has {self.bytes:,} bytes as it travels)"
        return text

    def _beginning(self) -> str:
        """Return the beginning of a body that is no JSON, or too large."""
        try:
            plain, _ = unpack_beginning(self.delivery.body, self.delivery.content_encoding, SHOWN_CHARACTERS + 1)
        except DecodeError:
            plain = self.delivery.body[: SHOWN_CHARACTERS + 1]
        text = _HEADERS.sub(rf"\g<name>{MASK}", plain.decode("utf-8", errors="backslashreplace"))
        return safe_to_show(text, None, lines=True)


# The feed's own headers, which may hold credentials, in a job's body that can't be read as JSON.
_HEADERS = re.compile(r'(?P<name>"headers"\s*:\s*)\{[^{}]*\}?')


def _json_of(delivery: Delivery) -> Any:
    plain = unpack(delivery.body, delivery.content_encoding, READ_BYTES)
    if has_more_values(plain, READ_VALUES):
        raise MessageTooLarge(f"the body holds more than {READ_VALUES} values")
    try:
        return json.loads(plain)
    except RecursionError as error:
        raise DecodeError("the body is nested too deeply") from error


def _without_secrets(body: Any) -> Any:
    """Return a job's JSON without the feed's password and headers, and without credentials in URLs."""
    config = body.get("source_config") if isinstance(body, dict) else None
    if isinstance(config, dict):
        if "password" in config:
            config["password"] = MASK
        if isinstance(config.get("headers"), dict):
            config["headers"] = dict.fromkeys(config["headers"], MASK)
    return mask_within(body)


def select_stages(topology: Topology, service: str | None) -> list[Stage]:
    """Return the stage of `service`, or all.

    Raises:
        Invalid: no service of that name has a dead queue.
    """
    stages = [stage for stage in topology.stages if service in {None, stage.service}]
    if not stages:
        names = ", ".join(stage.service for stage in topology.stages)
        raise Invalid(f"no service {service!r} has a dead queue; there are {names}", "service")
    return stages


Keep = Callable[[Delivery], bool]
"""Returns whether a letter's body is kept in memory."""


def no_body(delivery: Delivery) -> bool:
    """Keep no body."""
    return False


@asynccontextmanager
async def holding(
    broker: Broker, topology: Topology, queue: str, most: int, keep: Keep = no_body
) -> AsyncIterator[tuple[Session, list[DeadLetter]]]:
    """Yield the oldest messages of a queue, at most `most`. Those that are not acknowledged go back to their places."""
    letters: list[DeadLetter] = []

    def take(delivery: Delivery) -> None:
        kept = delivery if keep(delivery) else replace(delivery, body=b"")
        letters.append(DeadLetter(queue, kept, len(delivery.body)))

    async with broker.connect(topology) as session:
        wanted = min(await session.count_ready(queue) or 0, most)
        if wanted:
            await session.consume(queue, prefetch=wanted, deliver=take)
            seen = -1
            while seen < len(letters) < wanted:
                seen = len(letters)
                await _until_more(letters, seen)
        yield session, letters


async def _until_more(letters: Collection[DeadLetter], seen: int) -> None:
    deadline = asyncio.get_running_loop().time() + IDLE_SECONDS
    while len(letters) == seen and asyncio.get_running_loop().time() < deadline:
        await pause(0.01)


async def read_letters(
    broker: Broker, topology: Topology, stages: list[Stage], most: int, keep: Keep = no_body
) -> list[DeadLetter]:
    """Return the oldest letters of each stage, with the bodies that are to be kept. They stay in their queues."""
    found: list[DeadLetter] = []
    for stage in stages:
        async with holding(broker, topology, stage.dead, most, keep) as (_, letters):
            found += letters
    return found


async def requeue_letters(
    broker: Broker, topology: Topology, stages: list[Stage], ids: Collection[str] | None, most: int
) -> int:
    """Send the letters with these message ids (None: all) back to where they failed; return how many.

    A letter is taken from the dead queue only after the broker has confirmed the copy that was sent back.
    """
    requeued = 0
    for stage in stages:
        left = most
        at_once = ROUND if ids is None else most
        while left > 0:
            done = await _requeue_round(broker, topology, stage, ids, min(left, at_once))
            requeued, left = requeued + done, left - at_once
            if done < at_once:
                break
    return requeued


async def _requeue_round(
    broker: Broker, topology: Topology, stage: Stage, ids: Collection[str] | None, most: int
) -> int:
    def is_meant(delivery: Delivery) -> bool:
        return ids is None or delivery.message_id in ids

    requeued = 0
    async with holding(broker, topology, stage.dead, most, is_meant) as (session, letters):
        for letter in letters:
            if is_meant(letter.delivery):
                await session.publish(way_back(letter, stage))
                await session.ack(letter.delivery)
                requeued += 1
    return requeued


async def purge_letters(
    broker: Broker, topology: Topology, stages: list[Stage], ids: Collection[str] | None, most: int
) -> int:
    """Delete the letters with these message ids (None: all); return how many."""
    purged = 0
    for stage in stages:
        async with holding(broker, topology, stage.dead, most) as (session, letters):
            for letter in letters:
                if ids is None or letter.delivery.message_id in ids:
                    await session.ack(letter.delivery)
                    purged += 1
    return purged


def way_back(letter: DeadLetter, stage: Stage) -> Publication:
    """Return the letter as it was first published: without failures and reasons, with its attempt."""
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

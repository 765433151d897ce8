"""Publishing with publisher confirms."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from aiormq.channel import Channel
from aiormq.exceptions import (
    AMQPError,
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)

from shared.broker.amqp import Connection, open_channel, to_properties, translated
from shared.broker.port import Publication
from shared.errors import BrokerUnavailable, MessageTooLarge, Unconfirmed, Unroutable
from shared.waiting import retrieve_error

CONFIRM_TIMEOUT_SECONDS = 30.0
"""After this time a publish is reported as unconfirmed. It is not sent a second time: the next try waits for the same
confirm. (A broker under a resource alarm reads nothing from publishers.)"""

SMALL_BYTES = 65536
"""A larger message is drained to the socket before the next one is sent: this bounds the backlog in memory."""


@dataclass
class SizeLimit:
    """The largest body that the broker accepts; all sessions of a process share it, and a refusal lowers it."""

    bytes: int


class Publisher:
    """Publishes over a connection of its own. Calls may be cancelled: what is being sent goes on."""

    def __init__(self, publishing: Connection, size_limit: SizeLimit) -> None:
        self.lost = asyncio.Event()
        self._publishing = publishing
        self._size_limit = size_limit
        self._confirms: dict[str, asyncio.Task[None]] = {}
        self._unsent: dict[str, asyncio.Task[None]] = {}
        self._publish_channel: Channel | None = None
        self._reopening = asyncio.Lock()

    def lose(self, *_: object) -> None:
        """Mark the session as lost."""
        self.lost.set()
        for waiting in self._unsent.values():  # a blocked broker will never say that it is no longer blocked
            waiting.cancel()

    async def publish(self, publication: Publication) -> None:
        """Publish and wait for the confirm. The task that sends goes on if the caller is cancelled or gives up."""
        if len(publication.body) > self._size_limit.bytes:
            raise MessageTooLarge(
                f"a {publication.type} message of {len(publication.body)} bytes exceeds the"
                f" {self._size_limit.bytes} that FEEDMILL_MAX_MESSAGE_BYTES or the broker allows"
            )
        name = publication.message_id
        confirm = self._confirms.get(name)
        if confirm is None:
            confirm = asyncio.create_task(self._send(publication))
            self._confirms[name] = self._unsent[name] = confirm
            confirm.add_done_callback(retrieve_error)
        await asyncio.wait((confirm,), timeout=CONFIRM_TIMEOUT_SECONDS)  # cancels nothing
        if not confirm.done():
            raise Unconfirmed(f"no confirm within {CONFIRM_TIMEOUT_SECONDS:g} s; still waiting for it")
        self._confirms.pop(name, None)  # not sooner: a second try waits for the same confirm
        confirm.result()

    async def _send(self, publication: Publication) -> None:
        """Send a publication. The error says whether a queue may have the message."""
        target = f"{publication.exchange} {publication.routing_key}".lstrip()
        try:
            with publication.span, translated(f"publish to {target}", but=(AMQPError,)):
                channel = await self._ready_channel()
                self._unsent.pop(publication.message_id, None)
                await channel.basic_publish(
                    publication.body,
                    exchange=publication.exchange,
                    routing_key=publication.routing_key,
                    properties=to_properties(publication),
                    mandatory=publication.mandatory,
                    wait=len(publication.body) > SMALL_BYTES,
                )
        except (PublishError, ChannelNotFoundEntity) as error:
            self.lost.set()
            raise Unroutable(f"no queue takes what is published to {target}: {error!r}") from error
        except DeliveryError as error:
            raise BrokerUnavailable(f"the broker refused a message for {target}") from error
        except ChannelPreconditionFailed as error:
            size, largest = _refused_size(error)
            if size == len(publication.body):
                self._size_limit.bytes = min(largest, self._size_limit.bytes)
                raise MessageTooLarge(f"the broker refused a {publication.type} message: {error}") from error
            # Another message was too large, and ours was on the same channel when the broker closed it.
            raise Unconfirmed(f"the channel was closed before a confirm: {error!r}") from error
        except (AMQPError, BrokerUnavailable, asyncio.CancelledError) as error:
            never_sent = self._unsent.pop(publication.message_id, None) is not None
            if isinstance(error, asyncio.CancelledError) and not self.lost.is_set():
                raise
            if never_sent or isinstance(error, ChannelInvalidStateError):
                raise BrokerUnavailable(f"cannot publish to {target}: {error!r}") from error
            raise Unconfirmed(f"the connection ended before a confirm: {error!r}") from error

    async def _ready_channel(self) -> Channel:
        """Return the publish channel as soon as the broker takes messages; a new one if the broker closed it.

        A broker under an alarm says that it is blocked; a message that is sent then stands in the socket and can't be
        taken back. The broker closes a channel over an oversized message.
        """
        await self._publishing.ready()
        channel = self._publish_channel
        if channel is not None and not channel.is_closed:
            return channel
        async with self._reopening:
            if self._publish_channel is None or self._publish_channel.is_closed:
                self._publish_channel = await open_channel(self._publishing, confirms=True)
            return self._publish_channel


def _refused_size(error: ChannelPreconditionFailed) -> tuple[int, int]:
    """Return both numbers of "message size 512 is larger than configured max size 256"; zeros if it says otherwise."""
    found = re.search(r"message size (\d+).*max size (\d+)", str(error))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

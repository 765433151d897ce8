"""Publishing with publisher confirms."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from aiormq.exceptions import (
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
)

from shared.broker.amqp import AWAY, Connection, open_message_channel
from shared.broker.message_channel import MessageChannel, Returned
from shared.broker.port import Publication
from shared.errors import BrokerUnavailable, MessageTooLarge, Unconfirmed, Unroutable

CONFIRM_TIMEOUT_SECONDS = 30.0
"""After this time a publish is reported as unconfirmed. It is not sent a second time: the next try waits for the same
confirm. (A broker under a resource alarm reads nothing from publishers.)"""

SMALL_BYTES = 65536
"""A larger message is drained to the socket before the next large one is sent: this bounds the backlog in memory."""


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
        self._confirms: dict[str, asyncio.Future[None]] = {}
        self._unsent: dict[str, asyncio.Task[None]] = {}
        self._publish_channel: MessageChannel | None = None
        self._draining = asyncio.Lock()

    def lose(self, *_: object) -> None:
        """Mark the session as lost."""
        self.lost.set()
        for waiting in self._unsent.values():  # a blocked broker will never say that it is no longer blocked
            waiting.cancel()

    async def publish(self, publication: Publication) -> None:
        """Publish and wait for the confirm. It is waited for also if the caller is cancelled or gives up."""
        if len(publication.body) > self._size_limit.bytes:
            raise MessageTooLarge(
                f"a {publication.type} message of {len(publication.body)} bytes exceeds the"
                f" {self._size_limit.bytes} that FEEDMILL_MAX_MESSAGE_BYTES or the broker allows"
            )
        name = publication.message_id
        confirm = self._confirms.get(name)
        if confirm is None:
            confirm = self._confirms[name] = self._send(publication)
        await asyncio.wait((confirm,), timeout=CONFIRM_TIMEOUT_SECONDS)  # cancels nothing
        if not confirm.done():
            raise Unconfirmed(f"no confirm within {CONFIRM_TIMEOUT_SECONDS:g} s; still waiting for it")
        self._confirms.pop(name, None)  # not sooner: a second try waits for the same confirm
        self._check(publication, confirm)

    def _send(self, publication: Publication) -> asyncio.Future[None]:
        """Send a publication, at once or as soon as that is possible; return the future that its confirm resolves."""
        channel = self._publish_channel
        confirm: asyncio.Future[None]
        if channel is not None and channel.can_publish and len(publication.body) <= SMALL_BYTES:
            confirm = channel.publish(publication)
        else:
            confirm = self._unsent[publication.message_id] = asyncio.create_task(self._send_later(publication))
        confirm.add_done_callback(self._note_confirm)
        return confirm

    async def _send_later(self, publication: Publication) -> None:
        async with self._draining:
            channel = await self._ready_channel()
            confirm = channel.publish(publication)
            confirm.add_done_callback(self._note_confirm)
            self._unsent.pop(publication.message_id, None)
            await channel.drain()
        await confirm

    def _note_confirm(self, confirm: asyncio.Future[None]) -> None:
        """Note that a queue is missing: the session is lost with it, also if nobody waits for this publication."""
        error = None if confirm.cancelled() else confirm.exception()
        if isinstance(error, Returned | ChannelNotFoundEntity):
            self.lost.set()

    def _check(self, publication: Publication, confirm: asyncio.Future[None]) -> None:
        """Raise the error of a publication, if there is one. It says whether a queue may have the message."""
        was_sent = self._unsent.pop(publication.message_id, None) is None
        target = f"{publication.exchange} {publication.routing_key}".lstrip()
        try:
            confirm.result()
        except (Returned, ChannelNotFoundEntity) as error:
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
        except (*AWAY, asyncio.CancelledError) as error:
            if not was_sent or isinstance(error, ChannelInvalidStateError):
                raise BrokerUnavailable(f"cannot publish to {target}: {error!r}") from error
            raise Unconfirmed(f"the connection ended before a confirm: {error!r}") from error

    async def _ready_channel(self) -> MessageChannel:
        """Return the publish channel as soon as the broker takes messages; a new one if the broker closed it.

        A broker under an alarm says that it is blocked; a message that is sent then stands in the socket and can't be
        taken back. The broker closes a channel over an oversized message.
        """
        await self._publishing.ready()
        channel = self._publish_channel
        if channel is not None and channel.is_open:
            return channel
        self._publish_channel = await open_message_channel(self._publishing, confirms=True)
        return self._publish_channel


def _refused_size(error: ChannelPreconditionFailed) -> tuple[int, int]:
    """Return both numbers of "message size 512 is larger than configured max size 256"; zeros if it says otherwise."""
    found = re.search(r"message size (\d+).*max size (\d+)", str(error))
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

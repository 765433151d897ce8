"""Messages over one AMQP channel: deliveries, settlements, publishing with confirms."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from aiormq.channel import Channel
from aiormq.exceptions import AMQPError, ChannelInvalidStateError, DeliveryError
from pamqp.commands import Basic

from shared.broker.frames import HEADER, METHOD, FrameReader, FrameWriter
from shared.broker.marshalling import (
    ACK,
    CLOSE,
    DELIVER,
    NACK,
    REJECT,
    RETURN,
    Content,
    read_confirm,
    read_content,
    read_deliver,
    write_publication,
    write_settlement,
)
from shared.broker.port import Delivery, Publication

log = logging.getLogger(__name__)

Receive = Callable[[Delivery], None]


class MessageChannel:
    """The messages of one of the library's channels. The library itself makes the channel's calls (`calls`).

    Args:
        calls: with publisher confirms if anything is published.
        reader: of the channel's connection.
        writer: likewise.
        most_bytes: the largest frame that the broker takes.
    """

    def __init__(self, calls: Channel, reader: FrameReader, writer: FrameWriter, most_bytes: int) -> None:
        self.calls = calls
        self.is_open = True
        """False as soon as the broker has said so: what is sent behind the library's answer ends the connection."""
        self._reader = reader
        self._writer = writer
        self._most_bytes = most_bytes
        self._consumers: dict[str, tuple[str, Receive, bool]] = {}
        self._unsettled: dict[int, None] = {}
        """The delivery tags that are ours to settle, oldest first."""
        self._acked: set[int] = set()
        """Of these, what is acknowledged at the end of this turn of the event loop."""
        self._published = 0
        self._confirms: dict[int, asyncio.Future[None]] = {}
        self._names: dict[str, int] = {}
        self._method = b""
        """The delivery or return whose content is arriving."""
        self._content: Content | None = None
        self._body: list[bytes] = []
        self._missing = 0
        reader.channels[calls.number] = self._take
        calls.closing.add_done_callback(self._end)

    def receive(self, tag: str, queue: str, receive: Receive, *, needs_ack: bool = True) -> None:
        """Hand the messages of the consumer `tag` to `receive`. Call it before the consumer begins."""
        self._consumers[tag] = queue, receive, needs_ack

    def forget(self, tag: str) -> None:
        """Hand on no more messages of a consumer that has ended."""
        self._consumers.pop(tag, None)

    def ack(self, tag: int) -> None:
        """Acknowledge a message, together with others of this turn of the event loop.

        Raises:
            ChannelInvalidStateError: the channel is closed.
        """
        self._check_open()
        if not self._acked:
            asyncio.get_running_loop().call_soon(self.send_acks)
        self._acked.add(tag)

    def nack(self, tag: int, *, requeue: bool) -> None:
        """Requeue a message, or let the broker dead-letter it (reject). Raises as `ack`."""
        self._check_open()
        self.send_acks()
        self._unsettled.pop(tag, None)
        self._settle(NACK if requeue else REJECT, tag)

    def send_acks(self) -> None:
        """Send the pending acknowledgements: one for all of the oldest messages, one for each of the others."""
        acked, self._acked = self._acked, set()
        oldest = []
        for tag in self._unsettled:
            if tag not in acked:
                break
            oldest.append(tag)
        if oldest:
            self._settle(ACK, oldest[-1], multiple=len(oldest) > 1)
        for tag in acked.difference(oldest):
            self._settle(ACK, tag)
        for tag in acked:
            self._unsettled.pop(tag, None)

    def _settle(self, method: int, tag: int, *, multiple: bool = False) -> None:
        if self.is_open:
            self._writer.write(write_settlement(self.calls.number, method, tag, multiple=multiple))

    @property
    def can_publish(self) -> bool:
        """Whether the channel is open, and the broker takes messages."""
        return self.is_open and not self._reader.is_blocked

    def publish(self, publication: Publication) -> asyncio.Future[None]:
        """Send a publication; return a future that is done once the broker has confirmed it.

        Its error is DeliveryError (refused), Returned (no queue takes it), or what has closed the channel.

        Raises:
            ChannelInvalidStateError: the channel is closed.
        """
        self._check_open()
        frames = write_publication(self.calls.number, publication, time.time(), self._most_bytes)
        self._published += 1  # not sooner: the broker counts what was sent
        confirm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._confirms[self._published] = confirm
        self._names[publication.message_id] = self._published
        confirm.add_done_callback(lambda _: self._names.pop(publication.message_id, None))
        self._writer.write(frames)
        return confirm

    async def drain(self) -> None:
        """Wait until the socket has taken most of what was published."""
        await self._writer.drain()

    def _check_open(self) -> None:
        if not self.is_open:
            raise ChannelInvalidStateError(f"channel {self.calls.number} is closed")

    def _take(self, kind: int, payload: bytes) -> bool:
        """Take a frame if it belongs to a message (`frames.Take`)."""
        if kind == METHOD:
            method = int.from_bytes(payload[:4], "big")
            if method in {DELIVER, RETURN}:
                self._method = payload
                return True
            if method in {ACK, NACK}:
                self._note_confirm(payload, is_refused=method == NACK)
                return True
            if method == CLOSE:
                self.is_open = False
            return False
        if not self._method:
            return False
        if kind == HEADER:
            self._content = read_content(payload)
            self._missing = self._content.size
        else:
            self._body.append(payload)
            self._missing -= len(payload)
        if self._content and not self._missing:
            method_arguments, self._method = self._method, b""
            body, self._body = b"".join(self._body), []
            self._finish(method_arguments, self._content, body)
        return True

    def _finish(self, method: bytes, content: Content, body: bytes) -> None:
        """Hand on a message that is complete."""
        if int.from_bytes(method[:4], "big") == RETURN:
            self._note_return(content.message_id)
            return
        consumer, tag, redelivered = read_deliver(method)
        queue, receive, needs_ack = self._consumers.get(consumer, ("", None, True))
        if needs_ack:
            self._unsettled[tag] = None
        if receive is None:
            return
        _, encoding, headers, message_id, kind = content
        try:
            receive(Delivery(queue, body, kind, encoding, headers, message_id, redelivered, tag))
        except Exception:  # an error here would end the connection
            log.exception("a message of %s was not received", queue)

    def _note_confirm(self, payload: bytes, *, is_refused: bool) -> None:
        tag, multiple = read_confirm(payload)
        tags = [known for known in self._confirms if known <= tag] if multiple else [tag]
        for known in tags:
            confirm = self._confirms.pop(known, None)
            if confirm is not None and not confirm.done():
                if is_refused:
                    confirm.set_exception(DeliveryError(None, Basic.Nack(tag, multiple)))
                else:
                    confirm.set_result(None)

    def _note_return(self, name: str) -> None:
        """Note that no queue takes a publication. Its confirm follows and says nothing."""
        confirm = self._confirms.get(self._names.get(name, 0))
        if confirm is not None and not confirm.done():
            confirm.set_exception(Returned("the broker returned it"))

    def _end(self, closing: asyncio.Future[object]) -> None:
        """Fail what waits for a confirm with the error that has closed the channel."""
        self.is_open = False
        if self._reader.channels.get(self.calls.number) == self._take:
            del self._reader.channels[self.calls.number]
        error = None if closing.cancelled() else closing.exception()
        for confirm in self._confirms.values():
            if not confirm.done():
                confirm.set_exception(error if isinstance(error, AMQPError) else ChannelClosedUnconfirmed(str(error)))
        self._confirms.clear()


class Returned(AMQPError):
    """No queue takes a publication."""


class ChannelClosedUnconfirmed(AMQPError):
    """The channel was closed before a confirm."""

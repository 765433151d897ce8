"""Frames of messages, beside the library that reads and writes all others."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import body, commands, frame, header
from pamqp.heartbeat import Heartbeat

from shared.broker.frames import FrameReader
from shared.broker.marshalling import ACK, NACK, REJECT, Content, read_content, write_publication, write_settlement
from shared.broker.message_channel import MessageChannel
from shared.broker.port import Delivery, Publication

MOST_BYTES = 4096

TEXTS = st.text(max_size=60)
HEADERS = st.dictionaries(
    st.text(min_size=1, max_size=30), TEXTS | st.integers(-(2**63), 2**63 - 1) | st.just("x" * 300), max_size=5
)
PUBLICATIONS = st.builds(
    Publication,
    routing_key=TEXTS,
    body=st.binary(max_size=20) | st.sampled_from((4087, 4088, 4089, 8177, 10_000)).map(lambda size: b"x" * size),
    exchange=TEXTS,
    type=TEXTS,
    content_encoding=st.sampled_from((None, "gzip")),
    headers=HEADERS,
    message_id=TEXTS,
    mandatory=st.booleans(),
)


def frames_in(data: bytes) -> list[Any]:
    """Return the frames in some bytes, as the library reads them, each with its channel."""
    found = []
    while data:
        size, channel, one = frame.unmarshal(data)
        found.append((channel, one))
        assert size <= MOST_BYTES
        data = data[size:]
    return found


@given(PUBLICATIONS)
def test_the_library_reads_a_publication_as_it_was_written(publication: Publication) -> None:
    (_, method), (_, head), *pieces = frames_in(write_publication(7, publication, 1_700_000_000.9, MOST_BYTES))
    assert isinstance(method, commands.Basic.Publish)
    assert (method.exchange, method.routing_key) == (publication.exchange, publication.routing_key)
    assert (method.mandatory, method.immediate) == (publication.mandatory, False)
    properties = head.properties
    assert head.body_size == len(publication.body)
    assert properties.headers == publication.headers
    assert properties.message_id == publication.message_id
    assert properties.message_type == publication.type
    assert properties.content_encoding == publication.content_encoding
    assert (properties.content_type, properties.app_id) == ("application/json", "feedmill")
    assert (properties.delivery_mode, properties.timestamp) == (2, datetime.fromtimestamp(1_700_000_000, UTC))
    assert b"".join(piece.value for _, piece in pieces) == publication.body
    assert {channel for channel, _ in pieces} <= {7}


@given(PUBLICATIONS)
def test_a_header_is_read_as_it_was_written_by_us_and_by_the_library(publication: Publication) -> None:
    (_, _), (_, head), *_ = frames_in(write_publication(7, publication, 1_700_000_000.9, MOST_BYTES))
    expected = Content(
        len(publication.body),
        publication.content_encoding,
        publication.headers,
        publication.message_id,
        publication.type,
    )
    assert read_content(head_payload(publication)) == expected
    head.properties.priority = 3
    head.properties.headers |= {"x-death": [{"count": 1}], "x-flag": True}
    of_library = read_content(head.marshal())
    assert of_library.headers == {**publication.headers, "x-death": "[{'count': 1}]", "x-flag": True}
    assert of_library._replace(headers=publication.headers) == expected


def head_payload(publication: Publication) -> bytes:
    """Return the payload of the header's frame."""
    data = write_publication(7, publication, 1_700_000_000.9, MOST_BYTES)
    first, _, _ = frame.unmarshal(data)
    second, _, _ = frame.unmarshal(data[first:])
    return data[first + 7 : first + second - 1]


@pytest.mark.parametrize(
    ("method", "multiple", "expected"),
    [
        (ACK, False, commands.Basic.Ack(2**40, multiple=False)),
        (ACK, True, commands.Basic.Ack(2**40, multiple=True)),
        (NACK, False, commands.Basic.Nack(2**40, multiple=False, requeue=True)),
        (REJECT, False, commands.Basic.Reject(2**40, requeue=False)),
    ],
)
def test_the_library_would_settle_with_the_same_bytes(method: int, multiple: bool, expected: Any) -> None:
    assert write_settlement(3, method, 2**40, multiple=multiple) == frame.marshal(expected, 3)


class Wire:
    """A channel over a connection whose bytes the test writes and reads."""

    def __init__(self) -> None:
        self.reader = FrameReader()
        self.written = io.BytesIO()
        self.closing: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        calls: Any = SimpleNamespace(number=1, closing=self.closing)
        writer: Any = self.written
        self.channel = MessageChannel(calls, self.reader, writer, MOST_BYTES)
        self.got: list[Delivery] = []
        self.channel.receive("ours", "writer", self.got.append)

    def deliver(self, tag: int, content: bytes = b"{}", consumer: str = "ours") -> bytes:
        """Return the bytes of a delivery."""
        properties = commands.Basic.Properties(message_id=f"id {tag}", headers={"entries": tag})
        parts: list[Any] = [
            commands.Basic.Deliver(consumer, tag, False, "feedmill", "feed.fetched.v1"),
            header.ContentHeader(body_size=len(content), properties=properties),
            *(body.ContentBody(content[at : at + 10]) for at in range(0, len(content), 10)),
        ]
        return b"".join(frame.marshal(part, 1) for part in parts)

    async def for_library(self) -> list[Any]:
        """Return the frames that the library gets, without the heartbeats."""
        self.reader.feed_eof()
        return [one for _, one in frames_in(await self.reader.read()) if not isinstance(one, Heartbeat)]


@given(contents=st.lists(st.binary(max_size=35), max_size=5), cuts=st.lists(st.integers(1, 60), min_size=1))
def test_messages_arrive_however_their_bytes_are_cut_and_the_library_gets_the_rest(
    contents: list[bytes], cuts: list[int]
) -> None:
    async def run() -> None:
        wire = Wire()
        data = frame.marshal(Heartbeat(), 0)
        for tag, content in enumerate(contents, start=1):
            data += wire.deliver(tag, content)
            data += frame.marshal(commands.Basic.QosOk(), 1) + frame.marshal(
                commands.Queue.DeclareOk(f"q{tag}", 1, 1), 2
            )
        at = 0
        while at < len(data):
            size = cuts[at % len(cuts)]
            wire.reader.feed_data(data[at : at + size])
            at += size
        assert [(one.tag, one.body, one.message_id) for one in wire.got] == [
            (tag, content, f"id {tag}") for tag, content in enumerate(contents, start=1)
        ]
        found = await wire.for_library()
        assert [type(one).__name__ for one in found] == ["QosOk", "DeclareOk"] * len(contents)

    asyncio.run(run())


SETTLEMENTS = st.lists(
    st.tuples(st.sampled_from(["ack", "requeue", "reject", "turn"]), st.integers(0, 11)), max_size=30
)


@given(SETTLEMENTS)
def test_exactly_what_was_acknowledged_is_in_whatever_order_and_turn(
    steps: Sequence[tuple[str, int]],
) -> None:
    """One acknowledgement for many messages never holds for another one."""

    async def run() -> None:
        wire = Wire()
        for tag in range(1, 11):
            wire.reader.feed_data(wire.deliver(tag))
        wanted: dict[int, str] = {}
        for step, number in steps:
            open_tags = [one.tag for one in wire.got if one.tag not in wanted]
            if step == "turn":
                await asyncio.sleep(0)
                wire.reader.feed_data(wire.deliver(10 + number + 20 * len(wire.got)))
            elif open_tags:
                tag = open_tags[number % len(open_tags)]
                wanted[tag] = step
                wire.channel.ack(tag) if step == "ack" else wire.channel.nack(tag, requeue=step == "requeue")
        await asyncio.sleep(0)
        assert settled_by_broker([one.tag for one in wire.got], wire.written.getvalue()) == wanted

    asyncio.run(run())


def settled_by_broker(tags: list[int], data: bytes) -> dict[int, str]:
    """Return what a broker that has delivered these does with each. It refuses what settles nothing."""
    unacked, settled = list(tags), dict[int, str]()
    for _, one in frames_in(data):
        assert one.delivery_tag in unacked
        if isinstance(one, commands.Basic.Ack):
            covered = [tag for tag in unacked if tag == one.delivery_tag or (one.multiple and tag < one.delivery_tag)]
            settled |= dict.fromkeys(covered, "ack")
        else:
            covered = [one.delivery_tag]
            settled[one.delivery_tag] = "requeue" if isinstance(one, commands.Basic.Nack) else "reject"
        unacked = [tag for tag in unacked if tag not in covered]
    return settled


def confirms(*frames_: Any) -> bytes:
    return b"".join(frame.marshal(one, 1) for one in frames_)


async def outcome(confirm: asyncio.Future[None]) -> str:
    error = (await asyncio.gather(confirm, return_exceptions=True))[0]
    return type(error).__name__


async def test_confirms_come_one_by_one_and_together_and_a_return_names_its_message() -> None:
    wire = Wire()
    names = ["one", "two", "three", "refused", "returned", "lost"]
    sent = [wire.channel.publish(Publication("k", b"", "e", "t", message_id=name)) for name in names]
    wire.reader.feed_data(confirms(commands.Basic.Ack(2, multiple=True), commands.Basic.Ack(3), commands.Basic.Nack(4)))
    properties = commands.Basic.Properties(message_id="returned")
    returned = (
        commands.Basic.Return(312, "NO_ROUTE", "e", "k"),
        header.ContentHeader(body_size=0, properties=properties),
    )
    wire.reader.feed_data(confirms(*returned, commands.Basic.Ack(5)))
    wire.closing.set_exception(ConnectionError("gone"))
    found = [await outcome(one) for one in sent]
    assert found == ["NoneType"] * 3 + ["DeliveryError", "Returned", "ChannelClosedUnconfirmed"]


async def test_a_publication_that_no_frame_can_hold_counts_for_no_confirm() -> None:
    wire = Wire()
    with pytest.raises(OverflowError):
        wire.channel.publish(Publication("k" * 256, b"", "e", "t"))
    sent = wire.channel.publish(Publication("k", b"", "e", "t"))
    wire.reader.feed_data(confirms(commands.Basic.Ack(1)))
    assert sent.done()
    assert len(frames_in(wire.written.getvalue())) == 2


async def test_a_receiver_that_fails_costs_its_message_and_not_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire()

    def fail(_: Delivery) -> None:
        raise RecursionError

    wire.channel.receive("theirs", "hello", fail)
    wire.reader.feed_data(wire.deliver(1, consumer="theirs") + wire.deliver(2))
    assert [one.tag for one in wire.got] == [2]
    assert "a message of hello was not received" in caplog.text


async def test_nothing_is_sent_on_a_channel_that_the_broker_closes() -> None:
    wire = Wire()
    wire.reader.feed_data(wire.deliver(1) + confirms(commands.Channel.Close(406, "PRECONDITION_FAILED", 60, 40)))
    assert not wire.channel.can_publish
    with pytest.raises(Exception, match="closed"):
        wire.channel.publish(Publication("k", b"", "e", "t"))
    with pytest.raises(Exception, match="closed"):
        wire.channel.ack(1)
    assert not wire.written.getvalue()
    assert len(await wire.for_library()) == 1, "the library answers"


async def test_a_blocked_connection_takes_no_publication_until_it_is_unblocked() -> None:
    wire = Wire()
    for one, is_free in ((commands.Connection.Blocked("memory"), False), (commands.Connection.Unblocked(), True)):
        wire.reader.feed_data(frame.marshal(one, 0))
        assert wire.channel.can_publish is is_free
    assert len(await wire.for_library()) == 2

"""Pure: the frames of messages as bytes (AMQP 0-9-1, 1.8 and 2.3.5; RabbitMQ's nack)."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from pamqp.header import ContentHeader

from shared.broker.frames import BODY, FRAME_END, HEADER, METHOD
from shared.broker.port import Headers, Publication

CLASS = 60
PUBLISH, RETURN, DELIVER, ACK, REJECT, NACK = (CLASS << 16 | method for method in (40, 50, 60, 80, 90, 120))
"""Class and method in one number."""

CLOSE = 20 << 16 | 40
"""channel.close."""

_MULTIPLE, _REQUEUE, _MANDATORY = 1, 2, 1
"""Flags of ack, nack, publish."""

_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS, _DELIVERY_MODE = 1 << 15, 1 << 14, 1 << 13, 1 << 12
_MESSAGE_ID, _TIMESTAMP, _TYPE, _APP_ID = 1 << 7, 1 << 6, 1 << 5, 1 << 3
_ALWAYS = _CONTENT_TYPE | _HEADERS | _DELIVERY_MODE | _MESSAGE_ID | _TIMESTAMP | _TYPE | _APP_ID
_PERSISTENT = b"\x02"

_START = struct.Struct(">BHI")
_SETTLEMENT = struct.Struct(">BHIIQBB")
_CONTENT = struct.Struct(">HHQH")
_TAG = struct.Struct(">QB")


def _short_once(text: str) -> bytes:
    """Return a text of at most 255 bytes."""
    encoded = text.encode()
    return len(encoded).to_bytes(1, "big") + encoded


_short = lru_cache(maxsize=1000)(_short_once)
"""The same for the texts that most messages have."""


def _table(headers: Headers) -> bytes:
    fields = []
    for name, value in headers.items():
        if isinstance(value, int):
            fields.append(_short(name) + b"l" + value.to_bytes(8, "big", signed=True))
        else:
            encoded = value.encode()
            fields.append(_short(name) + b"S" + len(encoded).to_bytes(4, "big") + encoded)
    table = b"".join(fields)
    return len(table).to_bytes(4, "big") + table


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _START.pack(kind, channel, len(payload)) + payload + FRAME_END


@lru_cache(maxsize=1000)
def _publish_frame(channel: int, exchange: str, routing_key: str, *, mandatory: bool) -> bytes:
    arguments = b"\0\0" + _short(exchange) + _short(routing_key) + bytes([_MANDATORY * mandatory])
    return _frame(METHOD, channel, PUBLISH.to_bytes(4, "big") + arguments)


def write_publication(channel: int, publication: Publication, now: float, most_bytes: int) -> bytes:
    """Return the frames of a publication; `now` in seconds since 1970, `most_bytes` the largest frame."""
    encoding = publication.content_encoding
    properties = (
        _short("application/json"),
        _short(encoding) if encoding else b"",
        _table(publication.headers),
        _PERSISTENT,
        _short_once(publication.message_id),
        int(now).to_bytes(8, "big"),
        _short(publication.type),
        _short("feedmill"),
    )
    body = publication.body
    head = _CONTENT.pack(CLASS, 0, len(body), _ALWAYS | (_CONTENT_ENCODING if encoding else 0))
    most = most_bytes - _START.size - len(FRAME_END)
    pieces = [body] if 0 < len(body) <= most else [body[at : at + most] for at in range(0, len(body), most)]
    return b"".join(
        (
            _publish_frame(channel, publication.exchange, publication.routing_key, mandatory=publication.mandatory),
            _frame(HEADER, channel, head + b"".join(properties)),
            *(_frame(BODY, channel, piece) for piece in pieces),
        )
    )


def write_settlement(channel: int, method: int, tag: int, *, multiple: bool = False) -> bytes:
    """Return the frame that acknowledges a message (`multiple`: and all before it), requeues it or rejects it."""
    flags = _REQUEUE if method == NACK else _MULTIPLE * multiple
    return _SETTLEMENT.pack(METHOD, channel, _SETTLEMENT.size - _START.size - 1, method, tag, flags, FRAME_END[0])


def read_confirm(payload: bytes) -> tuple[int, bool]:
    """Return the number of a confirmed publication, and whether all before it are confirmed, too."""
    tag, flags = _TAG.unpack_from(payload, 4)
    return tag, bool(flags & _MULTIPLE)


def read_deliver(payload: bytes) -> tuple[str, int, bool]:
    """Return the consumer's tag, the delivery's, and whether it was delivered before."""
    end = 5 + payload[4]
    tag, redelivered = _TAG.unpack_from(payload, end)
    return payload[5:end].decode(), tag, bool(redelivered)


class Content(NamedTuple):
    """The header of a message, as far as we read it."""

    size: int
    """Of the body, in bytes."""
    encoding: str | None
    headers: Headers
    message_id: str
    type: str


def read_content(payload: bytes) -> Content:
    """Return the header in a frame's payload. Raises ValueError for what is none."""
    _, _, size, flags = _CONTENT.unpack_from(payload)
    if flags & ~_CONTENT_ENCODING == _ALWAYS:
        at = _skip_text(payload, _CONTENT.size)
        encoding, at = _read_text(payload, at) if flags & _CONTENT_ENCODING else (None, at)
        headers, at = _read_table(payload, at)
        if headers is not None:
            message_id, at = _read_text(payload, at + len(_PERSISTENT))
            kind, _ = _read_text(payload, at + 8)
            return Content(size, encoding, headers, message_id, kind)
    header = ContentHeader()  # of another publisher, or with headers of the broker's
    header.unmarshal(payload)
    known = header.properties
    return Content(
        size,
        known.content_encoding or None,
        {key: value if isinstance(value, str | int) else str(value) for key, value in (known.headers or {}).items()},
        known.message_id or "",
        known.message_type or "",
    )


def _skip_text(payload: bytes, at: int) -> int:
    return at + 1 + payload[at]


def _read_text(payload: bytes, at: int) -> tuple[str, int]:
    end = _skip_text(payload, at)
    return payload[at + 1 : end].decode(errors="replace"), end


def _read_table(payload: bytes, at: int) -> tuple[dict[str, str | int] | None, int]:
    """Return the headers at this place, and the place behind them; None if one has another type than ours."""
    table: dict[str, str | int] = {}
    at += 4
    end = at + int.from_bytes(payload[at - 4 : at], "big")
    while at < end:
        name, at = _read_text(payload, at)
        kind = payload[at : at + 1]
        if kind == b"l":
            table[name], at = int.from_bytes(payload[at + 1 : at + 9], "big", signed=True), at + 9
        elif kind == b"S":
            size = int.from_bytes(payload[at + 1 : at + 5], "big")
            table[name], at = payload[at + 5 : at + 5 + size].decode(errors="replace"), at + 5 + size
        else:
            return None, end
    return table, end

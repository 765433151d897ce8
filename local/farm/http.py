"""HTTP/1.1 in the small: bytes to a request, a reply to bytes. No sockets here."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

MAX_HEAD_BYTES = 32 * 1024

_REQUEST_LINE = re.compile(r"([A-Z]{3,20}) (/[\x21-\x7e]*) HTTP/1\.([01])")
_REQUEST_LINE_BEGUN = re.compile(rb"[A-Z]{1,20}(?: [\x20-\x7e]*\r?)?")
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")


class BadRequestError(Exception):
    """What came is no request that this server reads. The message says why."""


class Request(NamedTuple):
    """One request, and the address and port that it came to."""

    host: str
    port: int
    method: str
    path: str
    """The request target as sent, query included."""
    headers: dict[str, str]
    """Names in lower case."""
    keep_alive: bool


class Reply(NamedTuple):
    """One answer, all but the fields that depend on the moment and on the connection."""

    status: int
    fields: bytes
    """Header lines, each with its line end."""
    body: bytes = b""
    delay_seconds: float = 0.0
    body_sent: int | None = None
    """Send only so many bytes of the body, then close; None for all of it."""
    on_delivered: Callable[[], None] | None = None
    """Called once the client has been sent all of it."""


def make_reply(status: HTTPStatus, text: str, *more_fields: str, content_type: str = "text/plain") -> Reply:
    """Return a reply with this text and these header fields, `Content-Length` added."""
    body = text.encode()
    fields = (f"Content-Type: {content_type}; charset=utf-8", f"Content-Length: {len(body)}", *more_fields)
    return Reply(status.value, join_fields(*fields), body)


def join_fields(*fields: str) -> bytes:
    """Return the header fields as they go over the wire."""
    return "".join(f"{field}\r\n" for field in fields).encode("latin-1")


def parse_request(head: bytes, host: str, port: int) -> Request:
    """Return the request in `head` (without its empty line) that came to this host and port.

    Raises:
        BadRequestError: it is malformed, or has a body, which no feed reader sends.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    request_line = _REQUEST_LINE.fullmatch(first)
    if request_line is None:
        raise BadRequestError("malformed request line")
    headers: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise BadRequestError("malformed header field")
        name = field[1].lower()
        if name == "host" and name in headers:
            raise BadRequestError("more than one Host")
        value = field[2].rstrip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_http_11 = request_line[3] == "1"
    if is_http_11 and "host" not in headers:
        raise BadRequestError("no Host")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequestError("a request body is not expected")
    keep_alive = is_http_11 and "close" not in headers.get("connection", "").lower()
    return Request(host, port, request_line[1], request_line[2], headers, keep_alive)


def may_become_request(received: bytes) -> bool:
    """Return whether this beginning of a header can still be completed: garbage need not be waited out."""
    first, _, _ = received.partition(b"\n")
    return bool(_REQUEST_LINE_BEGUN.fullmatch(first)) and not _BARE_LINE_FEED.search(received)


def reply_head(reply: Reply, *, now: int, keep_alive: bool) -> bytes:
    """Return the status line and the header, `now` in seconds since the epoch."""
    return b"%b%b%bConnection: %b\r\n\r\n" % (
        _status_line(reply.status),
        _date_line(now),
        reply.fields,
        b"keep-alive" if keep_alive else b"close",
    )


@lru_cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: feed-farm\r\n".encode()


@lru_cache(maxsize=2)
def _date_line(now: int) -> bytes:
    return f"Date: {formatdate(now, usegmt=True)}\r\n".encode()

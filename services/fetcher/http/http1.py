"""Pure: one HTTP/1.1 answer from the bytes of a connection that carries no second one (RFC 9112).

Tolerant of what does no harm: bare line feeds, folded lines, white space before the colon, lines that are no header,
a missing reason. Strict where a body's extent, or what is kept of a header, would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_HEAD_BYTES = 256 * 1024
MAX_FIELDS = 4096
MAX_INTERIM = 16
"""Answers with a status 1xx before the one that counts."""

MAX_CHUNK_LINE_BYTES = 4096
MAX_FRAMING_BYTES = 1024 * 1024
"""By so much a chunked body's framing may exceed its contents: chunks of one byte are an attack on the reader."""

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_STATUS_LINE = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+([1-9]\d\d)(?:[ \t\r]|$)")
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*\r?(?:;|$)")
_LENGTH = re.compile(rb"\d{1,18}")


class BadResponse(Exception):
    """The server's answer is no HTTP, contradicts itself or is cut short; the message says what was found."""


@dataclass(frozen=True)
class Head:
    """Status and header fields as they came, without those that are no header or hold control characters."""

    status: int
    fields: list[tuple[bytes, bytes]]

    def items(self, name: bytes) -> list[bytes]:
        """Return the items of a field that is a list, over all its lines (RFC 9110 5.3), in lower case."""
        values = [value for key, value in self.fields if key.lower() == name]
        return [item.strip().lower() for value in values for item in value.split(b",")]


class ResponseReader:
    """Reads head and body; `receive` gives the connection's next bytes, none at its end."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()

    def read_head(self) -> Head:
        """Return the head of the final answer; interim ones (RFC 9110 15.2) are skipped.

        Raises:
            BadResponse: no HTTP, too large, cut short, too many interim answers, a NUL.
        """
        for _ in range(MAX_INTERIM + 1):
            head = parse_head(self._take_head())
            if head.status == 101:
                raise BadResponse("the server switches to a protocol that nobody asked for (status 101)")
            if head.status >= 200:
                return head
        raise BadResponse(f"more than {MAX_INTERIM} interim answers (status 1xx)")

    def read_body(self, head: Head) -> Iterator[bytes]:
        """Return the body in pieces as they arrive, framing taken off (RFC 9112 6.3).

        Raises:
            BadResponse: at once if the framing contradicts itself, and later for chunks that are none and for a body
                that ends before its announced end.
        """
        length = content_length(head)
        if is_chunked(head):
            if length is not None:
                raise BadResponse("the answer has both a Content-Length and chunks")
            return self._read_chunks()
        return self._read_to_close() if length is None else self._read_counted(length)

    def _take_head(self) -> bytes:
        buffer, searched = self._buffer, 0
        while True:
            if not (buffer.startswith(b"HTTP/") or b"HTTP/".startswith(buffer[:5])):
                raise BadResponse(_describe(bytes(buffer[:24])))
            found = _HEAD_END.search(buffer, searched)
            if found and found.end() <= MAX_HEAD_BYTES:
                head = bytes(buffer[: found.start()])
                del buffer[: found.end()]
                return head
            if len(buffer) > MAX_HEAD_BYTES:
                raise BadResponse(f"the header exceeds {MAX_HEAD_BYTES} bytes")
            searched = max(len(buffer) - 3, 0)
            piece = self._receive()
            if not piece:
                where = "within the header" if buffer else "without an answer"
                raise BadResponse(f"the server closed the connection {where}")
            buffer += piece

    def _read_counted(self, left: int) -> Iterator[bytes]:
        piece = bytes(self._buffer)
        while True:
            if piece:
                yield piece if len(piece) <= left else piece[:left]  # what comes behind the end is not ours
            left -= len(piece)
            if left <= 0:
                return
            piece = self._receive()
            if not piece:
                raise BadResponse(f"the body is cut short: {left} bytes are missing of its Content-Length")

    def _read_to_close(self) -> Iterator[bytes]:
        piece = bytes(self._buffer) or self._receive()
        while piece:
            yield piece
            piece = self._receive()

    def _read_chunks(self) -> Iterator[bytes]:
        surplus = 0
        while True:
            line = self._take_line()
            match = _CHUNK_SIZE.match(line)
            if not match:
                raise BadResponse(f"no size of a chunk: {line[:24]!r}")
            left = int(match[1], 16)
            if left == 0:
                return  # trailers may follow; nobody reads them, nor anything else on this connection
            surplus += len(line) + 3 - left
            if surplus > MAX_FRAMING_BYTES:
                raise BadResponse("the body is in chunks so small that they are more framing than body")
            while left:
                piece = self._take(left)
                left -= len(piece)
                yield piece
            if self._take_line().strip(b"\r"):
                raise BadResponse("a chunk is longer than its size")

    def _take(self, most: int) -> bytes:
        """Return at least one byte of a chunk."""
        buffer = self._buffer
        if not buffer:
            piece = self._more()
            if len(piece) <= most:
                return piece
            buffer += piece
        taken = bytes(buffer[:most])
        del buffer[:most]
        return taken

    def _take_line(self) -> bytes:
        """Return a line of the framing without its line feed."""
        buffer = self._buffer
        while (end := buffer.find(b"\n")) < 0:
            if len(buffer) > MAX_CHUNK_LINE_BYTES:
                raise BadResponse(f"no size of a chunk: {bytes(buffer[:24])!r}")
            buffer += self._more()
        line = bytes(buffer[:end])
        del buffer[: end + 1]
        return line

    def _more(self) -> bytes:
        piece = self._receive()
        if not piece:
            raise BadResponse("the body is cut short: its last chunk is missing")
        return piece


def parse_head(raw: bytes) -> Head:
    """Return the head that `raw` is: status line and fields, without the empty line.

    Raises:
        BadResponse: no status line, a NUL, more than `MAX_FIELDS` lines.
    """
    if b"\0" in raw:
        raise BadResponse("there is a NUL in the header")
    if b"\n " in raw or b"\n\t" in raw:
        raw = _FOLD.sub(b" ", raw)  # RFC 9112 5.2
    lines = raw.split(b"\n")
    status = _STATUS_LINE.match(lines[0])
    if not status:
        raise BadResponse(_describe(lines[0][:24]))
    if len(lines) - 1 > MAX_FIELDS:
        raise BadResponse(f"the header has {len(lines) - 1} lines; at most {MAX_FIELDS} are taken")
    fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        name, value = name.rstrip(b" \t"), value.strip(b" \t\r")
        if colon and _TOKEN.fullmatch(name) and not _CONTROL.search(value):
            fields.append((name, value))
    return Head(int(status[1]), fields)


def content_length(head: Head) -> int | None:
    """Return the body's announced length in bytes, None if there is none. Said twice, it has to be the same.

    Raises:
        BadResponse: no number, a negative one, or two that differ (RFC 9112 6.3).
    """
    lengths = set(head.items(b"content-length"))
    if not lengths:
        return None
    if len(lengths) > 1:
        raise BadResponse(f"the answer has Content-Lengths that differ: {b', '.join(sorted(lengths))[:60]!r}")
    length = lengths.pop()
    if not _LENGTH.fullmatch(length):
        raise BadResponse(f"the Content-Length is no length: {length[:24]!r}")
    return int(length)


def is_chunked(head: Head) -> bool:
    """Return whether the body comes in chunks (RFC 9112 7.1).

    Raises:
        BadResponse: another transfer coding; none was asked for.
    """
    codings = set(head.items(b"transfer-encoding")) - {b"identity", b""}
    if not codings:
        return False
    if codings != {b"chunked"}:
        raise BadResponse(f"a transfer coding that nobody asked for: {b', '.join(sorted(codings))[:60]!r}")
    return True


def _describe(start: bytes) -> str:
    if start[:2] in {b"\x15\x03", b"\x16\x03"}:
        return "the server speaks TLS where plain HTTP was asked for"
    if start.startswith(b"PRI * HTTP/2") or (start[:2] == b"\0\0" and start[3:4] in {b"\x04", b"\x07"}):
        return "the server speaks HTTP/2 to a request in HTTP/1.1"
    return f"the answer is no HTTP; it starts with {start!r}"

"""Pure: undoing Content-Encoding (RFC 9110 8.4) piece by piece, no layer ever giving more than the limit.

Servers often announce the wrong encoding, so two cases are read more leniently than browsers and curl do. A body that
is announced as gzip but is not is taken as it is. A body that is still gzip after all announced layers are undone is
unpacked once more: no feed begins with gzip's magic.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import chain
from typing import Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


ACCEPT_ENCODING = "gzip, deflate, br, zstd"
"""The encodings that we offer, and can undo."""

MAX_LAYERS = 3
"""The most encodings that are undone one after the other."""

MAX_MEMBERS = 1000
"""Members of a gzip body, or frames of a zstd one. Empty ones cost time and give nothing."""

FREE_BYTES = 512 * 1024
"""Bytes that any decoded body may hold. Before a body holds more, `before_large` is called."""

_PIECE_BYTES = 128 * 1024
"""About how much a layer gives at a time, and so how much of a bomb is in memory when it is noticed."""

OVERHEAD_BYTES = 65536
"""What an encoding may add to a body that does not compress, garbage after its end included."""

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW_LOG = 23
"""8 MiB: the most that a body's zstd frame may ask its reader to remember (RFC 9659)."""

_BROKEN = (zlib.error, brotli.error, zstd.ZstdError)


class BodyTooLarge(Exception):
    """The decoded body exceeds the limit."""


class BodyBroken(Exception):
    """The body is not what its encoding announces, or it is cut short."""


class _Decoder(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` adds, in bounded pieces."""

    def is_complete(self) -> bool:
        """Return whether the end was reached."""


def decode_body(
    chunks: Iterable[bytes], content_encoding: str, limit: int, before_large: Callable[[], None] = lambda: None
) -> tuple[bytes, int]:
    """Return the decoded body and the number of bytes that came over the wire.

    A compression bomb is unpacked only up to the limit, which counts the bytes that each layer gives. `before_large`
    is called once, before more than `FREE_BYTES` are held.

    Raises:
        BodyTooLarge: more than `limit` bytes.
        BodyBroken: an unknown encoding, more than `MAX_LAYERS` of them, garbage, or a stream without its end.
    """
    wire = 0

    def count_wire() -> Iterator[bytes]:
        nonlocal wire
        for chunk in chunks:
            wire += len(chunk)
            if wire > limit + OVERHEAD_BYTES:
                raise BodyTooLarge(f"the body exceeds {limit} bytes ({wire} on the wire so far)")
            yield chunk

    pieces = _undo_all(_names(content_encoding), count_wire(), limit)
    body, size, asked = BytesIO(), 0, False
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise BodyTooLarge(f"the body exceeds {limit} bytes ({wire} on the wire, {size} decoded, so far)")
        if size > FREE_BYTES and not asked:
            before_large()
            asked = True
        body.write(piece)
    return body.getvalue(), wire  # copies nothing: the buffer itself becomes the value


def _names(content_encoding: str) -> list[str]:
    names = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in names if name and name != "identity"]
    if len(names) > MAX_LAYERS:
        raise BodyBroken(f"the body is encoded {len(names)} times; {MAX_LAYERS} layers are undone")
    return names


def _undo_all(names: list[str], pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    for name in reversed(names):
        pieces = _undo(name, pieces, limit)
    if len(names) == MAX_LAYERS:
        return pieces
    start, pieces = _look_ahead(pieces)
    return _undo("gzip", pieces, limit) if start.startswith(_GZIP_MAGIC) else pieces


def _undo(name: str, pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    make = _DECODERS.get(name)
    if make is None:
        raise BodyBroken(f"the content encoding {name[:40]!r} was not offered ({ACCEPT_ENCODING})")
    start, pieces = _look_ahead(pieces)
    if name in {"gzip", "x-gzip"} and not start.startswith(_GZIP_MAGIC):
        return pieces
    return _run(make(start), name, pieces, limit)


def _look_ahead(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first two bytes or more, if there are so many, and all pieces, those included."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= 2:
            break
    return start, chain([start] if start else [], pieces)


def _run(decoder: _Decoder, name: str, pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    given = taken = 0
    try:
        for piece in pieces:
            taken += len(piece)
            for decoded in decoder.decode(piece):
                given += len(decoded)
                if given > limit + OVERHEAD_BYTES:
                    raise BodyTooLarge(f"the body exceeds {limit} bytes (its {name} layer gave {given} so far)")
                yield decoded
    except _BROKEN as error:
        raise BodyBroken(f"the body is no {name} stream: {error}") from error
    if taken and not decoder.is_complete():
        raise BodyBroken(f"the {name} stream is cut short")


class _Gzip:
    """All members one after the other (RFC 1952 2.2); garbage after the last is ignored."""

    def __init__(self, _: bytes) -> None:
        self._stream = _inflate(zlib.MAX_WBITS | 16)
        self._members = 1
        self._rest = b""

    def decode(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        while data:
            if self._stream.eof and not self._next_member(data):
                return
            yield self._stream.decompress(data, _PIECE_BYTES)
            data = self._stream.unused_data or self._stream.unconsumed_tail

    def is_complete(self) -> bool:
        return self._stream.eof

    def _next_member(self, data: bytes) -> bool:
        if data == _GZIP_MAGIC[:1]:
            self._rest = data  # perhaps half of the next member's magic
            return False
        if not data.startswith(_GZIP_MAGIC):
            return False
        self._members = _count_member(self._members)
        self._stream = _inflate(zlib.MAX_WBITS | 16)
        return True


class _Deflate:
    """RFC 9110 8.4.1.2 says zlib, but servers also send raw deflate; a zlib header starts with 0x?8.

    Garbage after the end is ignored.
    """

    def __init__(self, start: bytes) -> None:
        self._stream = _inflate(zlib.MAX_WBITS if start[:1] and start[0] & 0x0F == 8 else -zlib.MAX_WBITS)

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data and not self._stream.eof:
            yield self._stream.decompress(data, _PIECE_BYTES)
            data = self._stream.unconsumed_tail

    def is_complete(self) -> bool:
        return self._stream.eof


class _Brotli:
    """RFC 7932; the large window of later versions stays off, so a reader remembers 16 MiB at most."""

    def __init__(self, _: bytes) -> None:
        self._stream = brotli.Decompressor()

    def decode(self, data: bytes) -> Iterator[bytes]:
        if data and self._stream.is_finished():  # within one call the library does not forgive it either
            raise BodyBroken("there are bytes behind the end of the br stream")
        yield self._stream.process(data, output_buffer_limit=_PIECE_BYTES)
        while not self._stream.can_accept_more_data():
            yield self._stream.process(b"", output_buffer_limit=_PIECE_BYTES)

    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())


class _Zstd:
    """All frames one after the other (RFC 8878 3), their windows bounded; garbage after the last is ignored."""

    def __init__(self, _: bytes) -> None:
        self._frames = 1
        self._rest = b""
        self._stream = self._open()

    def decode(self, data: bytes) -> Iterator[bytes]:
        data, self._rest = self._rest + data, b""
        while data or not (self._stream.eof or self._stream.needs_input):
            if self._stream.eof and not self._next_frame(data):
                return
            yield self._stream.decompress(data, _PIECE_BYTES)
            data = self._stream.unused_data if self._stream.eof else b""

    def is_complete(self) -> bool:
        return bool(self._stream.eof)

    def _next_frame(self, data: bytes) -> bool:
        if len(data) < len(_ZSTD_MAGIC) and _ZSTD_MAGIC.startswith(data):
            self._rest = data  # perhaps a part of the next frame's magic
            return False
        if not data.startswith(_ZSTD_MAGIC):
            return False
        self._frames = _count_member(self._frames)
        self._stream = self._open()
        return True

    @staticmethod
    def _open() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})


def _inflate(window: int) -> zlib._Decompress:
    return zlib.decompressobj(wbits=window)


def _count_member(members: int) -> int:
    if members == MAX_MEMBERS:
        raise BodyBroken(f"the body is in more than {MAX_MEMBERS} parts")
    return members + 1


_DECODERS: dict[str, Callable[[bytes], _Decoder]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}

"""Pure: undoing Content-Encoding piece by piece, never holding more than the limit."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

ACCEPT_ENCODING = "gzip, deflate"
"""What we offer; an answer in anything else is undecodable."""


_OVERHEAD_BYTES = 65536
"""What an encoding may add to a body that does not compress, and garbage behind its end."""

_GZIP_MAGIC = b"\x1f\x8b"


class BodyTooLarge(Exception):
    """The decoded body exceeds the limit."""


class BodyBroken(Exception):
    """The body is not what its encoding announces, or it is cut short."""


def decode_body(chunks: Iterable[bytes], content_encoding: str, limit: int) -> tuple[bytes, int]:
    """Return the decoded body and the bytes that came over the wire.

    A compression bomb is unpacked only up to the limit, which counts decoded bytes.

    Raises:
        BodyTooLarge: more than `limit` bytes.
        BodyBroken: an unknown encoding, garbage, or a stream without its end.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    encodings = [name for name in names if name and name != "identity"]
    if len(encodings) > 1:
        raise BodyBroken(f"content encoding {content_encoding!r} is nested; one layer was offered")
    decoder = _decoder(encodings[0]) if encodings else None
    body, wire = bytearray(), 0
    for chunk in chunks:
        wire += len(chunk)
        body += decoder.decode(chunk, limit + 1 - len(body)) if decoder else chunk
        if len(body) > limit or wire > limit + _OVERHEAD_BYTES:
            raise BodyTooLarge(f"the body exceeds {limit} bytes ({wire} on the wire, {len(body)} decoded, so far)")
    if decoder and wire:
        decoder.finish()
    return bytes(body), wire


class _Inflate:
    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: zlib._Decompress | None = None
        self._rest = b""

    def decode(self, data: bytes, most: int) -> bytes:
        """Return at most `most` bytes, all members of a gzip body one after the other (RFC 1952, 2.2)."""
        if self._stream is None:
            self._stream = zlib.decompressobj(wbits=self._window(data))
        decoded, data, self._rest = bytearray(), self._rest + data, b""
        try:
            while data and len(decoded) < most:
                if self._stream.eof:
                    if data == _GZIP_MAGIC[:1]:
                        self._rest = data  # perhaps half of the next member's mark
                        break
                    if self._name != "gzip" or not data.startswith(_GZIP_MAGIC):
                        break  # garbage behind the end is let go
                    self._stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
                decoded += self._stream.decompress(data, most - len(decoded))
                data = self._stream.unused_data or self._stream.unconsumed_tail
        except zlib.error as error:
            raise BodyBroken(f"the body is no {self._name} stream: {error}") from error
        return bytes(decoded)

    def finish(self) -> None:
        if self._stream is None or not self._stream.eof:
            raise BodyBroken(f"the {self._name} stream is cut short")

    def _window(self, first: bytes) -> int:
        if self._name == "gzip":
            return zlib.MAX_WBITS | 16
        # RFC 9110 says zlib, but servers also send raw deflate; a zlib header starts with 0x?8.
        return zlib.MAX_WBITS if first[:1] and first[0] & 0x0F == 8 else -zlib.MAX_WBITS


def _decoder(name: str) -> _Inflate:
    if name in {"gzip", "x-gzip"}:
        return _Inflate("gzip")
    if name == "deflate":
        return _Inflate("deflate")
    raise BodyBroken(f"content encoding {name!r} was not offered ({ACCEPT_ENCODING})")

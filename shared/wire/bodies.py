"""Pure: what a message's body unfolds to, within bounds. Whoever may publish must not be able to fill the memory."""

from __future__ import annotations

import re
import zlib
from itertools import islice

from shared.errors import DecodeError, MessageTooLarge

DECODED_MULTIPLE = 4
"""A body may unfold to so many times what may be published (FEEDMILL_MAX_MESSAGE_BYTES): room for the result of a
feed of 10 MiB with its HTML by estimate, and none for a gzip bomb."""

# Up to the next comma or opening bracket outside of strings. It always matches, so time is linear to the text.
_TO_NEXT_VALUE = re.compile(rb'(?:[^",\[{]++|"(?:[^"\\]++|\\.?)*+(?:"|\Z))*+(?:[,\[{]|\Z)', re.DOTALL)


def unpack(body: bytes, content_encoding: str | None, most_bytes: int) -> bytes:
    """Return the JSON of a message.

    Raises:
        DecodeError: it is not packed as it says.
        MessageTooLarge: it unfolds to more than `most_bytes`.
    """
    plain, complete = unpack_beginning(body, content_encoding, most_bytes)
    if not complete and len(plain) >= most_bytes:
        raise MessageTooLarge(f"the body unfolds to more than {most_bytes} bytes")
    if not complete:
        raise DecodeError("the gzip stream is cut short")
    return plain


def unpack_beginning(body: bytes, content_encoding: str | None, most_bytes: int) -> tuple[bytes, bool]:
    """Return at most `most_bytes` of what the body unfolds to, and whether that is all of it.

    Raises:
        DecodeError: it is not packed as it says.
    """
    if not content_encoding:
        return body[:most_bytes], len(body) <= most_bytes
    if content_encoding != "gzip":
        raise DecodeError(f"content encoding {content_encoding!r} is unknown; expected gzip or none")
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = stream.decompress(body, most_bytes)
    except zlib.error as error:
        raise DecodeError(f"the body is not the gzip stream that it is announced as: {error}") from error
    return plain, stream.eof


def has_more_values(plain: bytes, most: int) -> bool:
    """Return whether this JSON has more than about `most` members and elements: each is an object, however short."""
    if plain.count(b",") + plain.count(b"[") + plain.count(b"{") <= most:  # those within texts are counted, too
        return False
    return next(islice(_TO_NEXT_VALUE.finditer(plain), most, None), None) is not None

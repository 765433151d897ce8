"""Broken feeds out of good ones: by byte, and by the pieces that feeds are made of."""

from __future__ import annotations

import random

PIECES = [
    *(b"<item>", b"</item>", b"<entry>", b"</entry>", b"<title>", b"</title>", b"<link>", b"</link>", b"<link/>"),
    *(b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?xml version='1.0' encoding='utf-16'?>", b"<!DOCTYPE rss [", b"]>"),
    *(b"<!ENTITY a '&b;&b;'>", b"&a;", b"&#0;", b"&#xD800;", b"&#x110000;", b"&amp;", b"&nbsp;", b"&", b"<", b">"),
    *(b"xml:base='http://['", b"xmlns:x='http://www.w3.org/2005/Atom'", b"xmlns='http://purl.org/rss/1.0/'"),
    *(b"<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>", b"</div></content>", b"type='base64'"),
    *(b"<pubDate>31/12/9999 25:61</pubDate>", b"<updated>yesterday</updated>", b"<author><name>", b"<media:group>"),
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\x1b$B", b"\x85", b"\r"),
    *(b"{", b"}", b"[", b'"items":[', b"1e999", b"null", b"\\ud800", b'"', b"'", b"javascript:x", b"data:,"),
]
MAX_BYTES = 65_536


def mutate(seed: bytes, chance: random.Random, other: bytes = b"") -> bytes:
    """Return `seed` with one to eight changes; `other` lends it pieces."""
    data = bytearray(seed[:MAX_BYTES])
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        length = min(int(chance.expovariate(1 / 30)), len(data) - at)
        kind = chance.randrange(8)
        if kind == 0 and data:
            data[min(at, len(data) - 1)] = chance.randrange(256)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = chance.choice(PIECES)
        elif kind == 3:
            data[at : at + length] = chance.choice(PIECES)
        elif kind == 4:
            data[at:at] = data[at : at + length] * chance.randint(1, 4)
        elif kind == 5:
            del data[at:]
        elif kind == 6 and other:
            start = chance.randrange(len(other))
            data[at:at] = other[start : start + chance.randint(1, 400)]
        else:
            _drop_a_tag(data, at)
    return bytes(data[:MAX_BYTES])


def _drop_a_tag(data: bytearray, at: int) -> None:
    start = data.find(b"<", at)
    end = data.find(b">", start)
    if 0 <= start < end:
        del data[start : end + 1]

"""Bytes to text, in the encoding that they really are in.

In this order: byte order mark; the zero bytes of UTF-16 and UTF-32; the charset of the HTTP header; the XML
declaration; UTF-8; what the letters tell (`detection`); windows-1252. A label is a claim and the bytes are the
evidence: text that is valid UTF-8 beyond ASCII is UTF-8 whatever single-byte encoding it is said to be, since text in
those hardly ever forms valid UTF-8. A western label on a text with hardly any ASCII is the default of some server: the
letters are asked then, too.
Labels mean what browsers take them to mean (WHATWG Encoding): `iso-8859-1` is windows-1252, `gb2312` is GB 18030.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from services.fetcher.parse.detection import detect

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: it begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# `<` or `{` and what follows it, XML 1.0 appendix F and RFC 4627 section 3.
_PATTERNS = (
    (re.compile(rb"[<{]\x00\x00\x00"), "utf-32-le"),
    (re.compile(rb"\x00\x00\x00[<{]"), "utf-32-be"),
    (re.compile(rb"(?:[\t\n\r ]\x00){0,50}+[<{]\x00[^\x00]\x00"), "utf-16-le"),
    (re.compile(rb"(?:\x00[\t\n\r ]){0,50}+\x00[<{]\x00[^\x00]"), "utf-16-be"),
    (re.compile(rb"\x4c\x6f\xa7\x94"), "cp037"),  # "<?xm" in EBCDIC
)

_HTTP_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9._:+-]+)", re.IGNORECASE)
_EBCDIC = re.compile(r"encoding\s*=\s*[\"'](?:ebcdic-)?(?:ibm|cp)-?0*([0-9]{2,4})[\"']", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']\s*([A-Za-z0-9._:+-]+)")

_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_WESTERN = frozenset({"cp1252", "iso8859-15"})
_MULTI_BYTE = re.compile(r"gb|big5|euc|shift|cp9[345]|johab|hz|iso2022|cp950")
# Not encodings of text as feeds have it; punycode's decoder is also quadratic.
_REFUSED = re.compile(r"punycode|idna|escape|undefined|utf-7|mbcs|oem|charmap")
_HALF_UTF8 = re.compile(rb"(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\Z")
_AS_CP1252 = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
"""What `surrogateescape` makes of a stray byte, to what the byte means in windows-1252."""

_MAX_DAMAGE = 0.01
"""A declared multi-byte encoding is believed if at most this share of the characters does not decode."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body as text, the encoding it was read in, and what was wrong with its labels."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(body: bytes, content_type: str | None) -> Decoded:
    """Return `body` as text. Never fails: bytes that fit nothing are read as windows-1252."""
    if body.startswith(codecs.BOM_UTF8):
        return Decoded(*_decode_unlabelled(body[len(codecs.BOM_UTF8) :]))
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(encoding, "replace"), encoding)
    for pattern, encoding in _PATTERNS:
        if pattern.match(body):
            return Decoded(
                *_decode_ebcdic(body) if encoding == "cp037" else (body.decode(encoding, "replace"), encoding)
            )
    labels = _labels(body, content_type)
    codecs_named = [name for name in map(_codec, labels) if name]
    text, encoding = _decode_labelled(body, codecs_named) or _decode_unlabelled(body)
    if not labels or text.isascii() or encoding in codecs_named[:1]:
        return Decoded(text, encoding)
    return Decoded(text, encoding, (f"the body is labelled {labels[0]} and read as {encoding}",))


def _labels(body: bytes, content_type: str | None) -> list[str]:
    found = [match[1] for match in [_HTTP_CHARSET.search(content_type or "")] if match]
    found += [match[1].decode("ascii") for match in [_XML_ENCODING.search(body[:1024])] if match]
    return found


def _codec(label: str) -> str | None:
    """Return Python's codec for a label, or None if there is none or the label cannot be true."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    # Without the zero bytes that were looked for above it is not UTF-16 and not UTF-32.
    if _REFUSED.search(name) or name.startswith(("utf-16", "utf-32")):
        return None
    return _SUPERSETS.get(name, name)


def _decode_labelled(body: bytes, names: list[str]) -> tuple[str, str] | None:
    if not all(map(_MULTI_BYTE.match, names)):
        names = ["utf-8", *names]
    for name in names:
        text = _try(body, name)
        if text is not None or name in _WESTERN:
            better = detect(body) if name in _WESTERN else None
            return (body.decode(better, "replace"), better) if better else (text or body.decode(name, "replace"), name)
    for name in filter(_MULTI_BYTE.match, names):
        text = body.decode(name, "replace")
        if text.count("\ufffd") <= _MAX_DAMAGE * len(text):
            return text, name
    return None


def _decode_ebcdic(body: bytes) -> tuple[str, str]:
    """Read by the declaration, which every EBCDIC has at the same places, if it names one of them."""
    found = _EBCDIC.search(body[:1024].decode("cp037"))
    name = found and _codec(f"cp{int(found[1])}")
    text = _try(body, name) if name else None
    return (text, name) if name and text and text.startswith("<?xml") else (body.decode("cp037"), "cp037")


def _try(body: bytes, name: str) -> str | None:
    if name == "utf-8":  # a download that broke off within a character does not make the rest of it another encoding
        body = body[:-3] + _HALF_UTF8.sub(b"", body[-3:])
    try:
        return body.decode(name)
    except (UnicodeError, LookupError):  # LookupError: a codec that is not one of text (`hex`, `zip`)
        return None


def _decode_unlabelled(body: bytes) -> tuple[str, str]:
    """Read as UTF-8, stray bytes in it as windows-1252; or else the whole as what its letters tell."""
    text = body.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if 2 * damaged > beyond_ascii:
        name = detect(body) or "cp1252"
        return body.decode(name, "replace"), name
    # An error handler of our own would be called a million times for 10 MB.
    return body.decode("utf-8", "surrogateescape").translate(_AS_CP1252) if damaged else text, "utf-8"

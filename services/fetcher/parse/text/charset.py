"""Bytes to text, in their true encoding, which is often not the one that the labels name.

The first of these that applies: the byte order mark; the zero bytes of UTF-16 and UTF-32; valid UTF-8 beyond ASCII; the
charset of the HTTP header; the XML declaration; UTF-8 with stray bytes; `detect` (frequent letters); windows-1252.

- Valid UTF-8 has priority over labels, since hardly any text in another encoding is valid UTF-8. Only if a body has at
  most three characters beyond ASCII and the label names a fitting multi-byte encoding, both readings are compared.
- A western label on a text with hardly any ASCII is the default of some server: then `detect` decides.
- Labels mean what they mean to browsers (WHATWG Encoding): `iso-8859-1` is windows-1252, `gb2312` is GB 18030.
- `detect` guesses only for texts with hardly any ASCII; mostly ASCII means a western text, and windows-1252 fits.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

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
_WINDOWS = re.compile(r"^(?:windows|win|dos|cp)-?(?=[0-9]{3,4}$)")
_ORDER = re.compile("-[ie]$")
"""The direction in which Hebrew is stored (`iso-8859-8-i`); the letters are the same."""
_WESTERN = frozenset({"cp1252", "iso8859-15"})
_MULTI_BYTE = re.compile(r"gb|big5|euc|shift|cp9[345]|johab|hz|iso2022|cp950")
# Not encodings that feeds use; punycode's decoder is also quadratic.
_REFUSED = re.compile(r"punycode|idna|escape|undefined|utf-7|mbcs|oem|charmap")
_HALF_UTF8 = re.compile(rb"(?:[\xc2-\xf4]|[\xe0-\xf4][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{2})\Z")
_AS_CP1252 = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}
"""From the character that `surrogateescape` makes of a stray byte to the byte's character in windows-1252."""

_MAX_DAMAGE = 0.01
"""A declared multi-byte encoding is used if at most this share of the characters does not decode."""

_CERTAIN_CHARS = 4
"""So many characters beyond ASCII are not valid UTF-8 by accident. Of all pieces of four characters of the texts in
`test_charset`, in multi-byte encodings, none is valid UTF-8; of the pieces of two characters 1 in 200 is."""
_MANY_CHARS = 20
_STRAY_SHARE = 0.05
"""A body with `_MANY_CHARS` beyond ASCII is UTF-8 in spite of its label if at most this share is stray bytes."""

_ESCAPES = re.compile(rb"\x1b\$[@B]")
"""ISO-2022-JP: bytes of ASCII only, and a character that XML and JSON exclude."""
_LATIN_IN_WORD = re.compile(r"[a-zA-Z][\xc0-\u024f]|[\xc0-\u024f][a-zA-Z]")
_RARE = re.compile("[\u0180-\u036f]")
"""Letters that hardly stand alone."""

SAMPLE_BYTES = 16_384
"""`detect` reads so many bytes, from the first one beyond ASCII on. So a guess costs some 15 ms at most."""

MIN_SHARE_BEYOND_ASCII = 0.25
"""The least share of letters beyond ASCII for a guess. Western languages have 0.1 at most, all others nearly 1."""

MIN_LETTERS = 20
"""The least number of letters beyond ASCII for a guess: fewer prove nothing."""

MIN_COMMON = 0.35
"""The share of a language's most frequent letters beyond ASCII. Running text has 0.4 (Chinese) to 0.95."""

_MARKUP = re.compile(rb"<[^<>]*+>|&[#\w]{1,10};|https?:[\x21-\x7e]*+")
_ASCII_LETTERS = re.compile(rb"[a-zA-Z]")
_BEYOND = re.compile(rb"[\x80-\xff]")

_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшюі"
_KANA = "".join(map(chr, [*range(0x3041, 0x3097), *range(0x30A1, 0x30FB), 0x30FC]))
_HANGUL = "이다는을의에가고하지로도한서사기리시인자어대나해은를보정일과있수스아라부전으게들제장그주원성구상"
_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心"
    "本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心"
    "本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世"
)

_CANDIDATES: tuple[tuple[str, frozenset[str]], ...] = (
    ("cp949", frozenset(_HANGUL)),
    ("euc_jp", frozenset(_KANA)),
    ("cp932", frozenset(_KANA)),
    ("gb18030", frozenset(_SIMPLIFIED)),
    ("big5hkscs", frozenset(_TRADITIONAL)),
    ("cp1251", frozenset(_CYRILLIC)),
    ("koi8-u", frozenset(_CYRILLIC)),
    ("iso8859-5", frozenset(_CYRILLIC)),
    ("cp866", frozenset(_CYRILLIC)),
    ("mac-cyrillic", frozenset(_CYRILLIC)),
    ("cp1253", frozenset("αοιετσνηυρπκμλςωόίάή")),
    ("cp1255", frozenset("יוהלאמרתבשנכדעקפחגםץן")),
    ("cp1256", frozenset("اليمونتربةعدسفهكحقجأ")),
    ("cp874", frozenset("านรอกเงมยลวดสตทบคปหพ่้ัีิ")),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body as text, its encoding, and warnings about wrong labels."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(body: bytes, content_type: str | None) -> Decoded:
    """Return `body` as text. Never fails: bytes that no encoding fits are read as windows-1252."""
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
    name = next(filter(None, map(_lookup, (label, *_spellings(label.lower())))), None)
    # Without the zero bytes that were looked for above it is not UTF-16 and not UTF-32.
    if not name or _REFUSED.search(name) or name.startswith(("utf-16", "utf-32")):
        return None
    return _SUPERSETS.get(name, name)


def _lookup(label: str) -> str | None:
    try:
        return codecs.lookup(label).name
    except LookupError:
        return None


def _spellings(label: str) -> tuple[str, ...]:
    """Return other spellings of a label: `x-sjis`, `windows-31j`, `win-1251`, `iso-8859-8-i`."""
    bare = label.removeprefix("x-").removeprefix("x-").replace("31j", "932")
    return bare, _WINDOWS.sub("cp", bare), _ORDER.sub("", bare)


def _decode_labelled(body: bytes, names: list[str]) -> tuple[str, str] | None:
    if body.isascii():
        if _ESCAPES.search(body):
            names = [*[name for name in names if name.startswith("iso2022")], "iso2022_jp_2", *names]
        elif not all(map(_MULTI_BYTE.match, names)):
            names = ["utf-8", *names]
    elif (text := _utf8(body, names)) is not None:
        return text, "utf-8"
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


def _utf8(body: bytes, names: list[str]) -> str | None:
    """Return a body beyond ASCII as text if it is UTF-8 in spite of its labels, else None."""
    text = _try(body, "utf-8")
    if text is None:
        damaged = body.decode("utf-8", "replace")
        beyond = _count_beyond_ascii(damaged)
        is_utf8 = beyond >= _MANY_CHARS and _count_errors(damaged, body) <= _STRAY_SHARE * beyond
        return _with_strays(body) if is_utf8 else None
    name = next(filter(_MULTI_BYTE.match, names), None)
    if not name or _count_beyond_ascii(text) >= _CERTAIN_CHARS or _LATIN_IN_WORD.search(text):
        return text
    other = _try(body, name)
    return None if other and (more_common(other, text, name) or _RARE.search(text)) else text


def _count_errors(text: str, body: bytes) -> int:
    """Return how many U+FFFD in `text` stand for bytes that are not UTF-8."""
    return text.count("\ufffd") - body.count("\ufffd".encode())


def _count_beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _decode_ebcdic(body: bytes) -> tuple[str, str]:
    """Decode by the XML declaration if it names an EBCDIC; its characters are the same in all of them."""
    found = _EBCDIC.search(body[:1024].decode("cp037"))
    name = found and _codec(f"cp{int(found[1])}")
    text = _try(body, name) if name else None
    return (text, name) if name and text and text.startswith("<?xml") else (body.decode("cp037"), "cp037")


def _try(body: bytes, name: str) -> str | None:
    if name == "utf-8":  # a download may break off within a character
        body = body[:-3] + _HALF_UTF8.sub(b"", body[-3:])
    try:
        return body.decode(name)
    except (UnicodeError, LookupError):  # LookupError: a codec that is not one of text (`hex`, `zip`)
        return None


def _decode_unlabelled(body: bytes) -> tuple[str, str]:
    """Read as UTF-8 with stray bytes in windows-1252, or else in the encoding that `detect` returns."""
    text = body.decode("utf-8", "replace")
    damaged = _count_errors(text, body)
    if 2 * damaged > _count_beyond_ascii(text):
        name = detect(body) or "cp1252"
        return body.decode(name, "replace"), name
    return _with_strays(body) if damaged else text, "utf-8"


def _with_strays(body: bytes) -> str:
    """Return UTF-8 with stray bytes in windows-1252; an error handler would be called for each byte."""
    return body.decode("utf-8", "surrogateescape").translate(_AS_CP1252)


def detect(body: bytes) -> str | None:
    """Return Python's name of the most likely encoding of a body that is not UTF-8; None for a western one."""
    first = _BEYOND.search(body)
    if not first:
        return None
    start = body.rfind(b"<", 0, first.start()) + 1
    sample = _MARKUP.sub(b" ", body[start : start + SAMPLE_BYTES])
    beyond = len(_BEYOND.findall(sample))
    letters = beyond + len(_ASCII_LETTERS.findall(sample))
    if beyond < MIN_LETTERS or beyond < MIN_SHARE_BEYOND_ASCII * letters:
        return None
    shares = {name: _share(sample, name, common) for name, common in _CANDIDATES}
    best = max(shares, key=shares.__getitem__)  # the first of equals
    return best if shares[best] >= MIN_COMMON else None


def more_common(text: str, other: str, name: str) -> bool:
    """Return whether `text` has more of the letters that are common in the encoding `name` than `other` has."""
    common = next((letters for candidate, letters in _CANDIDATES if candidate == name), frozenset[str]())
    return _common_share(text, common) > _common_share(other, common)


def _share(sample: bytes, name: str, common: frozenset[str]) -> float:
    """Return the share of the most common letters beyond ASCII; 0 if the sample is not in this encoding."""
    try:
        text = codecs.getincrementaldecoder(name)("strict").decode(sample)
    except UnicodeError:
        return 0.0
    return _common_share(text, common)


def _common_share(text: str, common: frozenset[str]) -> float:
    beyond = [char for char in text if char > "\x7f"]
    return sum(map(common.__contains__, beyond)) / len(beyond) if beyond else 0.0

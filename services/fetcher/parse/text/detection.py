"""What encoding a text is in that does not say so, or says so wrongly: by the letters that its language uses most.

Only where hardly a text is ASCII: what is mostly ASCII is western, and windows-1252 is right for it. Why this is no
library: docs/explanation/decisions.md.
"""

from __future__ import annotations

import codecs
import re

SAMPLE_BYTES = 16_384
"""From the first byte beyond ASCII on; the cost of a guess is bounded by it, some 15 ms."""

MIN_SHARE_BEYOND_ASCII = 0.25
"""Of the letters. In western languages it is one in ten at most, in all others nearly all."""

MIN_LETTERS = 20
"""Beyond ASCII. A guess from less is a guess."""

MIN_COMMON = 0.35
"""Of what is beyond ASCII, the letters that the language uses most. Running text has 0.4 (Chinese) to 0.95."""

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


def detect(body: bytes) -> str | None:
    """Return Python's name of the encoding that a body, which is no UTF-8, is most likely in; None: a western one."""
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
    """Return how much of what is beyond ASCII the most common letters are; 0 if it is not in this encoding at all."""
    try:
        text = codecs.getincrementaldecoder(name)("strict").decode(sample)
    except UnicodeError:
        return 0.0
    return _common_share(text, common)


def _common_share(text: str, common: frozenset[str]) -> float:
    beyond = [char for char in text if char > "\x7f"]
    return sum(map(common.__contains__, beyond)) / len(beyond) if beyond else 0.0

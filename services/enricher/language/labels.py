"""Pure: the language that a feed claims, as an ISO 639-1 code."""

from __future__ import annotations

import re

_NAMES = """
af afr afrikaans|ar ara arabic|az aze azerbaijani|be bel belarusian|bg bul bulgarian|bn ben bengali|bs bos bosnian
ca cat catalan|cs ces czech|cs cze čeština|cy cym welsh|da dan danish|da dan dansk|de deu german|de ger deutsch
el ell greek|el gre ελληνικά|en eng english|eo epo esperanto|es spa spanish|es spa español|et est estonian
eu eus basque|fa fas persian|fa per farsi|fi fin finnish|fi fin suomi|fr fra french|fr fre français|ga gle irish
gl glg galician|gu guj gujarati|he heb hebrew|hi hin hindi|hr hrv croatian|hr hrv hrvatski|hu hun hungarian
hu hun magyar|hy hye armenian|id ind indonesian|is isl icelandic|it ita italian|it ita italiano|ja jpn japanese
ja jpn 日本語|ka kat georgian|kk kaz kazakh|kn kan kannada|ko kor korean|ko kor 한국어|lt lit lithuanian
lv lav latvian|mk mkd macedonian|ml mal malayalam|mr mar marathi|ms msa malay|ms may malay|ne nep nepali
nl nld dutch|nl dut nederlands|no nor norwegian|no nob norsk|no nno nynorsk|pa pan punjabi|pl pol polish
pl pol polski|pt por portuguese|pt por português|ro ron romanian|ro rum română|ru rus russian|ru rus русский
sk slk slovak|sk slo slovenčina|sl slv slovenian|sq sqi albanian|sr srp serbian|sv swe swedish|sv swe svenska
sw swa swahili|ta tam tamil|te tel telugu|th tha thai|tl fil filipino|tr tur turkish|tr tur türkçe|uk ukr ukrainian
uk ukr українська|ur urd urdu|uz uzb uzbek|vi vie vietnamese|zh zho chinese|zh chi 中文|zh cmn mandarin
"""
_ROWS = [row.split() for row in _NAMES.replace("\n", "|").split("|") if row]
_CODES = {name: code for code, *names in _ROWS for name in names}
_FORMER = {"iw": "he", "in": "id", "nb": "no", "nn": "no", "sh": "sr", "mo": "ro"}
_SUBTAG = re.compile(r"[^\W\d_]+")


def read_label(label: str | None) -> str | None:
    """Return the code of `en-US`, `pt_BR`, `deu`, `English`; None where it is none of them."""
    found = _SUBTAG.match((label or "")[:40].strip().lower())
    if not found:
        return None
    first = found[0]
    return _FORMER.get(first, first) if len(first) == 2 else _CODES.get(first)

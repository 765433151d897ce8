"""Pure: the words of a text, as they are compared: without case, punctuation and width."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_APOSTROPHES = re.compile("['’‘ʼ`´\u00ad\u200b-\u200f\u2060\ufeff]")
"""Written or not, straight or curly; and characters that are not seen."""

_HOURS, _MINUTES = r"(?<![\d.,:/-])(?:[01]?\d|2[0-3])", r"[0-5]\d(?![\d.:/-]\d|\d)"
_CLOCK = rf"{_HOURS}(?::{_MINUTES}|\s?[h時时点]\s?{_MINUTES}\s?分?|\.{_MINUTES}(?=\s*(?:Uhr|h)\b))"
_DATE = (
    r"(?:\d{1,2}\.?\s+(?:de\s+)?[^\W\d]+\.?\s+(?:de\s+)?\d{4}|\d{4}年\d{1,2}月\d{1,2}日"
    r"|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})"
)
_STAMP = re.compile(rf"(?:{_DATE}[^\w]{{0,3}}(?:[^\W\d]{{1,3}}\s+){{0,2}})?{_CLOCK}")
"""A clock time, and the whole date before it."""

_DIGIT = re.compile(r"\d")

SPACELESS = "\u0e00"
"""Scripts without spaces begin here."""

STAMPED = 120
"""Characters of a text's beginning in which such is when a site published it."""

_TOKENS = re.compile(
    r"\b[A-ZΑ-ΩА-Я]{1,3}\d+\b"  # of a road, a flight, a model
    "|[^\\W\\d_\u0900-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
    r"|\d{1,2}[h時时点]\d{2}分?(?!\d)"
    r"|\d+(?:[.,:/-]\d+)*"
    # Scripts without spaces: a character is a word; of Thai, Lao, Burmese and Khmer a letter and its signs.
    "|[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[\u0e40-\u0e44\u0ec0-\u0ec4]?[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
    "[\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3]*"
    # India's: their vowel signs are no letters to `re`.
    "|[\u0900-\u0963\u0970-\u0dff]+"
    r"|[.!?:。！？]"
)
_ASCII_TOKENS = re.compile(r"\b[A-Z]{1,3}\d+\b|[a-zA-Z]+|\d{1,2}h\d{2}(?!\d)|\d+(?:[.,:/-]\d+)*|[.!?:]", re.ASCII)
"""The same for texts in ASCII: their classes are small."""
_ENDS = frozenset(".!?:。！？")
_THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")

CALENDAR = {
    word: f"@{number}"
    for number, words in enumerate(
        (
            "monday mon montag lundi lunes lunedì segunda maandag понедельник måndag poniedziałek senin"
            " pazartesi सोमवार 월요일 الاثنين poniedziałku понеділок",
            "tuesday tue tues dienstag mardi martes martedì terça dinsdag вторник tisdag wtorek"
            " selasa salı मंगलवार 화요일 الثلاثاء wtorku вівторок",
            "wednesday wed mittwoch mercredi miércoles mercoledì quarta woensdag среда среду onsdag środa"
            " rabu çarşamba बुधवार 수요일 الأربعاء środę середу",
            "thursday thu thurs donnerstag jeudi jueves giovedì quinta donderdag четверг torsdag czwartek"
            " kamis perşembe गुरुवार 목요일 الخميس czwartku четвер",
            "friday fri freitag vendredi viernes venerdì sexta vrijdag пятница пятницу fredag piątek"
            " jumat cuma शुक्रवार 금요일 الجمعة piątku пятницю",
            "saturday samstag sonnabend samedi sábado sabato zaterdag суббота субботу lördag sobota sabtu"
            " cumartesi शनिवार 토요일 السبت sobotę суботу",
            "sunday sonntag dimanche domingo domenica zondag воскресенье söndag niedziela minggu"
            " pazar रविवार 일요일 الأحد niedzielę неділю",
            "january jan januar janvier enero gennaio janeiro januari января январь styczeń stycznia ocak जनवरी يناير",
            "february feb februar février febrero febbraio fevereiro februari февраля февраль"
            " luty lutego şubat फरवरी فبراير",
            "march märz mars marzo março maart марта март marzec marca maret mart मार्च مارس",
            "april apr avril abril aprile апреля апрель kwiecień kwietnia nisan अप्रैल أبريل",
            "may mai mayo maggio maio mei мая май maj maja mayıs मई مايو",
            "june jun juni juin junio giugno junho июня июнь czerwiec czerwca haziran जून يونيو",
            "july jul juli juillet julio luglio julho июля июль lipiec lipca temmuz जुलाई يوليو",
            "august aug août agosto augustus augusti августа август sierpień sierpnia agustus ağustos अगस्त أغسطس",
            "september sept sep septembre septiembre settembre setembro сентября сентябрь"
            " wrzesień września eylül सितंबर سبتمبر",
            "october oct oktober octobre octubre ottobre outubro октября октябрь"
            " październik października ekim अक्टूबर أكتوبر",
            "november nov novembre noviembre novembro ноября ноябрь listopad listopada kasım नवंबर نوفمبر",
            "december dec dezember décembre diciembre dicembre dezembro desember декабря декабрь"
            " grudzień grudnia aralık दिसंबर ديسمبر",
        )
    )
    for word in words.split()
}
"""Names of days and months, in the languages that feeds are mostly in."""

_NUMBERS = {
    word: str(number)
    for number, words in enumerate(
        (
            "two zwei deux dos due twee два 二 两 兩",
            "three drei trois tres três tre drie три 三 ثلاث ثلاثة",
            "four vier quatre cuatro quatro quattro четыре 四 أربع أربعة",
            "five fünf cinq cinco cinque vijf пять 五 خمس خمسة",
            "six sechs seis sei zes шесть 六 ست ستة",
            "seven sieben sept siete sete sette zeven семь 七 سبع سبعة",
            "eight acht huit ocho oito otto восемь 八 ثمان ثماني ثمانية",
            "nine neun neuf nueve nove negen девять 九 تسع تسعة",
            "ten zehn dix diez dez dieci tien десять 十 عشر عشرة",
            "eleven elf onze once undici elf одиннадцать",
            "twelve zwölf douze doce doze dodici twaalf двенадцать",
        ),
        2,
    )
    for word in words.split()
    if word not in CALENDAR
}
_MEANT = CALENDAR | _NUMBERS


class Words(NamedTuple):
    """The words of a text, in their order."""

    texts: list[str]
    """Without case. A number without separators of thousands; a day or month by its number."""
    numbers: list[int]
    """The places of numbers and dates."""
    names: list[int]
    """The places of words that are capitalised within a sentence."""


def without_stamp(text: str) -> str:
    """Return a text without the times at its beginning: each site publishes it at another one."""
    if not _DIGIT.search(text, 0, STAMPED):
        return text
    return _STAMP.sub(" ", text[:STAMPED]) + text[STAMPED:]


@lru_cache(10_000)
def is_spaceless(word: str) -> bool:
    """Whether a word is a character of a script without spaces."""
    return word >= SPACELESS and (
        word < "\u0f00"
        or "\u1000" <= word < "\u10a0"
        or "\u1780" <= word < "\u1800"
        or (len(word) == 1 and word >= "\u3005")
    )


def words_of(text: str) -> Words:
    """Return the words of a text."""
    if text.isascii():
        tokens = _ASCII_TOKENS.findall(text.replace("'", "").replace("`", ""))
    else:
        tokens = _TOKENS.findall(_APOSTROPHES.sub("", unicodedata.normalize("NFKC", text)))
    texts: list[str] = []
    numbers: list[int] = []
    names: list[int] = []
    begins = True
    for token in tokens:
        first = token[0]
        if first in _ENDS:
            begins = True
            continue
        if token[-1].isdecimal() or first.isdecimal():
            numbers.append(len(texts))
            texts.append(_THOUSANDS.sub("", token).casefold())
        else:
            folded = token.casefold()
            if folded in _MEANT:
                numbers.append(len(texts))
                folded = _MEANT[folded]
            elif folded is not token and folded != token and not begins and len(token) > 1:
                names.append(len(texts))
            texts.append(folded)
        begins = False
    return Words(texts, numbers, names)

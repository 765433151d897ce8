"""Dates with the name of a month in many languages, and East Asian dates with signs for year, month and day."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from services.fetcher.parse.dates.clock import read_clock

_LANGUAGES = """
    january february march april may june july august september october november december
    januar februar marz april mai juni juli august september oktober november dezember
    janner feber maerz april mai juni juli august september oktober november dezember
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    enero febrero marzo abril mayo junio julio agosto setiembre octubre noviembre diciembre
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
    gener febrer marc abril maig juny juliol agost setembre octubre novembre desembre
    januari februari maart april mei juni juli augustus september oktober november december
    januari februari maret april mei juni juli agustus september oktober november desember
    januari februari mars april maj juni juli augusti september oktober november december
    januar februar marts april maj juni juli august september oktober november december
    januar februar mars april mai juni juli august september oktober november desember
    tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesakuuta
        heinakuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta
    stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia
    styczen luty marzec kwiecien maj czerwiec lipiec sierpien wrzesien pazdziernik listopad grudzien
    ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince
    leden unor brezen duben kveten cerven cervenec srpen zari rijen listopad prosinec
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
    січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня
    januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december
    ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik
    ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
    ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου
        ιουλιου αυγουστου σεπτεμβριου οκτωβριου νοεμβριου δεκεμβριου
    يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر
    """
"""Twelve months each, as `simplify` writes them."""

_NAMES = _LANGUAGES.split()
_ABBREVIATED = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MORE = {"mrt": 3, "mrz": 3, "marts": 3, "febr": 2, "fev": 2, "sept": 9, "avr": 4, "iul": 7, "iun": 6, "мар": 3}

_EAST_ASIAN_DAY = re.compile(r"(\d{4})\s*[年년.]\s*(\d{1,2})\s*[月월.]\s*(\d{1,2})\s*[日일.]?(?!\d)")
_EAST_ASIAN_CLOCK = re.compile(r"(\d{1,2})\s*[時时点點시]\s*(\d{1,2})\s*[分분](?:\s*(\d{1,2})\s*[秒초])?")
_HALVES = {"午前": " am ", "上午": " am ", "오전": " am ", "午後": " pm ", "下午": " pm ", "오후": " pm "}
_VIETNAMESE_MONTH = re.compile(r"\bthang\s+(\d{1,2})\b")
_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")


def _plain(text: str) -> str:
    """Return lower case without accents, with `i` for the Turkish one without a dot."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join([c for c in folded if not unicodedata.combining(c)]).replace("ı", "i").replace("ł", "l")
    return unicodedata.normalize("NFC", bare)  # Hangul is put together again


def _by_name() -> dict[str, int]:
    """Return the month of each name, and of each beginning that only names of one month share."""
    beginnings: dict[str, set[int]] = {}
    for at, name in enumerate(map(_plain, _NAMES)):
        for length in range(3, len(name) + 1):
            beginnings.setdefault(name[:length], set()).add(at % 12 + 1)
    shared = {name: months.pop() for name, months in beginnings.items() if len(months) == 1}
    full = {_plain(name): at % 12 + 1 for at, name in reversed([*enumerate(_NAMES)])}
    return shared | full | {name: at + 1 for at, name in enumerate(_ABBREVIATED)} | _MORE


MONTHS = _by_name()


def simplify(text: str) -> str:
    """Return a date's text in lower case without accents, with East Asian signs replaced by western ones."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    if not text.isascii():
        for sign, half in _HALVES.items():
            text = text.replace(sign, half)
        text = _EAST_ASIAN_DAY.sub(r" \1-\2-\3 ", text)
        text = _EAST_ASIAN_CLOCK.sub(lambda m: f" {m[1]}:{m[2].zfill(2)}:{(m[3] or '0').zfill(2)} ", text)
    return _plain(text)


def read_words(text: str) -> datetime | None:
    """Return the moment of a simplified text with day, month and year; None if one of them is missing."""
    clock = read_clock(_VIETNAMESE_MONTH.sub(_month_name, text))
    found = _YEAR_FIRST.search(clock.rest)
    if found:
        return clock.on(int(found[1]), int(found[2]), int(found[3]))
    month, numbers = month_and_numbers(clock.rest)
    if not month or len(numbers) != 2:
        return None
    years = [number for number in numbers if len(number) == 4]
    if len(years) == 1:
        day = numbers[0] if numbers[1] == years[0] else numbers[1]
        return clock.on(int(years[0]), month, int(day)) if len(day) <= 2 else None
    if not years and all(len(number) <= 2 for number in numbers):
        return clock.on(full_year(numbers[1]), month, int(numbers[0]))
    return None


def month_and_numbers(text: str) -> tuple[int, list[str]]:
    """Return the month in `text`, the last one if there are several (a weekday may look like one), and all numbers."""
    tokens = _TOKEN.findall(text)
    months = [MONTHS[token] for token in tokens if token in MONTHS]
    return months[-1] if months else 0, [token for token in tokens if token.isdecimal()]


def full_year(digits: str) -> int:
    """Return the year of these digits; 69 to 99 are in the last century (POSIX)."""
    year = int(digits)
    return year if len(digits) > 2 else year + (2000 if year < 69 else 1900)


def _month_name(match: re.Match[str]) -> str:
    number = int(match[1])
    return _ABBREVIATED[number - 1] if 1 <= number <= 12 else match[0]

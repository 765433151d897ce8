"""Dates of real feeds: every tier reads the same, and some need the feed's other dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.fetcher.parse.dates import read_date
from services.fetcher.parse.dates.loose import LooseDates
from shared.wire.results import Entry
from tests.unit.parse.feeds import atom, read, rss

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""As in `feeds`."""


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


NINE = at(2026, 2, 2, 9)
DAY = at(2026, 2, 2)

WILD: list[tuple[str, datetime]] = [
    # RFC 822 and its decay
    ("Mon, 02 Feb 2026 10:00:00 +0100", NINE),
    ("Mon, 02 Feb 2026 09:00:00", NINE),
    ("Mon,02 Feb 2026 09:00:00 GMT", NINE),
    ("Monday, 02 February 2026 09:00 UTC", NINE),
    ("02 Feb 26 09:00 Z", NINE),
    ("Mon, 2 Feb 2026 9:00:00 AM GMT", NINE),
    ("Sun, 02 Feb 2026 09:00:00 +0000", NINE),  # the wrong weekday
    ("Wendesday, 2 Feb 2026 09:00", NINE),
    ("2 Feb 2026 04:00:00 EST", NINE),
    ("Mon, 02 Feb 2026 10:00 CET", NINE),
    ("Mon, 02 Feb 2026 18:00:00 JST", NINE),
    ("Mon, 02 Feb 2026 14:30:00 IST", NINE),
    ("Mon, 02 Feb 2026 19:00:00 AEST", NINE),
    ("Mon, 02 Feb 2026 12:00:00 MSK", NINE),
    ("Mon, 02 Feb 2026 10:00:00 GMT+0100 (Central European Standard Time)", NINE),
    ("Mon, 02 Feb 2026 10:00:00 UTC+1", NINE),
    ("Mon, 02 Feb 2026 14:45 +05:45", NINE),
    ("Mon Feb  2 09:00:00 2026", NINE),
    ("Mon Feb  2 01:00:00 PST 2026", NINE),
    ("Mon, 02 Feb 2026 10:00:00 Europe/Brussels", NINE),
    ("Fri, 31 Mar 2017 20:19:00 America/Los_Angeles", at(2017, 4, 1, 3, 19)),
    ("02-Feb-2026", DAY),
    ("02-Feb-26 09:00", NINE),
    ("Feb 2, 98", at(1998, 2, 2)),
    # ISO 8601 and its decay
    ("2026-02-02T09:00:00.123Z", NINE + timedelta(milliseconds=123)),
    ("2026-02-02T09:00:00,123456789Z", NINE + timedelta(microseconds=123_456)),
    ("2026-02-02T10:00:00.000+0100", NINE),
    ("2026-02-02 09:00:00", NINE),
    ("2026-02-02  10:00:00 +01:00", NINE),
    ("2026-02-02_09:00", NINE),
    ("2026-02-02T09.00.00", NINE),
    ("2026/02/02 09:00:00", NINE),
    ("2026.02.02 09:00", NINE),
    ("2026-2-2 9:00", NINE),
    ("2026-02-02T09:00Z", NINE),
    ("20260202T090000Z", NINE),
    ("20260202", DAY),
    ("20260202090000", NINE),
    ("2026-02-02T24:00:00Z", at(2026, 2, 3)),
    ("2026-02", at(2026, 2, 1)),
    ("2026-02-02 09:00:00 PM", at(2026, 2, 2, 21)),
    ("2026-02-02T09:00:00 UTC", NINE),
    # Unix time
    ("1770022800", NINE),
    ("1770022800.5", NINE + timedelta(milliseconds=500)),
    ("1770022800123", NINE + timedelta(milliseconds=123)),
    ("1770022800123456", NINE + timedelta(microseconds=123_456)),
    # Words
    ("February 2nd, 2026", DAY),
    ("March 29th, 2025", at(2025, 3, 29)),
    ("Feb. 2, 2026 at 4:00 a.m. EST", NINE),
    ("Monday, February 2, 2026 - 09:00", NINE),
    ("2. Februar 2026", DAY),
    ("Montag, 2. Februar 2026, 09:00 Uhr", NINE),
    ("Mo, 29 Mrz 2025 09:00:00 +0000", at(2025, 3, 29, 9)),
    ("29. März 2025", at(2025, 3, 29)),
    ("13. Jänner 2026", at(2026, 1, 13)),
    ("02.02.2026 09:00", NINE),
    ("2.2.26", DAY),
    ("lun., 02 févr. 2026 10:00:00 +0100", NINE),
    ("mar. 3 juin 2025", at(2025, 6, 3)),
    ("1er août 2025 à 14h30", at(2025, 8, 1, 14, 30)),
    ("lunes, 2 de febrero de 2026 09:00", NINE),
    ("Dom, 01 Ene 2026 00:00:00", at(2026, 1, 1)),
    ("lunedì 2 febbraio 2026", DAY),
    ("mar, 03 giu 2025 09:00", at(2025, 6, 3, 9)),
    ("segunda-feira, 2 de fevereiro de 2026 às 09h00", NINE),
    ("Seg, 02 Fev 2026 06:00:00 -0300", NINE),
    ("maandag 2 februari 2026 - 09:00", NINE),
    ("za 29 mrt 2025", at(2025, 3, 29)),
    ("pon., 2 lutego 2026", DAY),
    ("2 paź 2025", at(2025, 10, 2)),
    ("pondělí 2. února 2026", DAY),
    ("1. července 2025", at(2025, 7, 1)),
    ("Пн, 02 фев 2026 12:00:00 +0300", NINE),
    ("2 мая 2025 г., 09:00", at(2025, 5, 2, 9)),
    ("понеділок, 2 лютого 2026", DAY),
    ("mån 2 feb 2026 09.00", NINE),
    ("mandag den 2. marts 2025 kl. 09.00", at(2025, 3, 2, 9)),
    ("tirsdag 3. desember 2024", at(2024, 12, 3)),
    ("maanantai 2. helmikuuta 2026 klo 9.00", NINE),
    ("2 Şubat 2026 Pazartesi", DAY),
    ("2 Ağustos 2025", at(2025, 8, 2)),
    ("2026. február 2.", DAY),
    ("Δευ, 02 Φεβ 2026 09:00:00 GMT", NINE),
    ("2 Φεβρουαρίου 2026", DAY),
    ("2 februarie 2026", DAY),
    ("Senin, 2 Agustus 2025", at(2025, 8, 2)),
    ("2026年2月2日 9時00分", NINE),
    ("2026年2月2日", DAY),
    ("2026년 2월 2일 오전 9:00", NINE),
    ("2026. 2. 2.", DAY),
    ("2026/02/02(月) 09:00", NINE),
    ("3 أكتوبر 2020", at(2020, 10, 3)),
    ("3 октября 2020, 18:00 МСК", at(2020, 10, 3, 15)),
    ("ngày 2 tháng 2, 2026", DAY),
    ("２０２６年２月２日", DAY),
]


@pytest.mark.parametrize(("text", "moment"), WILD)
def test_a_wild_date_is_read(text: str, moment: datetime) -> None:
    assert read_date(text) == moment


def test_every_tier_reads_the_same_dates() -> None:
    dates = [(text, moment) for text, moment in WILD if moment > at(2024, 1, 1)]
    items = "".join(f"<item><title>{n}</title><pubDate>{text}</pubDate></item>" for n, (text, _) in enumerate(dates))
    listed = ",".join(f'{{"id":"{n}","title":"{n}","date_published":"{text}"}}' for n, (text, _) in enumerate(dates))
    bodies = {
        "strict": rss(items),
        "lenient": rss(items) + "<end>",
        "salvage": rss("") + rss(items),
        "json": f'{{"version":"https://jsonfeed.org/version/1.1","items":[{listed}]}}',
    }
    for tier, body in bodies.items():
        parsed = read(body)
        assert parsed.tier == tier
        assert [entry.published_at for entry in parsed.entries] == [moment for _, moment in dates], tier


@pytest.mark.parametrize("text", ["soon", "31 Feb 2026", "Mon, 02 Foo 2026", "32.01.2026", "2026-13-01", "week 9"])
def test_what_is_no_date_is_no_date_either(text: str) -> None:
    assert read_date(text) is None


# Dates that their feed tells


def dated(*dates: str, channel: str = "<title>t</title>") -> tuple[Entry, ...]:
    items = "".join(f"<item><title>{n}</title><pubDate>{date}</pubDate></item>" for n, date in enumerate(dates))
    return read(rss(items, channel)).entries


def test_a_date_that_fits_one_order_only_decides_for_the_feed() -> None:
    for other, moment in (("13/01/2026", at(2026, 2, 1)), ("01/13/2026", at(2026, 1, 2))):
        entry, _ = dated("01/02/2026 00:00", other)
        assert (entry.published_at, entry.flags) == (moment, ())


def test_an_order_that_leads_into_the_future_is_out() -> None:
    (entry,) = dated("02/04/2026")  # now is the first of March
    assert (entry.published_at, entry.flags) == (at(2026, 2, 4), ())
    (entry,) = dated("05/02/2026 10:00 AM")
    assert (entry.published_at, entry.flags) == (at(2026, 2, 5, 10), ())


def test_an_order_in_which_the_dates_run_decides() -> None:
    assert [e.published_at for e in dated("03/02/2025", "02/02/2025", "12/01/2025")] == [
        at(2025, 2, 3),
        at(2025, 2, 2),
        at(2025, 1, 12),
    ]
    assert dated("02/03/2025", "02/02/2025", "01/12/2025")[0].published_at == at(2025, 2, 3)


@pytest.mark.parametrize(
    ("language", "moment"),
    [
        ("", at(2025, 2, 1)),
        ("ja", at(2025, 2, 1)),
        ("fr-CA", at(2025, 2, 1)),
        ("en-CA", at(2025, 2, 1)),
        ("en-US", at(2025, 1, 2)),
        ("en", at(2025, 1, 2)),
    ],
)
def test_where_nothing_decides_the_language_does_with_a_flag(language: str, moment: datetime) -> None:
    (entry,) = dated("01/02/2025", channel=f"<title>t</title><language>{language}</language>")
    assert (entry.published_at, entry.flags) == (moment, ("date_ambiguous",))


def test_a_feed_that_contradicts_itself_is_ambiguous_where_it_is() -> None:
    flags = [entry.flags for entry in dated("13/01/2025", "01/14/2025", "01/02/2025", "02/02/2025")]
    assert flags == [(), (), ("date_ambiguous",), ()]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("today", NOW),
        ("Today, 10:30", at(2026, 3, 1, 10, 30)),
        ("now", NOW),
        ("yesterday", at(2026, 2, 28)),
        ("gestern, 18:00 Uhr", at(2026, 2, 28, 18)),
        ("aujourd'hui à 09h15", at(2026, 3, 1, 9, 15)),
        ("вчера", at(2026, 2, 28)),
        ("昨日", at(2026, 2, 28)),
        ("2 hours ago", at(2026, 3, 1, 10)),
        ("3d ago", at(2026, 2, 26, 12)),
        ("an hour ago", at(2026, 3, 1, 11)),
        ("vor 3 Tagen", at(2026, 2, 26, 12)),
        ("il y a 5 minutes", at(2026, 3, 1, 11, 55)),
        ("hace 2 semanas", at(2026, 2, 15, 12)),
        ("3時間前", at(2026, 3, 1, 9)),
        ("February 2", DAY),
        ("29 March 10:00", at(2025, 3, 29, 10)),
        ("February 2026", at(2026, 2, 1)),
    ],
)
def test_a_date_counted_from_now_or_without_a_year_is_guessed(text: str, moment: datetime) -> None:
    (entry,) = dated(text)
    assert (entry.published_at, entry.flags) == (moment, ("date_guessed",))


def test_a_guess_in_atom_is_flagged_as_well_and_a_future_clamped() -> None:
    entries = read(
        atom(
            "<entry><title>a</title><updated>today</updated></entry><entry><title>b</title><updated>13/13/2026</updated>"
            "</entry><entry><title>c</title><updated>31/12/2026</updated></entry>"
        )
    ).entries
    assert [(e.published_at, e.flags) for e in entries] == [
        (NOW, ("date_guessed",)),
        (None, ()),
        (NOW, ("date_clamped",)),
    ]


def test_the_orders_of_very_many_dates_are_decided_once() -> None:
    orders = LooseDates(["01/02/2025"] * 100_000, now=NOW, language=None)
    assert orders.read("01/02/2025") is not None

"""Day or month first: what feeds prove, what was told, and what nobody can tell."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.fetcher.parse import ParsedFeed, parse_feed
from shared.wire.jobs import DateOrder
from tests.unit.parse.feeds import NOW, URL, rss


def read_dates(*dates: str, told: DateOrder | None = None, language: str = "") -> ParsedFeed:
    items = "".join(f"<item><title>{n}</title><pubDate>{date}</pubDate></item>" for n, date in enumerate(dates))
    body = rss(items, f"<title>t</title><language>{language}</language>")
    return parse_feed(body.encode(), url=URL, content_type=None, now=NOW, date_order=told)


def days(feed: ParsedFeed) -> list[str]:
    return [f"{entry.published_at:%d %b}" if entry.published_at else "-" for entry in feed.entries]


def flags(feed: ParsedFeed) -> list[tuple[str, ...]]:
    return [entry.flags for entry in feed.entries]


@pytest.mark.parametrize(
    ("dates", "order", "first"),
    [
        (("03/04/2025 10:15", "25/04/2025 09:00"), "day", "03 Apr"),
        (("3/4/2025 4:15:00 PM", "4/25/2025 9:00:00 AM"), "month", "04 Mar"),
        (("03-04-2025", "13-04-2025"), "day", "03 Apr"),
        (("Thursday, 03/04/2025 10:15",), "day", "03 Apr"),
        (("Tuesday, 3/4/2025 10:15 AM",), "month", "04 Mar"),
        (("Donnerstag, 03/04/2025",), "day", "03 Apr"),
        (("jeudi 03/04/2025 - 10:15",), "day", "03 Apr"),
        (("mar, 04/03/2025",), "day", "04 Mar"),
        (("Thu 03/04/2025 23:30 -0500",), "day", "04 Apr"),  # the weekday is that of the feed's own zone
    ],
)
def test_a_date_that_is_possible_in_one_order_only_proves_it(
    dates: tuple[str, ...], order: DateOrder, first: str
) -> None:
    feed = read_dates(*dates)
    assert (feed.date_order, days(feed)[0]) == (order, first)
    assert set(flags(feed)) == {()}


def test_a_weekday_that_is_wrong_in_both_orders_proves_nothing() -> None:
    feed = read_dates("Saturday, 03/04/2025")
    assert (feed.date_order, flags(feed)) == (None, [("date_ambiguous",)])


def test_what_was_told_decides_where_the_dates_do_not() -> None:
    assert flags(read_dates("03/04/2025")) == [("date_ambiguous",)]
    for told, day in (("day", "03 Apr"), ("month", "04 Mar")):
        feed = read_dates("03/04/2025", told=told)  # type: ignore[arg-type]
        assert (days(feed), flags(feed), feed.date_order) == ([day], [()], None)


def test_what_was_told_is_before_the_order_of_entries_and_the_language() -> None:
    run = ("03/02/2025", "02/02/2025", "12/01/2025")
    assert days(read_dates(*run)) == ["03 Feb", "02 Feb", "12 Jan"]
    assert days(read_dates(*run, told="month")) == ["02 Mar", "02 Feb", "01 Dec"]
    assert days(read_dates("03/04/2025", told="month", language="de")) == ["04 Mar"]


def test_a_proof_is_before_what_was_told_and_is_told_anew() -> None:
    feed = read_dates("03/04/2025", "25/04/2025", told="month")
    assert (days(feed), feed.date_order) == (["03 Apr", "25 Apr"], "day")


def test_a_feed_that_contradicts_itself_proves_nothing_and_what_was_told_decides() -> None:
    feed = read_dates("13/01/2025", "01/14/2025", "01/02/2025", told="day")
    assert (days(feed), flags(feed), feed.date_order) == (["13 Jan", "14 Jan", "01 Feb"], [(), (), ()], None)


@pytest.mark.parametrize(
    ("language", "is_sure"),
    [
        *[(language, True) for language in ("de", "de-AT", "fr", "pt-BR", "es-MX", "ru", "en-GB", "en_AU")],
        *[(language, False) for language in ("", "en", "en-US", "en-CA", "fr-CA", "es-US", "ja", "zh-CN", "sw")],
    ],
)
def test_a_language_with_one_order_is_sure(language: str, is_sure: bool) -> None:
    feed = read_dates("03/04/2025", language=language)
    assert flags(feed) == [() if is_sure else ("date_ambiguous",)]
    assert feed.date_order is None, "a language is no proof"


def test_dates_in_other_forms_are_as_they_are() -> None:
    feed = read_dates("03.04.2025", "2025-04-03", "Thu, 03 Apr 2025 10:00:00 +0000", told="month")
    assert days(feed) == ["03 Apr"] * 3
    assert feed.date_order is None


def test_an_order_that_is_impossible_for_a_date_gives_way() -> None:
    feed = read_dates("13/01/2025", "01/14/2025", told="month")
    assert [entry.published_at for entry in feed.entries] == [
        datetime(2025, 1, 13, tzinfo=UTC),
        datetime(2025, 1, 14, tzinfo=UTC),
    ]

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse.dates import bound_date, from_struct, read_date
from services.fetcher.parse.dates.loose import LooseDates

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "raw",
    [
        "2026-02-02T09:00:00Z",
        "2026-02-02t09:00:00z",
        "2026-02-02T10:00:00+01:00",
        "2026-02-02T10:00:00+0100",
        "2026-02-02 09:00:00",
        "2026-02-02T09:00",
        "2026-02-02T09:00:00.000000000Z",
        "Mon, 02 Feb 2026 09:00:00 GMT",
        "Mon, 02 Feb 2026 10:00:00 +0100",
        "2 Feb 2026 04:00:00 EST",
        "02 Feb 26 09:00 UT",
        "1770022800",
        "1770022800000",
        1_770_022_800,
        1_770_022_800_000,
        1_770_022_800.0,
    ],
)
def test_a_date_is_read_in_each_of_its_forms(raw: str | float) -> None:
    moment = read_date(raw)
    assert moment == datetime(2026, 2, 2, 9, tzinfo=UTC)
    assert isinstance(moment, datetime)
    assert moment.tzinfo is UTC


def test_a_day_alone_is_its_midnight_in_utc() -> None:
    assert read_date("2026-02-02") == datetime(2026, 2, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        "  ",
        "soon",
        "2026-13-45",
        "2026-02-30T00:00:00Z",
        "Mon, 31 Feb 2026 00:00:00 GMT",
        "9" * 5000,
        float("nan"),
        float("inf"),
        10**400,
        -(10**15),
        "0001-01-01T00:00:00+23:59",
        "1 Jan 2026 00:00 +999999999999",
    ],
)
def test_what_is_no_date_is_none(raw: str | float | None) -> None:
    assert read_date(raw) is None


def test_feedparsers_time_tuple_is_utc() -> None:
    assert from_struct(time.struct_time((2026, 2, 2, 9, 0, 0, 0, 33, 0))) == datetime(2026, 2, 2, 9, tzinfo=UTC)
    assert from_struct(time.struct_time((9999, 1, 1, 0, 0, 0, 0, 1, 0))) == datetime(9999, 1, 1, tzinfo=UTC)
    assert from_struct(None) is None
    assert from_struct((1, 2)) is None
    assert from_struct((99_999, 1, 1, 0, 0, 0, 0, 1, 0)) is None
    assert from_struct((2026, 13, 1, 0, 0, 0, 0, 1, 0)) is None


def test_a_date_up_to_a_day_ahead_is_believed() -> None:
    assert bound_date(NOW + timedelta(hours=24), NOW) == (NOW + timedelta(hours=24), False)


def test_a_date_further_ahead_is_clamped_to_now() -> None:
    assert bound_date(NOW + timedelta(hours=24, seconds=1), NOW) == (NOW, True)


def test_a_date_from_before_the_web_is_none() -> None:
    assert bound_date(datetime(1970, 1, 1, tzinfo=UTC), NOW) == (None, False)
    assert bound_date(datetime(1990, 1, 1, tzinfo=UTC), NOW) == (datetime(1990, 1, 1, tzinfo=UTC), False)
    assert bound_date(None, NOW) == (None, False)


@given(st.text(alphabet="0123456789-+:/TZ ,.JanFebMGTESagoyesterday年月日", max_size=40) | st.floats() | st.integers())
def test_anything_gives_an_aware_date_or_none(raw: str | float) -> None:
    date = read_date(raw)
    if isinstance(date, str):
        reading = LooseDates([date], now=NOW, language=None).read(date)
        date = reading.moment if reading else None
    assert not isinstance(date, str)
    assert date is None or date.utcoffset() == timedelta(0)


# ISO 8601, in any mixture of its basic and its extended form

DAYS = ["2024-01-01", "20240101", "2024/01/01", "2024-W01-1", "2024W011", "2024-001", "2024001"]
TIMES = {
    "10:15:30": (10, 15, 30, 0),
    "101530": (10, 15, 30, 0),
    "10:15": (10, 15, 0, 0),
    "1015": (10, 15, 0, 0),
    "10": (10, 0, 0, 0),
    "12:35:9": (12, 35, 9, 0),
    "9:5:7": (9, 5, 7, 0),
    "10:15:30.000": (10, 15, 30, 0),
    "10:15:30,5": (10, 15, 30, 500_000),
    "101530.25": (10, 15, 30, 250_000),
    "10:15:30.1234567890": (10, 15, 30, 123_456),
    "24:00:00": (24, 0, 0, 0),
    "240000": (24, 0, 0, 0),
    "23:59:60": (23, 59, 59, 0),
}
ZONES = {
    "": 0,
    "Z": 0,
    "z": 0,
    "+02": 2,
    "+0200": 2,
    "+02:00": 2,
    "+2": 2,
    "-05:30": -5.5,
    "-00:00": 0,
    "\u221202:00": -2,
    "UTC": 0,
    "GMT+2": 2,
    "UTC+02:00": 2,
    "EST": -5,
    "+02:00[Europe/Helsinki]": 2,
}


@pytest.mark.parametrize("time_of_day", TIMES)
@pytest.mark.parametrize("zone", ZONES)
def test_year_first_every_mixture_of_forms_keeps_its_zone(time_of_day: str, zone: str) -> None:
    hour, minute, second, microsecond = TIMES[time_of_day]
    past_midnight = timedelta(hours=hour - ZONES[zone], minutes=minute, seconds=second, microseconds=microsecond)
    expected = datetime(2024, 1, 1, tzinfo=UTC) + past_midnight
    for day in DAYS:
        for between in ("T", "t", " "):
            for before_zone in ("", " "):
                text = f"{day}{between}{time_of_day}{before_zone}{zone}"
                assert read_date(text) == expected, text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01+02:00", datetime(2023, 12, 31, 22, tzinfo=UTC)),
        ("2024-01-01Z", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-W01", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-366", datetime(2024, 12, 31, tzinfo=UTC)),
        ("20240101101530+0200", datetime(2024, 1, 1, 8, 15, 30, tzinfo=UTC)),
        ("2024-01-01T10:15:30-05:00[America/New_York]", datetime(2024, 1, 1, 15, 15, 30, tzinfo=UTC)),
        ("2024-01-01 10:15:30 PM", datetime(2024, 1, 1, 22, 15, 30, tzinfo=UTC)),
        ("Mon, 01 Jan 2024 10:15:3+0200", datetime(2024, 1, 1, 8, 15, 3, tzinfo=UTC)),
        ("Mon, 01 Jan 2024 10:15:30.000+0200", datetime(2024, 1, 1, 8, 15, 30, tzinfo=UTC)),
        ("2024-000", None),
        ("2023-366", None),
        ("2024-W54-1", None),
        ("20241301T000000Z", None),
    ],
)
def test_what_else_begins_with_its_year(text: str, expected: datetime | None) -> None:
    assert read_date(text) == expected

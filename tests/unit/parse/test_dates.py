from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.fetcher.parse.date_orders import Orders
from services.fetcher.parse.dates import from_struct, read_date, settle_date

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
    assert settle_date(NOW + timedelta(hours=24), NOW) == (NOW + timedelta(hours=24), False)


def test_a_date_further_ahead_is_clamped_to_now() -> None:
    assert settle_date(NOW + timedelta(hours=24, seconds=1), NOW) == (NOW, True)


def test_a_date_from_before_the_web_is_none() -> None:
    assert settle_date(datetime(1970, 1, 1, tzinfo=UTC), NOW) == (None, False)
    assert settle_date(datetime(1990, 1, 1, tzinfo=UTC), NOW) == (datetime(1990, 1, 1, tzinfo=UTC), False)
    assert settle_date(None, NOW) == (None, False)


@given(st.text(alphabet="0123456789-+:/TZ ,.JanFebMGTESagoyesterday年月日", max_size=40) | st.floats() | st.integers())
@settings(max_examples=300, deadline=None, database=None)
def test_anything_gives_an_aware_date_or_none(raw: str | float) -> None:
    date = read_date(raw)
    if isinstance(date, str):
        reading = Orders([date], now=NOW, language=None).read(date)
        date = reading.moment if reading else None
    assert not isinstance(date, str)
    assert date is None or date.utcoffset() == timedelta(0)

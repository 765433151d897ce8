from __future__ import annotations

import pytest

from services.fetcher.http.hints import max_age_seconds, retry_after_seconds
from tests.factories import NOW


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120),
        (" 120 ", 120),
        ("0", 0),
        ("999999999999999999", 86400),
        ("Sat, 21 Nov 2026 12:30:00 GMT", 1800),
        ("Sat, 21 Nov 2026 11:30:00 GMT", 0),
        ("Wed, 21 Nov 2029 12:30:00 GMT", 86400),
        ("soon", None),
        ("3.5", 3.5),
        ("120, 120", 120),
        ("9" * 400, 86400),
        ("120 seconds", None),
        ("-5", None),
        ("", None),
        ("١٢", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_a_day(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
HOUR_LATER = "Sat, 21 Nov 2026 13:00:00 GMT"


@pytest.mark.parametrize(
    ("cache_control", "expires", "date", "seconds"),
    [
        ("public, max-age=600", None, None, 600),
        ('MAX-AGE="600"', None, None, 600),
        ("s-maxage=600", None, None, None),
        (None, HOUR_LATER, DATE, 3600),
        ("max-age=60", HOUR_LATER, DATE, 60),
        ("no-cache", HOUR_LATER, DATE, None),
        ("No-Store", HOUR_LATER, DATE, None),
        ("no-transform", HOUR_LATER, DATE, 3600),
        ("public, NO-TRANSFORM, must-revalidate, proxy-revalidate", HOUR_LATER, DATE, 3600),
        ("no-transformers, x-no-store=1", HOUR_LATER, DATE, 3600),
        ('no-cache="Set-Cookie"', HOUR_LATER, DATE, 3600),
        ('private="no-store, no-cache"', HOUR_LATER, DATE, 3600),
        ('private="x, max-age=5", max-age = "60"', HOUR_LATER, DATE, 60),
        ('ext="a \\" max-age=5", max-age=60', None, None, 60),
        ('ext="never closed, max-age=60', None, None, 60),
        ("max-age=0", HOUR_LATER, DATE, 0),
        ("no-transform, max-age=60, max-age=600", None, None, 60),
        ("max-age=60; public", None, None, 60),
        ("public max-age=60", None, None, 60),
        ("max-age=soon", HOUR_LATER, DATE, 3600),
        ("max-age", HOUR_LATER, DATE, 3600),
        ("s-maxage=600, x-max-age=5", HOUR_LATER, DATE, 3600),
        (None, HOUR_LATER, None, None),
        (None, "0", DATE, None),
        (None, DATE, HOUR_LATER, None),
        (None, None, None, None),
    ],
)
def test_freshness_is_max_age_else_expires_against_the_answers_own_date(
    cache_control: str | None, expires: str | None, date: str | None, seconds: float | None
) -> None:
    assert max_age_seconds(cache_control, expires, date) == seconds

"""How pages write moments, spans, numbers and strangers' texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from services.api.pages import pictures, words
from services.api.pages.frame import own_path


def test_a_moment_is_a_time_element_in_utc() -> None:
    at = datetime(2026, 11, 23, 8, 5, 9, tzinfo=timezone(timedelta(hours=1)))
    shown = words.moment(at)
    assert shown == (
        '<time datetime="2026-11-23T07:05:09Z" title="2026-11-23 07:05:09 UTC" data-local>2026-11-23 07:05 UTC</time>'
    )
    assert ">3 minutes ago<" in words.ago(datetime.now(UTC) - timedelta(seconds=185))
    assert ">in 2 hours<" in words.ago(datetime.now(UTC) + timedelta(hours=2, minutes=1))
    assert words.moment(None) == words.ago(None) == words.span(None) == words.number(None) == words.NOTHING


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "ftp://h/", "//h/x", "http://[", ""])
def test_only_web_addresses_become_links(url: str) -> None:
    assert "<a" not in words.link(url, "title")


def test_a_link_is_escaped_and_masked() -> None:
    shown = words.link('https://me:secret@h.example/"><script>?token=abc', "<b>\u202eevil")
    assert 'rel="noopener noreferrer nofollow"' in shown
    assert not any(part in shown for part in ("secret", "abc", "<script", "<b>", "\u202e"))


def test_a_reason_shows_commands_as_code_and_nothing_else_as_markup() -> None:
    assert words.code("run `feedmill migrate` & <wait>") == "run <code>feedmill migrate</code> &amp; &lt;wait&gt;"


@pytest.mark.parametrize(
    ("target", "led_to"),
    [
        ("/feeds?q=a", "/feeds?q=a"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
        ("/login?next=/login", "/"),
    ],
)
def test_a_login_leads_to_pages_of_ours_only(target: str, led_to: str) -> None:
    assert own_path(target) == led_to


def test_bars_are_stacked_and_the_highest_fills_the_picture() -> None:
    bars = pictures.stack([(1, 1), (4, 0), (0, 0)])
    assert [(bar.kind, bar.y, bar.height) for bar in bars] == [(0, 72.0, 24.0), (1, 48.0, 24.0), (0, 0.0, 96.0)]
    assert max(bar.x + bar.width for bar in bars) <= pictures.WIDTH
    assert pictures.stack([(0,)]) == pictures.stack([]) == []


def test_a_line_has_gaps_and_ends_at_the_right_edge() -> None:
    assert pictures.line([0, 2, None, 1], 5) == "M120.0 96.0L240.0 0.0M480.0 48.0"
    assert pictures.line([], 5) == ""

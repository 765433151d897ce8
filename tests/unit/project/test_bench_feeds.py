"""The benchmarks' feeds are feeds: our reader takes them as they are, and a tick changes no article."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.feeds.site import Site
from benchmarks.feeds.styles import STYLES, Style
from local.farm.http import Request
from services.fetcher.parse import ParsedFeed, parse_feed

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_every_article_of_a_style_is_read_without_complaint(style: Style) -> None:
    site = make_site(style)
    found = read(site, style)
    assert {entry.url for entry in found.entries} == set(site.urls)
    assert (found.tier in {"strict", "json"}, found.warnings, len(site.urls)) == (True, (), 8)
    site.publish(2)
    later = read(site, style)
    assert [entry.url for entry in later.entries if entry not in found.entries] == site.urls[:-3:-1]
    assert len(later.entries) == 8


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_tick_changes_the_document_and_no_article(style: Style) -> None:
    site = make_site(style)
    body, found = get(site), read(site, style)
    site.tick()
    assert get(site) != body
    assert read(site, style).entries == found.entries


def make_site(style: Style) -> Site:
    return Site("site-1", style, entries=8, text_length=150, edition="test", opened_at=NOW - timedelta(days=1))


def get(site: Site) -> bytes:
    return site.answer(Request("127.0.0.2", 80, "GET", "/", {}, keep_alive=True)).body


def read(site: Site, style: Style) -> ParsedFeed:
    return parse_feed(get(site), url="http://127.0.0.2/", content_type=style.content_type, now=NOW)

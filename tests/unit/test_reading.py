from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from services.cli.reading import ReadingFailed, as_json, read_source, show
from shared.messages import Outcome
from tests.unit.parse.feeds import atom

FEED = atom(
    '<link rel="hub" href="https://hub.example/"/><link href="https://example.org/"/>'
    "<entry><id>1</id><title>One</title><link href='/1'/><updated>today</updated></entry>"
)


KEYS = (
    "entry_id url title body content_quality published_at updated_at author categories enclosures language md5 "
    "content_hash flags"
)


def read_file(path: Path, content: bytes) -> dict[str, Any]:
    path.write_bytes(content)
    return as_json(read_source(str(path), base_url=None, content_type=None))


def test_a_feed_as_json_has_the_keys_that_were_promised(tmp_path: Path) -> None:
    found = read_file(tmp_path / "feed.xml", FEED.encode())
    assert list(found) == ["feed", "tier", "warnings", "entries"]
    assert found["feed"] == {
        "title": "News",
        "site_url": "https://example.org/",
        "language": None,
        "ttl_seconds": None,
        "skip_hours": [],
        "skip_days": [],
        "self_url": None,
        "hubs": ["https://hub.example/"],
        "icon": None,
        "image": None,
        "update_period": None,
        "update_frequency": None,
        "update_base": None,
    }
    assert " ".join(found["entries"][0]) == KEYS


def test_html_is_shown_if_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_KEEP_HTML", "true")
    feed = atom("<entry><id>1</id><title>One</title><summary type='html'>&lt;p&gt;a&lt;/p&gt;</summary></entry>")
    assert read_file(tmp_path / "feed.xml", feed.encode())["entries"][0]["html"] == "<p>a</p>"


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    packed = read_file(tmp_path / "feed.xml.gz", gzip.compress(FEED.encode()))
    assert packed["feed"] == read_file(tmp_path / "feed.xml", FEED.encode())["feed"]


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    for content, outcome in (
        (b"<html>", Outcome.NOT_A_FEED),
        (b"{", Outcome.UNPARSEABLE),
        (gzip.compress(bytes(11_000_000)), Outcome.TOO_LARGE),
        (gzip.compress(FEED.encode())[:-20], Outcome.SOFT_ERROR),
    ):
        with pytest.raises(ReadingFailed) as failed:
            read_file(tmp_path / "feed", content)
        assert failed.value.outcome is outcome


def test_people_see_the_tier_the_facts_the_flags_and_the_warnings(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_text(FEED + "<end>")
    console = Console(file=io.StringIO(), width=200)
    show(read_source(str(path), base_url=None, content_type=None), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for text in ("lenient tier", "hubs: https://hub.example/", "date_guessed", "warning: malformed XML"):
        assert text in shown

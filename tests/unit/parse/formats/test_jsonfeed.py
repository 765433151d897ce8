from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse import NotAFeed, ParsedFeed, ParseError, Unparseable, parse_feed
from shared.wire.results import Entry

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
VERSION = "https://jsonfeed.org/version/1.1"


def read(body: bytes) -> ParsedFeed:
    return parse_feed(
        body, url="https://example.org/feed.json", content_type="application/feed+json; charset=utf-8", now=NOW
    )


def read_items(*items: Any, **feed: Any) -> ParsedFeed:
    return read(json.dumps({"version": VERSION, "title": "News", **feed, "items": list(items)}).encode())


def read_item(**item: Any) -> Entry:
    (entry,) = read_items(item).entries
    return entry


def test_a_json_feed_is_read_with_all_its_fields() -> None:
    parsed = read_items(
        {
            "id": "1",
            "url": "/1",
            "external_url": "https://elsewhere.example/",
            "title": "One <i>",
            "content_html": "<p>a</p><p>b &amp; c</p>",
            "content_text": "plain",
            "summary": "short",
            "date_published": "2026-02-02T10:00:00+01:00",
            "date_modified": "2026-02-03T10:00:00.5Z",
            "authors": [{"name": "Ada"}, {"name": "Bob"}],
            "tags": ["x", "y"],
            "language": "de",
            "attachments": [{"url": "https://example.org/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 5}],
        },
        home_page_url="https://example.org/home/",
        language="en-US",
    )
    assert (parsed.tier, parsed.warnings) == ("json", ())
    assert parsed.feed.model_dump() == {
        "title": "News",
        "site_url": "https://example.org/home/",
        "language": "en-US",
    }
    (entry,) = parsed.entries
    assert (entry.entry_id, entry.url, entry.title) == ("1", "https://example.org/1", "One <i>")
    assert (entry.body, entry.author, entry.categories, entry.language) == ("a\nb & c", "Ada, Bob", ("x", "y"), "de")
    assert entry.published_at == datetime(2026, 2, 2, 9, tzinfo=UTC)
    assert entry.updated_at == datetime(2026, 2, 3, 10, 0, 0, 500_000, tzinfo=UTC)
    assert entry.enclosures[0].model_dump() == {
        "url": "https://example.org/a.mp3",
        "type": "audio/mpeg",
        "length": 5,
    }


def test_version_1_0_with_its_single_author_is_read() -> None:
    body = {"version": "https://jsonfeed.org/version/1", "author": {"name": "Ada"}, "items": [{"id": 1, "title": "t"}]}
    (entry,) = read(json.dumps(body).encode()).entries
    assert (entry.author, entry.entry_id) == ("Ada", "1")


def test_a_byte_order_mark_is_no_obstacle() -> None:
    body = b"\xef\xbb\xbf" + json.dumps({"version": VERSION, "items": [{"id": 7, "title": "Café"}]}).encode()
    assert read(body).entries[0].title == "Café"


def test_ids_may_be_numbers() -> None:
    assert read_item(id=42, title="t").entry_id == "42"
    assert read_item(id=4.5, title="t").entry_id == "4.5"


def test_the_url_goes_before_the_external_url() -> None:
    assert read_item(id="1", url="https://a.example/", external_url="https://b.example/").url == "https://a.example/"
    assert read_item(id="1", external_url="https://b.example/").url == "https://b.example/"


def test_a_hostile_url_gives_way_to_the_id_or_nothing() -> None:
    assert read_item(id="https://a.example/1", url="javascript:alert(1)").url == "https://a.example/1"
    assert read_item(id="1", url="data:text/html,x", title="t").url == ""


def test_the_text_falls_back_to_plain_text_and_summary() -> None:
    assert read_item(id="1", content_html="<p> </p>", content_text="a <b> c").body == "a <b> c"
    assert read_item(id="1", summary="short").body == "short"


@pytest.mark.parametrize("date", [1_769_990_400, 1_769_990_400_000, "1769990400", "2026-02-02T00:00:00Z", "2026-02-02"])
def test_dates_may_be_iso_8601_or_unix_time(date: str | int) -> None:
    assert read_item(id="1", title="t", date_published=date).published_at == datetime(2026, 2, 2, tzinfo=UTC)


def test_fields_of_the_wrong_type_are_passed_over() -> None:
    entry = read_item(
        id=True,
        title=["no"],
        url=5,
        content_text="text",
        authors=7,
        author=[1],
        tags={"a": 1},
        attachments=[1, {"url": 2}, {"url": "https://example.org/x", "size_in_bytes": "big"}],
        date_published={"y": 1},
        date_modified=float("inf"),
        language=None,
    )
    assert (entry.title, entry.author, entry.categories, entry.published_at) == ("text", None, (), None)
    assert [one.url for one in entry.enclosures] == ["https://example.org/x"]


def test_items_that_are_no_objects_are_skipped_with_a_warning() -> None:
    parsed = read_items("text", None, {"id": "1", "title": "t"}, [])
    assert [entry.title for entry in parsed.entries] == ["t"]
    assert parsed.warnings == ("items that are no objects: 3",)


def test_a_feed_without_a_version_but_with_title_and_items_is_read_with_a_warning() -> None:
    parsed = read(b'{"title": "News", "items": [{"id": "1", "title": "t"}]}')
    assert (len(parsed.entries), parsed.warnings) == (1, ("no JSON Feed version",))


def test_a_feed_without_items_is_empty_with_a_warning() -> None:
    parsed = read(json.dumps({"version": VERSION, "title": "News"}).encode())
    assert (parsed.entries, parsed.warnings) == ((), ("no list of items",))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"message": "not found"}', "JSON without version and items"),
        (b'{"items": [{"id": 1}], "total_count": 1}', "JSON without version and items"),
        (b"[1, 2]", "JSON that is no object"),
    ],
)
def test_other_json_is_no_feed(body: bytes, found: str) -> None:
    with pytest.raises(NotAFeed, match=found):
        read(body)


@pytest.mark.parametrize("body", [b'{"version": ', b"{not json}", b"[" * 100_000, b'{"a":' * 100_000])
def test_broken_json_is_unparseable(body: bytes) -> None:
    with pytest.raises(Unparseable, match="JSON"):
        read(body)


def test_a_lone_surrogate_is_dropped() -> None:
    entry = read_item(id="a\ud800", title="t\ud83d", content_text="x\udc00y\u0000z", tags=["\ud800"])
    assert (entry.entry_id, entry.title, entry.body, entry.categories) == ("a", "t", "xyz", ())
    entry.model_dump_json()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "x", "<p>", "https://e.org/", "9e9"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "url", "id"]), inner),
    max_leaves=5,
)
ITEM = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("id", "url", "external_url", "title", "content_html", "content_text", "summary"), JSON),
        **dict.fromkeys(("date_published", "date_modified", "language", "tags"), JSON),
        **dict.fromkeys(("author", "authors", "attachments"), JSON),
    },
)


@given(st.lists(ITEM | JSON, max_size=3))
def test_any_json_in_the_items_gives_a_parsed_feed_or_a_parse_error(items: list[Any]) -> None:
    try:
        for entry in read_items(*items).entries:
            entry.model_dump_json()
    except ParseError:
        pass


def test_an_author_may_be_a_mere_name_and_stand_where_a_list_should() -> None:
    assert read_item(id="1", title="t", authors={"name": "Ada"}).author == "Ada"
    assert read_item(id="1", title="t", authors=["Ada", {"name": "Bob"}, 3]).author == "Ada, Bob"
    assert read_item(id="1", title="t", author="Ada").author == "Ada"


def test_one_tag_and_one_attachment_may_stand_where_a_list_should() -> None:
    entry = read_item(id="1", title="t", tags="x", attachments={"url": "https://example.org/a", "size_in_bytes": "5"})
    assert entry.categories == ("x",)
    assert [(one.url, one.length) for one in entry.enclosures] == [("https://example.org/a", 5)]

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse import NotAFeed, ParsedFeed, ParseError, Unparseable
from services.fetcher.parse.formats.salvage import read_salvage
from services.fetcher.parse.model import RawFeed
from tests.unit.parse.feeds import read, rss

ITEM = """<item><title>One &amp; two</title><link>https://example.org/1</link><guid isPermaLink="false">g1</guid>
    <pubDate>Mon, 02 Feb 2026 10:00:00 GMT</pubDate><author>Ada</author><category>birds</category>
    <description>&lt;p&gt;Long &amp;amp; wide&lt;/p&gt;</description>
    <enclosure url="/one.mp3" type="audio/mpeg" length="9"/></item>"""
PAGE = '<!DOCTYPE html><html><head><title>feed.xml</title></head><body><pre style="a">{}</pre></body></html>'


def salvage(text: str) -> RawFeed | None:
    """Let the salvage tier alone read it, with no help from the others."""

    def refuse(_: str) -> RawFeed:
        raise Unparseable("not asked")

    return read_salvage(text, refuse)


def facts(parsed: ParsedFeed) -> tuple[str, list[tuple[str, str]]]:
    return parsed.tier, [(entry.title, entry.url) for entry in parsed.entries]


ONE = ("salvage", [("One & two", "https://example.org/1")])


@pytest.mark.parametrize("write", [str, escape], ids=["as it is", "escaped"])
def test_a_feed_within_a_page_is_unwrapped(write: type[str]) -> None:
    parsed = read(PAGE.format(write(rss(ITEM))))
    assert facts(parsed) == ONE
    assert parsed.warnings == ("the feed is escaped, or stands within an HTML page",)
    assert parsed.entries[0].body == "Long & wide"


WRAPPED_JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "News", "items": [{"title": "One & two",
"url": "https://example.org/1", "content_html": "<p>Long &amp; wide</p><rss>"}]}"""


@pytest.mark.parametrize("write", [str, lambda text: escape(text, quote=False), escape], ids=["as is", "<", "quotes"])
@pytest.mark.parametrize("page", [PAGE, "<html><body>{}</body></html>", "<pre>\n{}</pre><div class='j'></div>"])
def test_a_json_feed_within_a_page_is_unwrapped(page: str, write: Callable[[str], str]) -> None:
    parsed = read(page.format(write(WRAPPED_JSON)))
    assert facts(parsed) == ONE
    assert parsed.warnings == ("the feed is escaped, or stands within an HTML page",)
    assert parsed.entries[0].body == "Long & wide"


def test_of_a_json_feed_within_a_page_that_is_cut_off_the_whole_items_are_saved() -> None:
    parsed = read(PAGE.format(escape(WRAPPED_JSON[:-2] + ', {"title": "tw')).partition("</pre>")[0])
    assert facts(parsed) == ONE
    assert "broken JSON: the items before the break were saved" in parsed.warnings


def test_a_page_that_tells_of_json_is_a_page() -> None:
    for page in (
        PAGE.replace("<pre", "<p>An example:</p><pre").format(escape(WRAPPED_JSON)),
        PAGE.format('{"version": "https://jsonfeed.org/version/1.1", "items": []}'),
        PAGE.format('{"a": 1}'),
        PAGE.format("{"),
        PAGE.format("{" * 100_000),
        PAGE.format('{"items": [' * 100_000),
    ):
        with pytest.raises(NotAFeed, match="an HTML page"):
            read(page)


def test_a_feed_that_is_escaped_as_a_whole_is_read() -> None:
    assert facts(read(escape(rss(ITEM)))) == ONE


def test_a_page_that_tells_of_feeds_is_a_page() -> None:
    for page in (PAGE.format("An example: " + escape(rss(ITEM))), PAGE.format(rss(""))):
        with pytest.raises(NotAFeed, match="an HTML page"):
            read(page)


@pytest.mark.parametrize(
    "wreck",
    [
        rss("") + rss(ITEM),  # an empty document, and another one behind it
        rss(ITEM).replace("</title>", ""),
        ITEM + "</channel></rss>",  # its beginning is missing
        "<title>News</title>" + ITEM.replace("</item>", "") + "</channel></rss>",
    ],
)
def test_what_no_parser_takes_is_saved_piece_by_piece(wreck: str) -> None:
    parsed = read(wreck)
    assert facts(parsed) == ONE
    assert "beyond parsing: entries were saved piece by piece" in parsed.warnings
    (entry,) = parsed.entries
    assert (entry.entry_id, entry.body, entry.author) == ("g1", "Long & wide", "Ada")
    assert entry.published_at == datetime(2026, 2, 2, 10, tzinfo=UTC)
    assert [one.url for one in entry.enclosures] == ["https://example.org/one.mp3"]
    assert entry.categories == ("birds",)


def test_an_atom_entry_is_saved_too() -> None:
    raw = salvage(
        """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><link rel="self" href="/s"/><link href="/home"/>
        <entry><id>1</id><title type="html">A &amp;amp; B</title><link rel="enclosure" href="/a.mp3" type="audio/mpeg"/>
        <link href='/1'/><updated>2026-02-02T10:00:00Z</updated><author><name>Ada</name><uri>u</uri></author>
        <category term="birds"/><content type="html"><![CDATA[<p>x</p><title>no</title>]]></content></entry>"""
    )
    assert raw is not None
    (entry,) = raw.entries
    assert (raw.title.value, raw.link, entry.link, entry.guid) == ("News", "/home", "/1", "1")
    assert (entry.title.value, entry.authors, entry.categories) == ("A &amp; B", ("Ada",), ("birds",))
    assert [one.url for one in entry.enclosures] == ["/a.mp3"]
    assert entry.bodies[0].value == "<p>x</p><title>no</title>"


def test_an_entry_that_was_cut_off_is_left_out_and_counted() -> None:
    whole = "<rss><item><title>One</title><link>/1</link></item>"
    for cut in ("<item><title>Tw", "<item><tit", "<item", "<item><link>https://exam", "<item><title>Two</title></item"):
        raw = salvage(whole + cut)
        assert raw is not None
        assert [entry.title.value for entry in raw.entries] == ["One"], cut
        assert raw.warnings[1:] == ("entries cut off with the end of the feed and left out: 1",)


def test_cdata_within_cdata_is_read_to_its_own_end() -> None:
    raw = salvage("<rss><item><title>t</title><description><![CDATA[a <![CDATA[b]]> c]]></description></item>")
    assert raw is not None
    assert raw.entries[0].bodies[0].value == "a b c"


def test_without_entries_there_is_nothing_to_save() -> None:
    for text in ("", "<rss>", "<rss><item></item>", "<p>item</p>", "<item><title>t</title></item>"):
        assert salvage(text) is None


HOSTILE = [
    "<item>",
    "<item",
    "<item x='",
    "<item><title>",
    "<item><title>t<link>",
    "<title>",
    "<link>",
    "<link>x</title>",
    "<description><![CDATA[",
    "<description>]]></link>",
    "<a:",
    "a" * 1000 + ":",
    "<content:encoded ",
    "<link href=",
    "<link =",
    "&lt;rss &",
    "</item",
    "</item  ",
    "<İ>",
    " ",
    "<pre",
]
"""Texts on which a bad expression would look at the same characters again and again."""


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_is_worked_off_once(unit: str) -> None:
    """It takes a fraction of a second; with one step back for each character it would take hours."""
    salvage("<rss><item><title>t</title>" + unit * (1_000_000 // len(unit)))
    salvage("<rss>" + unit * (500_000 // len(unit)) + "<link>x</link></item></title>")


def test_ten_hostile_megabytes_take_ten_times_as_long() -> None:
    started = time.process_time()
    salvage("<rss><item><title>t</title>" + "".join(unit * (500_000 // len(unit)) for unit in HOSTILE))
    assert time.process_time() - started < 60


JSON = '{"version":"https://jsonfeed.org/version/1.1","title":"News","items":[{"title":"a"},{"title":"b\tc"}'


@pytest.mark.parametrize(
    ("rest", "titles"),
    [
        ("]}<script>x</script>", ["a", "b c"]),
        (",]}", ["a", "b c"]),
        (',{"title":"c', ["a", "b c"]),
        ("", ["a", "b c"]),
        (',{"title":c},{"title":"d"}]}', ["a", "b c"]),
    ],
)
def test_of_broken_json_the_items_before_the_break_are_saved(rest: str, titles: list[str]) -> None:
    parsed = read(JSON + rest)
    assert (parsed.tier, parsed.feed.title) == ("salvage", "News")
    assert [entry.title for entry in parsed.entries] == titles
    assert "broken JSON: the items before the break were saved" in parsed.warnings


@pytest.mark.parametrize(
    "text", ['{"items":[', '{"items":[{"a":1', '{"items":"x"', '{"title":"t","items":[1,2', "{", "[{]"]
)
def test_of_broken_json_without_an_item_nothing_is_saved(text: str) -> None:
    with pytest.raises(Unparseable, match="broken JSON"):
        read(text)


@pytest.mark.parametrize("unit", ['{"items":[', '[{"a":', '{"a":1},', '"items":[{},', '{"items": ['])
def test_hostile_json_is_worked_off_once(unit: str) -> None:
    with pytest.raises(ParseError):
        read('{"items":[' + unit * (1_000_000 // len(unit)) + "!")


SCRAPS = st.sampled_from([*"<>/='\" &;![]-", "item", "title", "link", "rss", "CDATA["])


@given(st.lists(SCRAPS, max_size=60).map("".join))
def test_any_wreck_gives_a_feed_or_a_parse_error(text: str) -> None:
    salvage("<rss><item>" + text)
    try:
        read(f"<pre><rss><item><title>t</title>{text}")
    except ParseError:
        return

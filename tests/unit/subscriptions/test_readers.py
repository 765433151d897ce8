"""The lists that other readers export: each in the shape in which it comes."""

from __future__ import annotations

import pytest

from services.admin.feeds.tags import MAX_TAG_CHARACTERS, MAX_TAGS, clean_tag, merge_tags
from services.admin.subscriptions.model import Format, Listed
from shared.errors import ConfigurationError
from tests.unit.subscriptions.lists import open_bytes, opml, outline, read, warnings

FEEDLY = """<?xml version="1.0" encoding="UTF-8"?>

<opml version="1.0">
    <head>
        <title>Ann subscriptions in feedly Cloud</title>
    </head>
    <body>
        <outline text="Tech" title="Tech">
            <outline type="rss" text="A" title="A" xmlUrl="http://a.example/rss" htmlUrl="http://a.example/"/>
        </outline>
        <outline text="Best" title="Best">
            <outline type="rss" text="A" title="A" xmlUrl="http://a.example/rss" htmlUrl="http://a.example/"/>
        </outline>
        <outline type="rss" text="B" title="B" xmlUrl="http://b.example/rss" htmlUrl=""/>
    </body>
</opml>
"""


def test_feedly_lists_a_feed_in_each_of_its_folders() -> None:
    assert read(FEEDLY) == [
        Listed(9, "http://a.example/rss", "A", ("Tech",), "http://a.example/"),
        Listed(12, "http://a.example/rss", "A", ("Best",), "http://a.example/"),
        Listed(14, "http://b.example/rss", "B"),
    ]


def test_miniflux_closes_outlines_with_a_tag_and_has_empty_folders() -> None:
    listed = read(
        opml(
            '<outline text="All"><outline title="Go" text="Go" xmlUrl="http://go.example/feed"'
            ' htmlUrl="http://go.example/" description="d" type="rss"></outline></outline>',
            '<outline text="Empty"></outline>',
        )
    )
    assert listed == [Listed(3, "http://go.example/feed", "Go", ("All",), "http://go.example/")]


def test_thunderbird_has_folders_in_folders_and_namespaces() -> None:
    text = opml(
        '<outline title="News"><outline title="World &amp; all">',
        '<outline type="rss" title="BBC" fz:options="{&quot;version&quot;:2}" xmlUrl="http://bbc.example/rss"/>',
        "</outline>",
        outline("http://m.example/feed", "M"),
        "</outline>",
    ).replace("<opml ", '<opml xmlns:fz="urn:forumzilla:" ')
    assert [(feed.name, feed.tags, feed.line) for feed in read(text)] == [
        ("BBC", ("News/World & all",), 4),
        ("M", ("News",), 6),
    ]


def test_freshrss_names_scrapers_in_the_type() -> None:
    kinds = ("rss", "RSS", "JSONFeed", "HTML+XPath", "")
    text = opml(*(f'<outline text="x" type="{kind}" xmlUrl="http://x.example/{kind}"/>' for kind in kinds))
    assert [feed.source_type for feed in read(text)] == ["feed", "feed", "feed", "HTML+XPath", "feed"]


def test_podcast_apps_write_one_line_and_names_of_their_own() -> None:
    listed = read(
        '<opml version="1.0"><body><outline text="feeds">'
        '<outline type="rss" text="A" XMLURL="http://a.example/rss" overcastId="1"/>'
        '<outline type="rss" text="B" url="http://b.example/rss"/>'
        '<outline type="rss" feedUrl=" http://c.example/rss&#10;"/></outline></body></opml>'
    )
    assert [(feed.line, feed.name, feed.url) for feed in listed] == [
        (1, "A", "http://a.example/rss"),
        (1, "B", "http://b.example/rss"),
        (1, "", "http://c.example/rss"),
    ]
    assert {feed.tags for feed in listed} == {("feeds",)}


def test_categories_are_tags_beside_the_folder() -> None:
    (feed,) = read(opml('<outline text="F"><outline xmlUrl="http://a.example/" category="/b/c, f ,d"/></outline>'))
    assert feed.tags == ("F", "b/c", "d")


def test_a_feed_without_a_url_is_listed_and_an_empty_folder_is_not() -> None:
    text = opml('<outline text="Gone" type="rss"/>', '<outline text="Empty"/>', outline("http://a.example/feed"))
    assert [(feed.line, feed.url, feed.name) for feed in read(text)] == [
        (3, "", "Gone"),
        (5, "http://a.example/feed", "News"),
    ]


def test_a_name_that_repeats_the_url_is_none() -> None:
    (feed,) = read(opml(outline("http://a.example/feed", "http://a.example/feed")))
    assert feed.name == ""


CHANNEL = "UCBJycsmduvYEL83R_U4JriQ"


@pytest.mark.parametrize("header", ["Channel Id,Channel Url,Channel Title", "Kanal-ID,Kanal-URL,Kanaltitel"])
def test_youtubes_takeout_is_channels_in_any_language(header: str) -> None:
    text = f'{header}\n{CHANNEL},http://www.youtube.com/channel/{CHANNEL},"Tech, and more"\n'
    feed = f"https://www.youtube.com/feeds/videos.xml?channel_id={CHANNEL}"
    assert read(text) == [Listed(2, feed, "Tech, and more")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_has_the_delimiter_of_its_header(delimiter: str) -> None:
    rows = [["Title", "Feed URL", "Folder"], ["News", "http://n.example/rss", "a/b"], ["", "", ""], ["No", "", ""]]
    text = "\r\n".join(delimiter.join(row) for row in rows)
    assert read(text) == [Listed(2, "http://n.example/rss", "News", ("a/b",)), Listed(4, "", "No")]


def test_rows_of_a_csv_are_counted_by_the_lines_where_they_begin() -> None:
    text = '\nurl,name\nhttp://a.example/,"two\nlines"\nhttp://b.example/,b\n'
    assert [(feed.line, feed.name) for feed in read(text)] == [(3, "two lines"), (5, "b")]


def test_a_plain_list_may_be_newsboats() -> None:
    text = '# mine\nhttp://a.example/rss news "~The A" "two words" !\n\n  http://b.example/rss  \nexample.com/feed\n'
    assert read(text) == [
        Listed(2, "http://a.example/rss", "The A", ("news", "two words")),
        Listed(4, "http://b.example/rss"),
        Listed(5, "example.com/feed"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("form", list(Format))
def test_every_format_is_read_in_every_encoding(encoding: str, form: Format) -> None:
    url, name = "http://a.example/feed", "Café"
    texts = {
        Format.OPML: opml(outline(url, name)),
        Format.CSV: f"url,name\n{url},{name}\n",
        Format.LIST: f'{url} "~{name}"\n',
    }
    data = texts[form].encode("cp1252" if encoding == "cp1252" else encoding)
    opened = open_bytes(data)
    assert opened.format is form
    assert [(feed.url, feed.name) for feed in opened.read()] == [(url, name)]


def test_a_format_may_be_forced() -> None:
    assert [feed.url for feed in read("a.example/x\n", Format.LIST)] == ["a.example/x"]


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("News", "News"),
        (" /a//b c/ ", "a/b c"),
        ("Cafe\u0301", "Café"),
        ("a\tb\x00", "a b"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_a_tag_has_one_form(text: str, tag: str) -> None:
    assert clean_tag(text) == tag
    assert clean_tag(tag) == tag


@pytest.mark.parametrize("text", ["", " / ", "x" * (MAX_TAG_CHARACTERS + 1)])
def test_a_tag_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="a tag"):
        clean_tag(text)


def test_tags_differ_by_more_than_case() -> None:
    assert merge_tags(["News", "a"], ["NEWS", "b", "A"]) == ["News", "a", "b"]


def test_tags_that_a_feed_cannot_have_are_left_out_and_said() -> None:
    many = ",".join(f"t{n}" for n in range(MAX_TAGS + 5))
    text = opml(f'<outline xmlUrl="http://a.example/" category="{"x" * 200},{many}"/>')
    assert len(read(text)[0].tags) == MAX_TAGS
    assert [line for line, _ in warnings(text)] == [3, 3]

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.parse.feeds import NOW, atom, item, read, rss


def test_without_a_link_the_permalink_guid_is_the_url() -> None:
    assert item("<title>t</title><guid>https://example.org/g</guid>").url == "https://example.org/g"
    assert item("<title>t</title><link> </link><guid>https://example.org/g</guid>").url == "https://example.org/g"


def test_a_guid_that_is_no_permalink_or_no_url_is_never_the_url() -> None:
    assert item('<title>t</title><guid isPermaLink="false">https://example.org/g</guid>').url == ""
    assert item("<title>t</title><guid>12345</guid>").url == ""
    assert item("<title>t</title><guid>12345</guid>").entry_id == "12345"


def test_a_permalink_may_be_a_path() -> None:
    assert item('<title>t</title><guid isPermaLink="true">/blog/g</guid>').url == "https://example.org/blog/g"
    assert item('<title>t</title><guid isPermaLink="false">/blog/g</guid>').url == ""
    episode = item('<title>t</title><guid>/blog/g</guid><enclosure url="https://example.org/b.mp3"/>')
    assert episode.url == "https://example.org/b.mp3"


def test_without_link_and_guid_the_first_enclosure_is_the_url() -> None:
    entry = item('<title>t</title><enclosure url="ftp://x/a.mp3"/><enclosure url="https://example.org/b.mp3"/>')
    assert entry.url == "https://example.org/b.mp3"
    assert [one.url for one in entry.enclosures] == ["https://example.org/b.mp3"]


def test_without_a_title_the_body_lends_its_first_words() -> None:
    entry = item("<link>https://example.org/1</link><description>" + "word " * 40 + "</description>")
    assert entry.title == ("word " * 16).strip()
    assert entry.flags == ("title_guessed",)


def test_without_title_and_body_the_url_is_the_title() -> None:
    entry = item("<link>https://example.org/1</link>")
    assert (entry.title, entry.body, entry.content_quality) == (entry.url, "", "title_only")


def test_without_a_body_the_title_is_the_body() -> None:
    entry = item("<title>Only this</title><link>https://example.org/1</link>")
    assert (entry.body, entry.content_quality) == ("Only this", "title_only")


def test_the_entry_id_is_the_guid_else_the_url_else_the_md5() -> None:
    assert item("<title>t</title><link>https://example.org/1</link>").entry_id == "https://example.org/1"
    assert item("<title>t</title>").entry_id == item("<title>t</title>").md5


def test_an_entry_with_nothing_in_it_is_dropped_and_counted() -> None:
    parsed = read(rss("<item><pubDate>now</pubDate></item><item/><item><title>t</title></item>"))
    assert [entry.title for entry in parsed.entries] == ["t"]
    assert parsed.warnings == ("entries without url, title and text dropped: 2",)


def test_of_entries_with_the_same_url_and_title_the_first_stays() -> None:
    twice = "".join(
        f"<item><title>t</title><link>https://example.org/1</link><guid>{n}</guid></item>" for n in range(3)
    )
    parsed = read(rss(twice))
    assert [entry.entry_id for entry in parsed.entries] == ["0"]
    assert parsed.warnings == ("entries with the url and title of an earlier one dropped: 2",)


def one_of_several(guid: str, text: str, scheme: str = "https") -> str:
    about = f"<guid>{guid}</guid>" if guid else ""
    return f"<item><title>t</title><link>{scheme}://example.org/1</link>{about}<description>{text}</description></item>"


def test_entries_with_the_same_url_and_title_but_other_guids_and_texts_all_stay() -> None:
    items = [("a", "up"), ("b", "down"), ("a", "left"), ("c", "down"), ("", "right"), ("d", "away")]
    parsed = read(rss("".join(one_of_several(*item) for item in items)))
    assert [(entry.entry_id, entry.body) for entry in parsed.entries] == [("a", "up"), ("b", "down"), ("d", "away")]
    assert len({entry.md5 for entry in parsed.entries}) == 1
    parsed = read(rss(one_of_several("", "up") + one_of_several("b", "down", "http")))
    assert [entry.body for entry in parsed.entries] == ["up"]


def test_an_entry_says_whether_the_feed_gave_its_id() -> None:
    link = "<title>t</title><link>https://example.org/1</link>"
    assert item(link).id_is_given is False
    assert item(f"{link}<guid>{'x' * 2001}</guid>").id_is_given is False
    assert item(f"{link}<guid>https://example.org/1</guid>").id_is_given is True


def test_above_the_limit_the_newest_stay_in_the_order_of_the_feed() -> None:
    items = "".join(
        f"<item><title>{day}</title><pubDate>{day} Feb 2026 00:00:00 GMT</pubDate></item>" for day in (5, 9, 1, 7)
    )
    parsed = read(rss(items + "<item><title>undated</title></item>"), max_entries=3)
    assert [entry.title for entry in parsed.entries] == ["5", "9", "7"]
    assert parsed.warnings == ("entries beyond the newest 3 dropped: 2",)


def test_titles_and_bodies_are_cut_with_a_flag() -> None:
    entry = item(f"<title>{'x' * 3000}</title><description>{'y' * 1_000_005}</description>")
    assert (len(entry.title), len(entry.body)) == (2_000, 1_000_000)
    assert entry.flags == ("body_cut", "title_cut")


def test_a_date_in_the_far_future_becomes_now_with_a_flag() -> None:
    entry = item("<title>t</title><pubDate>Mon, 01 Jan 2035 00:00:00 GMT</pubDate>")
    assert (entry.published_at, entry.flags) == (NOW, ("date_clamped",))


def test_without_a_believable_date_of_publication_the_last_update_counts() -> None:
    (entry,) = read(
        atom(
            "<entry><id>1</id><title>t</title><published>1970-01-01T00:00:00Z</published>"
            "<updated>2026-02-02T00:00:00Z</updated></entry>"
        )
    ).entries
    assert entry.published_at == entry.updated_at == datetime(2026, 2, 2, tzinfo=UTC)


def test_media_and_itunes_texts_never_replace_the_entrys_own() -> None:
    parsed = read(
        """<rss xmlns:media="http://search.yahoo.com/mrss/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">
        <channel><item><title>t</title><description>the text</description><itunes:summary>sum</itunes:summary>
        <media:content url="https://example.org/i.jpg" type="image/jpeg"><media:description>a very long caption
        </media:description></media:content></item>
        <item><title>u</title><media:group><media:description>the only text</media:description></media:group></item>
        </channel></rss>"""
    )
    assert [entry.body for entry in parsed.entries] == ["the text", "the only text"]
    assert parsed.entries[0].enclosures[0].url == "https://example.org/i.jpg"


def test_plain_atom_text_is_not_taken_for_markup() -> None:
    (entry,) = read(atom("<entry><title>Use &lt;br&gt; &amp;amp; more</title><id>1</id></entry>")).entries
    assert entry.title == "Use <br> &amp; more"


def test_relative_links_are_resolved_against_the_feeds_own_link() -> None:
    channel = "<title>t</title><link>https://blog.example.net/posts/</link>"
    (entry,) = read(rss("<item><title>t</title><link>one?a=1&amp;b=2</link></item>", channel)).entries
    assert entry.url == "https://blog.example.net/posts/one?a=1&b=2"


def test_relative_links_without_a_feed_link_are_resolved_against_the_url() -> None:
    (entry,) = read(rss("<item><title>t</title><link>/one</link></item>", "<title>t</title>")).entries
    assert entry.url == "https://example.org/one"


def test_xml_base_goes_before_the_feeds_link() -> None:
    body = atom(
        """<link href="https://example.org/"/><entry xml:base="sub/"><id>1</id><title>t</title>
        <link href="one"/></entry>""",
        'xml:base="https://base.example.com/dir/"',
    )
    assert read(body).entries[0].url == "https://base.example.com/dir/sub/one"


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        " JaVaScRiPt:alert(1)",
        "java&#10;script:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "http://",
        "http://[::1",
        "mailto:a@example.org",
    ],
)
def test_a_hostile_link_never_reaches_an_entry(href: str) -> None:
    entry = item(f'<title>t</title><link>{href}</link><guid>{href}</guid><enclosure url="{href}"/>')
    assert (entry.url, entry.enclosures) == ("", ())


def test_a_hostile_xml_base_makes_no_hostile_link() -> None:
    body = atom(
        '<entry xml:base="javascript:alert(1)//"><id>1</id><title>t</title><link href="x"/></entry>',
        'xml:base="file:///etc/"',
    )
    assert read(body).entries[0].url in {"", "https://example.org/feeds/x"}

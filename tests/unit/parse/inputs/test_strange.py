"""Strange and valid, or strange and common: each has its answer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.parse.feeds import NOW, atom, item, read, rss


def test_of_fifty_thousand_entries_the_newest_are_kept_and_the_others_counted() -> None:
    def written(number: int) -> str:
        date = NOW - timedelta(minutes=50_000 - number)  # the oldest first
        return f"<item><title>{number}</title><pubDate>{date:%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"

    parsed = read(rss("".join(map(written, range(50_000)))), max_entries=100)
    assert parsed.tier == "strict"
    assert [entry.title for entry in parsed.entries] == [str(number) for number in range(49_900, 50_000)]
    assert parsed.warnings == ("entries beyond the newest 100 dropped: 49900",)


def test_a_title_of_100_kilobytes_is_cut() -> None:
    entry = item(f"<title>{'word ' * 20_000}</title><link>https://example.org/1</link>")
    assert (len(entry.title), entry.flags) == (1_999, ("title_cut",))
    assert item(f"<title>{'&lt;b&gt;' * 30_000}x&lt;/b&gt;</title>").title == "x"


@pytest.mark.parametrize(
    ("description", "body"),
    [
        ("<![CDATA[a <![CDATA[b]]> c]]>", "a b c"),
        ("<![CDATA[a]]><![CDATA[ b]]>", "a b"),
        ("<![CDATA[a ]]]]><![CDATA[> b]]>", "a ]]> b"),
        ("&lt;![CDATA[&lt;p&gt;a&lt;/p&gt;]]&gt;", "a"),
        ("&amp;lt;p&amp;gt;a&amp;lt;/p&amp;gt;", "<p>a</p>"),
        ("a &amp;amp;amp; b &amp;#8217; c &amp;hellip;", "a &amp; b ’ c …"),
        ("&#38;#38;", "&"),
    ],
)
def test_layers_of_cdata_and_entities_come_off_one_by_one(description: str, body: str) -> None:
    assert item(f"<title>t</title><description>{description}</description>").body == body


@pytest.mark.parametrize(
    "garbage", ["\n\n\x00\x00", "<!-- generated in 0.1 s -->", "<script>x</script>", "\nnull", "<?php ?>"]
)
def test_garbage_behind_the_feed_does_not_matter(garbage: str) -> None:
    parsed = read(rss("<item><title>t</title></item>") + garbage)
    assert [entry.title for entry in parsed.entries] == ["t"]


def test_of_two_documents_in_one_body_the_first_with_entries_counts() -> None:
    for body in (
        rss("<item><title>One</title></item>") + rss("<item><title>Two</title></item>"),
        rss("") + rss("<item><title>One</title></item>"),
    ):
        assert [entry.title for entry in read(body).entries] == ["One"]


def test_http_and_https_of_one_article_are_one() -> None:
    parsed = read(
        rss(
            "".join(
                f"<item><title>t</title><link>{scheme}://example.org/1</link><guid>{scheme}://example.org/?p=1</guid></item>"
                for scheme in ("http", "https")
            )
        )
    )
    assert [entry.url for entry in parsed.entries] == ["http://example.org/1"]
    assert parsed.warnings == ("entries with the url and title of an earlier one dropped: 1",)


def test_a_guid_that_is_not_unique_does_not_swallow_entries() -> None:
    items = "".join(f"<item><title>{n}</title><guid isPermaLink='false'>same</guid></item>" for n in range(3))
    parsed = read(rss(items))
    assert [(entry.title, entry.entry_id) for entry in parsed.entries] == [("0", "same"), ("1", "same"), ("2", "same")]


def test_the_order_of_the_feed_is_kept_whatever_the_dates() -> None:
    days = [5, 9, 1, 7, 3]
    items = "".join(f"<item><title>{day}</title><pubDate>{day} Feb 2026 00:00 GMT</pubDate></item>" for day in days)
    assert [entry.title for entry in read(rss(items)).entries] == list(map(str, days))


@pytest.mark.parametrize(
    "scheme", ["javascript:alert(1)", "data:text/html,x", "file:///etc/hosts", "vbscript:x", "blob:x"]
)
def test_a_link_that_runs_something_is_no_link_in_any_tier(scheme: str) -> None:
    inner = f"<item><title>t</title><link>{scheme}</link><guid>{scheme}</guid><enclosure url='{scheme}'/></item>"
    items = f'[{{"title":"t","url":"{scheme}"}}]'
    json = f'{{"version":"https://jsonfeed.org/version/1.1","home_page_url":"{scheme}","items":{items}}}'
    bodies = {
        "strict": rss(inner, f"<title>t</title><link>{scheme}</link>"),
        "lenient": rss(inner) + "<end>",
        "salvage": rss("") + rss(inner),
        "json": json,
    }
    for tier, body in bodies.items():
        parsed = read(body)
        (entry,) = parsed.entries
        assert (parsed.tier, entry.url, entry.enclosures) == (tier, "", ())
        assert (parsed.feed.site_url or "").startswith(("", "https://"))
    (entry,) = read(atom(f"<entry xml:base='{scheme}'><title>t</title><link href='{scheme}'/></entry>")).entries
    assert entry.url in {"", "https://example.org/feeds/x"}


def test_deep_nesting_ends_well() -> None:
    for opened in ("<a>", "<div>"):
        parsed = read(rss("<item><title>t</title></item>" + opened * 100_000))
        assert parsed.entries[0].title == "t"

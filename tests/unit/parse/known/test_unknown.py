"""Known entries are left out of the answer, and nothing else changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.fetcher.parse import known as known_package
from services.fetcher.parse.known import repetition
from tests.unit.parse.feeds import NOW, atom, read, rss, with_prefixes
from tests.unit.parse.known.polls import NONE, Polls, entry, item, json_feed, listed, post, rdf

CODE = "<description><![CDATA[<pre>&lt;item&gt; is <item>one</item></item> ]] ></pre>]]></description>"
REMARK = "<!-- an <item> in </item> a comment --><?php echo '<item>' ?>"

USUAL = {
    "rss": [rss(item(1) + item(2)), rss(item(3) + "\n" + item(1) + "<!-- x -->" + item(2))],
    "atom": [atom(entry(1) + entry(2)), atom(entry(3) + entry(1) + entry(2))],
    "rdf": [rdf(item(1) + item(2)), rdf(item(3) + item(1) + item(2))],
    "json": [json_feed(post(1), post(2)), json_feed(post(3), post(1), post(2), title="u")],
    "code": [rss(item(1, CODE) + item(2, REMARK)), rss(item(3, CODE) + item(1, CODE) + item(2, REMARK))],
    "a new head": [
        rss(item(1) + item(2)),
        rss(item(3) + item(1) + item(2), "<title>New</title><link>https://example.org/</link><ttl>5</ttl>"),
    ],
    "prefixes": [
        f"<a:feed xmlns:a='http://www.w3.org/2005/Atom'>{entries}</a:feed>".replace("<entry", "<a:entry")
        .replace("</entry", "</a:entry")
        .replace("<title", "<a:title")
        .replace("</title", "</a:title")
        .replace("<link", "<a:link")
        for entries in (entry(1) + entry(2), entry(3) + entry(1) + entry(2))
    ],
    "a sign in an attribute": [
        atom(entry(1, "", "x='a>b' y=\"</entry>'>\"".replace("<", "&lt;")) + entry(2)),
        atom(entry(3) + entry(1, "", "x='a>b' y=\"</entry>'>\"".replace("<", "&lt;")) + entry(2)),
    ],
    "declared within": [
        atom(entry(1, "<media:thumbnail xmlns:media='http://search.yahoo.com/mrss/' url='u'/>") + entry(2)),
        atom(entry(3) + entry(1, "<media:thumbnail xmlns:media='http://search.yahoo.com/mrss/' url='u'/>") + entry(2)),
    ],
    "an empty one": [rss("<item/>" + item(1) + item(2)), rss("<item/>" + item(3) + item(1) + item(2))],
    "an empty item": [json_feed({}, post(1), post(2)), json_feed({}, post(3), post(1), post(2))],
    "one link for all": [
        rss("".join(item(name, link="https://example.org/the-show/") for name in names)) for names in ("12", "312")
    ],
    "text around": [
        '<?xml version="1.0"?><!DOCTYPE rss PUBLIC "a" "b"><!-- c --><?x y?>' + rss(items)[21:] + "\n<!-- cached -->\n"
        for items in (item(1) + item(2), item(3) + item(1) + item(2))
    ],
    "slashes": [json_feed(post(1), post(2)).replace("/", "\\/"), json_feed(*map(post, (3, 1, 2))).replace("/", "\\/")],
}


@pytest.mark.parametrize("name", USUAL)
def test_known_entries_are_left_out(name: str) -> None:
    polls = Polls()
    before, after = USUAL[name]
    assert len((polls.poll(before) or read("")).entries) == 2
    part = polls.poll(after)
    assert part is not None
    assert [entry.title for entry in part.entries] == ["Post number 3"]
    assert polls.left_out == 2
    assert polls.poll(after)
    assert polls.left_out == 5  # all of it


def test_an_entry_that_changes_moves_vanishes_or_returns() -> None:
    polls = Polls()
    for items in ("123", "321", "32", "321", "4321", "2134"):
        polls.poll(rss("".join(item(name, "<description>new</description>" * (name == "4")) for name in items)))
    assert polls.left_out == 3 + 2 + 2 + 3 + 4
    part = polls.poll(rss(item(2) + item(1, "<description>It has changed.</description>")))
    assert part is not None
    assert [entry.body for entry in part.entries] == ["It has changed."]


def test_an_entry_with_a_volatile_part_is_read_each_time() -> None:
    polls = Polls()
    for count in range(3):
        polls.poll(rss(item(1, f"<comments>{count}</comments>") + item(2)))
    assert polls.left_out == 2


def test_an_answer_that_depends_on_the_time_is_not_known() -> None:
    polls = Polls()
    future = rss(item(1, "<pubDate>Mon, 02 Feb 2099 10:00:00 GMT</pubDate>") + item(2))
    for days in range(3):
        polls.poll(future, now=NOW + timedelta(days=days))
    assert polls.left_out == 2


def test_the_address_and_the_wish_for_html_belong_to_the_context() -> None:
    polls = Polls()
    feed = rss(item(1, "<description>&lt;b>x&lt;/b></description>", link="/posts/{}"), "<title>t</title>")
    polls.poll(feed)
    polls.poll(feed, url="https://other.example/feed")
    polls.poll(feed, url="https://other.example/feed", keep_html=True)
    assert polls.left_out == 0
    polls.poll(feed, url="https://other.example/feed", keep_html=True)
    assert polls.left_out == 1


def test_another_reader_knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls()
    polls.poll(rss(item(1)))
    monkeypatch.setattr(known_package, "reader_version", lambda: "another")
    polls.poll(rss(item(1)))
    assert polls.left_out == 0


def test_a_wrong_context_wrong_digests_and_zeros_know_nothing() -> None:
    feed = rss(item(1) + item(2))
    polls = Polls()
    polls.poll(feed)
    right = polls.known
    for wrong in (NONE + right[8:], right[:8] + bytes(16), right[:8], right[:3], right[:8] + b"x" * 16):
        polls.known = wrong
        part = polls.poll(feed)
        assert part is not None
        assert len(part.entries) == 2
    polls.known = right + b"123"  # a digest that breaks off
    polls.poll(feed)
    assert polls.left_out == 2


def test_any_part_of_the_known_entries_may_be_given() -> None:
    polls = Polls()
    feed = rss("".join(map(item, range(4))))
    polls.poll(feed)
    polls.known = polls.known[:8] + polls.known[16:24] + polls.known[32:]
    part = polls.poll(feed)
    assert part is not None
    assert [entry.title for entry in part.entries] == ["Post number 0", "Post number 2"]


def test_a_full_reading_gives_digests_only_if_they_are_wanted() -> None:
    assert read(rss(item(1))).digests == b""
    assert len(listed((Polls().poll(rss(item(1))) or read("")).digests)) == 1


def test_what_a_tolerant_tier_read_has_no_digests() -> None:
    for body in (json_feed(post(1)) + "x", rss(item(1, "<b>")), rss(item(1)) + "<end/>"):
        part = Polls().poll(body)
        assert part is not None
        assert part.digests == b""


def test_more_entries_than_are_kept_are_read_in_full() -> None:
    polls = Polls()
    dated = [item(n, f"<pubDate>Mon, 02 Feb 2026 10:00:0{n} GMT</pubDate>") for n in range(5)]
    for count in (3, 4, 5, 4):
        polls.poll(rss("".join(dated[:count])), max_entries=4)
        polls.poll(rss("".join(dated[:count])), max_entries=4)
    assert polls.left_out == 3 + 3 + 4 + 4  # none of the five, and nothing is known after them


def test_enclosures_near_the_limit_are_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_files(name: int, count: int) -> str:
        return item(name, "".join(f"<enclosure url='https://example.org/{name}/{n}.mp3'/>" for n in range(count)))

    polls = Polls()
    feed = rss(with_files(1, 11) + with_files(2, 10))
    polls.poll(feed)
    assert [digest == NONE for digest in listed((polls.poll(feed) or read("")).digests)] == [True]  # the long one
    assert polls.left_out == 1
    monkeypatch.setattr(known_package, "MAX_FEED_ENCLOSURES", 21)
    polls.poll(feed)
    assert polls.left_out == 2
    monkeypatch.setattr(known_package, "MAX_FEED_ENCLOSURES", 11)
    assert not (polls.poll(feed) or read("")).digests
    assert polls.left_out == 2


def test_only_what_may_be_repeated_is_read_again() -> None:
    polls = Polls()
    repeated = rss(item(1) + item(2) + item(3) + item(1, "<description>x</description>"))
    polls.poll(repeated)
    part = polls.poll(repeated)
    assert part is not None
    assert [entry.title for entry in part.entries] == ["Post number 1"]
    assert polls.left_out == 2


def test_a_long_search_for_repetitions_is_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition, "MAX_SEARCHED_CHARS", 10)
    polls = Polls()
    polls.poll(rss(item(1)))
    polls.poll(rss(item(1) + item(2)))
    assert polls.left_out == 0


def test_a_trace_is_whole_and_looked_for_within_bounds() -> None:
    assert repetition._has_whole("<link>/posts/12</link><link>/posts/1</link>", "posts/1")
    assert not repetition._has_whole("<link>/posts/12</link>", "posts/1")
    assert repetition._has_whole("a" * 1_000, "a")


def test_a_namespace_that_all_entries_declare_is_no_hindrance() -> None:
    feedburner = "<f:origLink xmlns:f='http://rssnamespace.org/feedburner/ext/1.0'>https://example.org/</f:origLink>"
    polls = Polls()
    polls.poll(rss(item(1, feedburner)))
    polls.poll(rss(item(2, feedburner) + item(1, feedburner)))
    assert polls.left_out == 1
    polls.poll(with_prefixes(rss(item(2) + item(1, feedburner))))
    assert polls.left_out == 1

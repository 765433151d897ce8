"""Known entries are left out of the answer, and nothing else changes: feeds as they are, and feeds as traps."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from services.fetcher.parse import known as known_package
from tests.unit.parse.feeds import DECLARED, NOW, RDF, atom, read, rss, with_prefixes
from tests.unit.parse.known.polls import NONE, Polls, listed


def item(name: object, more: str = "", link: str = "https://example.org/posts/{}") -> str:
    return f"<item><title>Post number {name}</title><link>{link.format(name)}</link>{more}</item>"


def entry(name: object, more: str = "", attributes: str = "") -> str:
    return f'<entry {attributes}><title>Post number {name}</title><link href="posts/{name}"/>{more}</entry>'


def rdf(items: str) -> str:
    body = RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"')
    return body[: body.index("<item ")] + items + "</rdf:RDF>"


def json_feed(*items: Any, **members: Any) -> str:
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t", **members, "items": items})


def post(name: object, **members: Any) -> dict[str, Any]:
    return {"id": name, "url": f"https://example.org/posts/{name}", "title": f"Post number {name}", **members}


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


LATE = "<item><title>Old</title><link>/old</link><guid>1</guid><{0}:title xmlns:{0}='urn:u'>Y</{0}:title></item>"
HEAD = "<title>News</title><link>https://example.org/</link>"
THRICE = "".join(f"<description>{text}</description>" for text in ("one", "two", "three"))

TRAPS: dict[str, list[str]] = {
    # One entry changes another
    "a base holds beyond its element": [
        atom(entry(1, "<content xml:base='https://other.example/'>x</content>") + entry(2)),
        atom(entry(1, "<content xml:base='https://other.example/'>x</content>") + entry(2) + entry(3)),
    ],
    "an empty entry's base holds beyond it": [
        atom(entry(2)),
        atom("<entry xml:base='https://other.example/'/>" + entry(3) + entry(2)),
        atom("<entry xml:base='https://third.example/'/>" + entry(4) + entry(2)),
    ],
    "the last entry's base holds beyond it": [
        atom(entry(2) + entry(1, "<content xml:base='https://other.example/'>x</content>")),
        atom(entry(1, "<content xml:base='https://other.example/'>x</content>") + entry(2)),
    ],
    "the last entry's base holds beyond it, and it is empty": [
        atom(entry(2) + "<entry xml:base='https://other.example/'/>"),
        atom("<entry xml:base='https://other.example/'/>" + entry(2)),
    ],
    "a text of the channel changes the first entry": [
        with_prefixes(rss(item(1, THRICE) + item(2), HEAD + "<content:encoded>x</content:encoded>")),
        with_prefixes(rss(item(3) + item(1, THRICE) + item(2), HEAD + "<content:encoded>x</content:encoded>")),
    ],
    "a namespace gets two prefixes": [
        rss(item(1, "<x:title xmlns:x='urn:u'>X</x:title>")),
        rss(item(1, "<x:title xmlns:x='urn:u'>X</x:title>") + item(2, "<dc:title xmlns:dc='urn:u'>Y</dc:title>")),
    ],
    "which prefix comes first counts": [
        rss(LATE.format("media") + LATE.format("foo").replace("old", "two")),
        rss(
            LATE.format("foo").replace("old", "two")
            + item(3, "<media:a xmlns:media='urn:u'/><foo:b xmlns:foo='urn:u'/>")
            + LATE.format("media")
        ),
    ],
    "a prefix gets a second meaning": [
        rss(item(1, "<x:a xmlns:x='urn:u'/>")),
        rss(item(1, "<x:a xmlns:x='urn:u'/>") + item(2, "<x:a xmlns:x='urn:v'/>")),
    ],
    "a comment swallows the rest": [
        rss(item(1, "<!-- <![CDATA[ -->")),
        rss(item(1, "<!-- <![CDATA[ -->") + item(2, "<description>a&nbsp;b</description>")),
    ],
    "an instruction swallows the rest": [
        rss(item(1, "<?x <![CDATA[ ?>")),
        rss(item(1, "<?x <![CDATA[ ?>") + item(2, "<description>a&nbsp;b</description>")),
    ],
    "a comment between entries swallows the rest": [
        rss(item(1)),
        rss(item(2, "<description>a&nbsp;b</description>") + item(1)),
        rss(item(1) + "<!-- <![CDATA[ -->" + item(2, "<description>a&nbsp;b</description>")),
    ],
    "the last entry decides on what follows": [
        with_prefixes(atom("<entry><id>1</id></entry><media:group><title>T</title></media:group>").replace("News", "")),
        with_prefixes(
            atom("<entry><id>1</id></entry>" + entry(2) + "<media:group><title>T</title></media:group>").replace(
                "News", ""
            )
        ),
        with_prefixes(
            atom(entry(2) + "<entry><id>1</id></entry>" + "<media:group><title>T</title></media:group>").replace(
                "News", ""
            )
        ),
    ],
    "a date of another entry explains a date": [
        rss(item(1, "<pubDate>03/04/2025</pubDate>") + item(2)),
        rss(item(1, "<pubDate>03/04/2025</pubDate>") + item(2) + item(3, "<pubDate>13/04/2025</pubDate>")),
    ],
    # An entry's frame changes
    "a language around": [rss(item(1)).replace("<rss", f"<rss xml:lang='{lang}'") for lang in ("de", "fr")],
    "a base around": [atom(entry(1), f"xml:base='https://{name}.example/'") for name in ("one", "two")],
    "a namespace around": [
        atom(entry(1)).replace('xmlns="http://www.w3.org/2005/Atom"', f'xmlns="{uri}"')
        for uri in ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#")
    ],
    "a base of the channel": [
        rss(item(1, link="/posts/{}")).replace("<channel>", f"<channel xml:base='https://{name}.example/'>")
        for name in ("one", "two")
    ],
    "the feed's address": [
        rss(item(1, link="/posts/{}"), f"<title>News</title><link>https://{name}.example/</link>")
        for name in ("one", "two")
    ],
    "the feed's language": [rss(item(1), HEAD + f"<language>{lang}</language>") for lang in ("de", "fr")],
    "the feed's author": [atom(f"<author><name>{name}</name></author>" + entry(1)) for name in ("Ada", "Bob")],
    "the json feed's author": [json_feed(post(1), authors=[{"name": name}]) for name in ("Ada", "Bob")],
    "the json feed's language": [json_feed(post(1), language=lang) for lang in ("de", "fr")],
    # An entry repeats another
    "a repetition behind": [rss(item(1)), rss(item(1) + item(1, "<description>x</description>"))],
    "a repetition before": [rss(item(1)), rss(item(1, "<description>x</description>") + item(1))],
    "a repetition with another scheme": [
        rss(item(1)),
        rss(item(1, link="http://example.org/posts/{}") + item(1)),
    ],
    "a relative repetition": [
        rss(item(1, link="/posts/{}")),
        rss(item(1, link="/posts/{}") + item(1)),
    ],
    "a repetition without an address": [
        rss("<item><title>A word</title></item>"),
        rss("<item><title>A <![CDATA[word]]></title></item><item><title>A word</title></item>"),
    ],
    "a repetition without words": [
        rss("<item><title>札幌</title></item>"),
        rss("<item><title>札幌 </title></item><item><title>札幌</title></item>"),
    ],
    "a repetition in other words": [
        rss("<item><title>A w&#111;rd</title></item>"),
        rss("<item><title>A word</title></item><item><title>A w&#111;rd</title></item>"),
    ],
    "a repetition with other references": [
        rss(item(1, link="https://example.org/?a=1&amp;p={}")),
        rss(item(1, link="https://example.org/?a=1&#38;p={}") + item(1, link="https://example.org/?a=1&amp;p={}")),
    ],
    "a repetition in json": [
        json_feed(post(1)).replace("/", "\\/"),
        json_feed(post(1, summary="x"), post(1)).replace("/", "\\/"),
    ],
    "the same twice": [rss(item(1)), rss(item(1) + item(1)), rss(item(2) + item(1) + item(1))],
    "a repetition that is always there": [
        rss(item(1) + item(1, "<description>x</description>")),
        rss(item(2) + item(1) + item(1, "<description>x</description>")),
        rss(item(2) + item(1, "<description>x</description>")),
    ],
    "another guid": [
        rss(item(1, "<guid>a</guid><description>x</description>")),
        rss(item(1, "<guid>b</guid>") + item(1, "<guid>a</guid><description>x</description>")),
    ],
    # The pieces are not the entries
    "an element of such a name": [
        rss(item(1) + "<f:item xmlns:f='urn:f'>" + item(2)[6:-7] + "</f:item>" + item(2)),
        rss(item(1) + "<f:item xmlns:f='urn:f'>" + item(2)[6:-7] + "</f:item>"),
    ],
    "an entry within an entry": [
        rss(item(1) + f"<item><foo>{item(2)}</foo></item>"),
        rss(item(3) + item(1) + f"<item><foo>{item(2)}</foo></item>"),
    ],
    "empty entries before": [
        rss("<item/><item></item><item><title/></item>" + item(1) + item(2)),
        rss("<item/>" + item(2)),
        rss("<item/>" + item(1)),
    ],
    "repetitions before": [
        rss(item(1) + item(1, "<description>x</description>") + item(2) + item(3)),
        rss(item(2)),
        rss(item(3)),
    ],
    "an entry in a comment": [
        rss("<!--" + item(1) + "-->" + item(2)),
        rss(item(2) + "<!--" + item(1) + "-->"),
        rss(item(1) + "<![CDATA[" + item(2) + "]]>"),
        rss("<![CDATA[" + item(1) + "]]>" + item(2)),
        rss(item(1)),
    ],
    "entries at different depths": [
        rss(item(1)),
        rss("<foo>" + item(1) + "</foo>" + item(2)),
        rss("<foo>" + item(1) + "</foo>"),
        rss("").replace("</channel>", "</channel>" + item(1)),
        rss(item(2)).replace("</channel>", "</channel>" + item(1)),
    ],
    "two channels": [
        rss(item(1)),
        rss(item(1) + "</channel><channel xml:base='/x/'>" + item(2)),
    ],
    # The document can't be read
    "an end that is missing": [rss(item(1)), rss(item(1) + item(2))[:-9], rss(item(1) + item(2))[:-40]],
    "not well-formed behind": [rss(item(1)), rss(item(1) + item(2)) + "<end/>"],
    "not well-formed within": [rss(item(1)), rss(item(1) + item(2, "<b>"))],
    "not well-formed between": [rss(item(1)), rss(item(1) + "</b>" + item(2)), rss(item(1) + "&bad" + item(2))],
    "not well-formed between and known": [rss(item(1) + item(2)), rss(item(1) + "a & b" + item(2) + item(3))],
    "a page around": [rss(item(1)), "Warning<br>" + rss(item(1) + item(2)), "<html>" + rss(item(1)) + "</html>"],
    "an illegal character": [rss(item(1)), rss("<it\x01em>" + item(2)[6:] + item(1)), rss(item(1) + "\x01" + item(2))],
    "an entity": [
        f"<!DOCTYPE rss [<!ENTITY a 'the {name}'>]>" + rss(item(1, "<description>It is &a;</description>"))[21:]
        for name in ("first", "second")
    ],
    "json that goes on": [json_feed(post(1)), json_feed(post(1), post(2)) + "x", json_feed(post(1))[:-1]],
    "json without a comma": [
        json_feed(post(1), post(2)),
        json_feed(post(1), post(2)).replace("}, {", "} {"),
        json_feed(post(1), post(2)).replace("}]", "} 5]"),
        json_feed(post(1), post(2), post(3)).replace("}]", "}, ]"),
    ],
    "json with two lists": [
        json_feed(post(1)),
        json_feed(post(1)).replace('"title": "t"', f'"items": [{json.dumps(post(2))}]'),
        json_feed(post(1)).replace('"title": "t"', '"items": []'),
        json_feed(post(1)).replace('"title": "t"', '"items": 5'),
    ],
    "json with odd items": [json_feed(5, post(1), {}, post(2)), json_feed(post(2)), json_feed(5, {}, post(1))],
}


@pytest.mark.parametrize("keep_html", [False, True])
@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_gives_the_answer_of_a_full_reading(name: str, keep_html: bool) -> None:
    for documents in (TRAPS[name], TRAPS[name][::-1], [*TRAPS[name], *TRAPS[name]]):
        polls = Polls()
        for document in documents:
            polls.poll(document, keep_html=keep_html)


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


def test_more_entries_than_are_kept_are_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = Polls()
    dated = [item(n, f"<pubDate>Mon, 02 Feb 2026 10:00:0{n} GMT</pubDate>") for n in range(5)]
    for count in (3, 4, 5, 4):
        polls.poll(rss("".join(dated[:count])), max_entries=4)
        polls.poll(rss("".join(dated[:count])), max_entries=4)
    assert polls.left_out == 3 + 3 + 4 + 4  # none of the five, and nothing is known after them
    monkeypatch.setattr(known_package, "MAX_ENTRIES", 3)
    assert not (polls.poll(rss("".join(dated[:4]))) or read("")).digests


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


def test_a_long_search_for_repetitions_is_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_package, "MAX_SEARCHED_CHARS", 10)
    polls = Polls()
    polls.poll(rss(item(1)))
    polls.poll(rss(item(1) + item(2)))
    assert polls.left_out == 0


def test_a_trace_is_whole_and_looked_for_within_bounds() -> None:
    assert known_package._occurs("posts/1", "<link>/posts/12</link><link>/posts/1</link>")
    assert not known_package._occurs("posts/1", "<link>/posts/12</link>")
    assert known_package._occurs("a", "a" * 1_000 + ".")


def test_a_namespace_that_all_entries_declare_is_no_hindrance() -> None:
    feedburner = "<f:origLink xmlns:f='http://rssnamespace.org/feedburner/ext/1.0'>https://example.org/</f:origLink>"
    polls = Polls()
    polls.poll(rss(item(1, feedburner)))
    polls.poll(rss(item(2, feedburner) + item(1, feedburner)))
    assert polls.left_out == 1
    polls.poll(with_prefixes(rss(item(2) + item(1, feedburner))))
    assert DECLARED
    assert polls.left_out == 1

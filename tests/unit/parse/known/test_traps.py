"""Feeds in which one entry changes another, or an entry is not where it seems to be: none may give another answer."""

from __future__ import annotations

import json

import pytest

from tests.unit.parse.feeds import NAMESPACES, atom, rss, with_prefixes
from tests.unit.parse.known.polls import Polls, entry, item, json_feed, post

LATE = "<item><title>Old</title><link>/old</link><guid>1</guid><{0}:title xmlns:{0}='urn:u'>Y</{0}:title></item>"
HEAD = "<title>News</title><link>https://example.org/</link>"
THRICE = "".join(f"<description>{text}</description>" for text in ("one", "two", "three"))


def with_many_prefixes(items: str) -> str:
    """Return a feed whose root and channel declare 497 namespaces, each half of them."""
    declared = [f" xmlns:a{number}='urn:{number}'" for number in range(497)]
    feed = rss(items).replace("<rss", "<rss" + "".join(declared[:250]))
    return feed.replace("<channel", "<channel" + "".join(declared[250:]))


KNOWN_PREFIXES = [f" xmlns:{prefix}='{uri}'" for prefix, uri in NAMESPACES.items()]
FIVE, OTHERS = "".join(KNOWN_PREFIXES[1:6]), "".join(KNOWN_PREFIXES[6:11])

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
    "more prefixes than any feed needs": [
        with_many_prefixes(f"<item{FIVE}>{item(1)[6:]}"),
        with_many_prefixes(f"<item{FIVE}>{item(1)[6:]}<item{OTHERS}>{item(2)[6:]}"),
    ],
    "a prefix gets a second meaning, and both are usual": [
        rss(item(1, f"<x:a xmlns:x='{NAMESPACES['dc']}'/>")),
        rss(item(1, f"<x:a xmlns:x='{NAMESPACES['dc']}'/>") + item(2, f"<x:a xmlns:x='{NAMESPACES['media']}'/>")),
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
        rss(item(1) + other + last).replace("<rss", "<rss xmlns:f='urn:f'")
        for other in [f"<f:item>{item(2)[6:-7]}</f:item>"]
        for last in (item(2), "")
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
    "illegal characters that hide an entry, and an element of such a name": [
        rss(f"{item(1)[:-7]}<\x01/item><\x01item>{item(2)[6:]}{other}").replace("<rss", "<rss xmlns:f='urn:f'")
        for other in (f"<f:item>{item(2)[6:-7]}</f:item>", "")
    ],
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

"""Whatever a feed becomes from one poll to the next, the answer is that of a full reading without known entries.

Made-up feeds out of pools of entries, the corpus, and mutations of both. Each test counts how often entries were left
out: if it never happens, the test shows nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.fetcher.parse import ParsedFeed, ParseError
from services.fetcher.parse.known.pieces import Pieces, split
from shared.wire.jobs import DIGEST_BYTES
from tests.fuzz.mutate import mutate
from tests.fuzz.seeds import SEEDS
from tests.unit.parse.feeds import RDF, atom, read, rss, with_prefixes
from tests.unit.parse.formats.test_tiers import ITEMS
from tests.unit.parse.inputs.test_corpus import CORPUS, NOW, files
from tests.unit.parse.known.polls import Polls, listed

MANY = settings(max_examples=max(300, settings().max_examples))

LINKS = [
    "https://example.org/{}",
    "http://example.org/{}",
    "/{}",
    "feeds/{}",
    "?a=1&amp;p={}",
    "https://example.org/",
    "",
]
PARTS = [
    *("", "", "", "<description>In short</description>", "<guid>{}</guid>", "<guid isPermaLink='false'>a</guid>"),
    "<description>" + "text " * 30 + "</description>",
    "<description><![CDATA[<pre><item>code</item></pre> <!-- ]]></description>",
    "<description>&lt;p>caf&eacute; &#8217;&nbsp;x&lt;/p></description><content:encoded>y</content:encoded>",
    "<!-- <item> --><!-- </item> -->",
    "<!-- <![CDATA[ -->",
    "<?x </item> ?>",
    "<pubDate>Mon, 02 Feb 2026 10:00:00 GMT</pubDate>",
    "<pubDate>03/04/2025</pubDate>",
    "<pubDate>13/04/2025</pubDate>",
    "<pubDate>yesterday</pubDate>",
    "<pubDate>Mon, 02 Feb 2099 10:00:00 GMT</pubDate>",
    "<content xml:base='https://other.example/' type='html'>&lt;a href='x'>x&lt;/a></content>",
    "<summary xml:lang='fr'>court</summary>",
    "<x:title xmlns:x='urn:u'>X</x:title>",
    "<media:title xmlns:media='urn:u'>M</media:title>",
    "<f:origLink xmlns:f='http://rssnamespace.org/feedburner/ext/1.0'>/o</f:origLink>",
    "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p a='>'>d</p></div></content>",
    "<foo><item><title>within</title></item></foo>",
    "<enclosure url='/{}.mp3' type='audio/mpeg'/>",
    "<author><name>Ada</name></author>",
    "<category>c</category>",
]
TITLES = ["Post number {}", "Post number {}", "札幌", "A &amp; <![CDATA[B]]>", ""]


def write_entry(number: int, link: str, title: str, parts: list[str], attributes: str, *, is_atom: bool) -> str:
    name = "entry" if is_atom else "item"
    written = f"<link href='{link}'/>" if is_atom else f"<link>{link}</link>"
    inner = f"<title>{title}</title>{written}{''.join(parts)}".replace("{}", str(number))
    return f"<{name}{attributes}>{inner}</{name}>"


ATTRIBUTES = ["", "", "", "", " xml:lang='de'", " xml:base='/sub/'", " rdf:about='https://example.org/a>b'"]


def usual_entry(chance: random.Random) -> str:
    parts = chance.choices(PARTS[:9], k=chance.randrange(3))
    return write_entry(chance.randrange(10), LINKS[0], TITLES[0], parts, "", is_atom=False)


def odd_entry(chance: random.Random) -> str:
    parts = chance.choices(PARTS, k=chance.randrange(3))
    link, title, attributes = (chance.choice(some) for some in (LINKS, TITLES, ATTRIBUTES))
    return write_entry(chance.randrange(6), link, title, parts, attributes, is_atom=chance.random() < 0.3)


HEADS = [
    "<title>News</title><link>https://example.org/</link>",
    "<title>News</title><link>https://example.org/sub/</link><language>fr</language>",
    "<title>More</title><author><name>Desk</name></author><ttl>60</ttl>",
    "<title>Odd</title><content:encoded>x</content:encoded><!-- <item> -->",
]
FRAMES: list[Callable[[str, str], str]] = [
    lambda head, entries: rss(entries, head),
    lambda head, entries: rss(entries, head),
    lambda head, entries: rss(entries, head).replace("<channel>", "<channel xml:base='/b/'>"),
    lambda head, entries: atom(head + entries),
    lambda head, entries: atom(head + entries, "xml:base='https://example.org/b/' xml:lang='en_GB'"),
    lambda head, entries: RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"').replace(
        "<textinput>", entries + "<textinput>"
    ),
    lambda head, entries: (
        RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"').partition("<item ")[0] + entries + "</rdf:RDF>"
    ),
    lambda head, entries: "<!DOCTYPE rss [<!ENTITY eacute 'E'>]>" + rss(entries, head)[21:],
    lambda head, entries: rss(entries, head) + "<!-- cached -->",
    lambda head, entries: rss(entries + "<media:group><media:title>T</media:title></media:group>", head),
]
GAPS = ["", "\n", " <!-- a --> ", "text", "<foo/>", "<!-- <![CDATA[ -->"]


def documents(
    chance: random.Random, pool: list[str], frames: list[Callable[[str, str], str]], gaps: list[str]
) -> list[str]:
    """Return documents that choose from one pool of entries each time, in some order, some of them twice.

    Most have the same frame.
    """
    frame, head = chance.choice(frames), chance.choice(HEADS)
    found = []
    for _ in range(chance.randint(2, 4)):
        some = chance.sample(pool, chance.randint(1, len(pool)))
        if chance.random() < 0.3:
            some.insert(chance.randrange(len(some)), chance.choice(pool))
        if chance.random() < 0.1:
            frame, head = chance.choice(frames), chance.choice(HEADS)
        found.append(with_prefixes(frame(head, chance.choice(gaps).join(some))))
    return found


NUMBERS = st.integers(0, 2**32)
"""A number from which a test draws by chance: hypothesis would draw small feeds again and again."""


class Count:
    """How often entries were left out, of all polls."""

    def __init__(self) -> None:
        self.polls = self.left_out = 0

    def follow(self, bodies: list[Any], share: float = 1.0, **options: Any) -> None:
        polls, chance = Polls(), random.Random(len(bodies))
        for body in bodies:
            before = polls.left_out
            if share < 1:
                kept = [digest for digest in listed(polls.known) if chance.random() < share]
                polls.known = polls.known[:DIGEST_BYTES] + b"".join(kept)
            polls.poll(body, **options)
            self.polls += 1
            self.left_out += polls.left_out > before


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_usual_feed_that_changes(share: float) -> None:
    count = Count()

    @MANY
    @given(NUMBERS)
    def follow(number: int) -> None:
        chance = random.Random(number)
        pool = [usual_entry(chance) for _ in range(6)]
        frames = [FRAMES[0], FRAMES[3], FRAMES[6]]
        count.follow(documents(chance, pool, frames, GAPS[:3]), share, keep_html=chance.random() < 0.5)

    follow()
    assert count.left_out > count.polls / 4


@pytest.mark.parametrize("make", [odd_entry, usual_entry])
def test_an_odd_feed_that_changes(make: Callable[[random.Random], str]) -> None:
    count = Count()

    @MANY
    @given(NUMBERS)
    def follow(number: int) -> None:
        chance = random.Random(number)
        pool = [odd_entry(chance), *[make(chance) for _ in range(chance.randrange(4))]]
        count.follow(documents(chance, pool, FRAMES, GAPS), max_entries=chance.choice([5000, 5000, 3]))

    follow()
    assert count.left_out > count.polls / 25


def test_a_feed_with_entries_of_any_elements() -> None:
    """The strict tier declines most of them."""
    count = Count()

    @MANY
    @given(ITEMS.filter(bool), st.sampled_from([FRAMES[0], FRAMES[3], FRAMES[6]]))
    def follow(entries: list[str], frame: Callable[[str, str], str]) -> None:
        usual = usual_entry(random.Random(len(entries)))
        listings = (entries[0], usual + entries[0], "".join(entries))
        count.follow([with_prefixes(frame(HEADS[0], listed)) for listed in listings])

    follow()
    assert count.left_out > count.polls / 150


JSON_VALUES: dict[str, list[Any]] = {
    "id": [1, "1", "a", "https://example.org/1"],
    "url": ["https://example.org/1", "https://example.org/2", "/3", "", 5],
    "title": ["One", "Two words", "札幌", "<b>x</b>"],
    "content_html": ["<p>x</p>", "<a href='/y'>y</a>", '"}],[{'],
    "date_published": ["2026-02-02T10:00:00Z", "2026-02-02", "2026-02-03", "03/04/2025", "13/04/2025", "2099-01-01"],
    "attachments": [[{"url": "/a.mp3", "size_in_bytes": 5}]],
}


def json_item(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice([5, None, {}, []])
    return {name: chance.choice(values) for name, values in JSON_VALUES.items() if chance.random() < 0.7}


def test_a_json_feed_that_changes() -> None:
    count = Count()
    members: list[dict[str, Any]] = [
        *[{"title": "t"}] * 5,
        {"title": "u"},
        {"title": "t", "authors": [{"name": "Ada"}]},
        {"language": "de"},
    ]

    @MANY
    @given(NUMBERS)
    def follow(number: int) -> None:
        chance = random.Random(number)
        pool = [json_item(chance) for _ in range(chance.randint(1, 5))]
        versions = [chance.sample(pool, chance.randint(1, len(pool))) for _ in range(3)]
        bodies = [json.dumps({**chance.choice(members), "items": items}) for items in versions]
        is_escaped = chance.random() < 0.5
        count.follow([body.replace("/", "\\/") if is_escaped else body for body in bodies])

    follow()
    assert count.left_out > count.polls / 25


def test_a_mutated_feed() -> None:
    count = Count()
    usual = rss("".join(write_entry(n, LINKS[0], TITLES[0], [PARTS[n]], "", is_atom=False) for n in range(8))).encode()
    seeds = [usual, usual, *SEEDS]

    @MANY
    @given(NUMBERS)
    def follow(number: int) -> None:
        chance = random.Random(number)
        seed = chance.choice([*seeds[:2] * 10, *seeds])
        changed = mutate(seed, chance, chance.choice(SEEDS))
        count.follow([seed, changed, seed])

    follow()
    assert count.left_out > count.polls / 25


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus of feeds at {CORPUS}")
def test_real_feeds_that_grow_shrink_and_break() -> None:
    """Of the real feeds that the strict tier or the JSON tier reads, nearly all are cut, nearly completely."""
    chance = random.Random(5)
    real = cut = known = entries = 0
    for name, body in files():
        parsed = read_or_none(body)
        if parsed is None or not parsed.entries or len(body) > 1_000_000:
            continue
        pieces = split_or_none(body)
        polls = Polls()
        polls.poll(body, now=NOW)
        polls.poll(body, now=NOW)
        if not name.startswith("feedparser/") and parsed.tier in {"strict", "json"}:
            real, cut, known = real + 1, cut + (polls.left_out > 0), known + polls.left_out
            entries += len(parsed.entries)
        if pieces is not None and not name.startswith("feedparser/"):
            for document in shuffled(pieces, chance):
                polls.poll(document, now=NOW)
            polls.poll(mutate(body, chance), now=NOW)
        polls.poll(body[: len(body) // 2], now=NOW)
    assert cut > 0.95 * real > 50
    assert known > 0.9 * entries


def read_or_none(body: bytes) -> ParsedFeed | None:
    try:
        return read(body)
    except ParseError:
        return None


def split_or_none(body: bytes) -> Pieces | None:
    text = body.decode("utf-8", "replace").lstrip("\ufeff\x00 \t\r\n")
    return split(text) if text else None


def shuffled(pieces: Pieces, chance: random.Random) -> list[str]:
    """Return documents with only some of the entries, some changed, another order, and some twice."""
    some = pieces.entries[len(pieces.entries) // 3 :]
    changed = [entry.replace("the", "THE") if chance.random() < 0.2 else entry for entry in pieces.entries]
    mixed = chance.sample(pieces.entries, len(pieces.entries))
    return [pieces.only(entries) for entries in (some, changed, mixed, some + some)]

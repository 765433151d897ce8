"""Long runs of one thing: of each category of character, of each token of markup, and of pairs of them.

Quadratic time shows only in such runs. A run stands in one of the `PLACES` of a feed: each is read by other
code.
"""

from __future__ import annotations

import random
import sys
import unicodedata
from collections import defaultdict
from functools import cache
from itertools import count

NUMBERED = "#N#"
"""A unit may hold this mark. Each repetition has another number in its place."""

TOKENS = (
    *("<?a?>", " <?a?>", "&#32;", "\u0301\u0316", "start=1;", "1 ", "<!DOCTYPE a[>", "<!DOCTYPE ", "<![CDATA["),
    *("]]>", "<!--", "-->", "--!>", "<?", "?>", "<?xml ", "<!ENTITY a 'b'>", "<", ">", "</", "/>", "&"),
    *("&#", "&#x", "&#65;", "&amp;", "&lt;", "&a;", "&nbsp;", ";", "'", '"', "=", "[", "]", "a", "a ", " "),
    *("\t", "\n", "\r", "\x85", "/", "\\", ":", ".", ",", "-", "@", "0", "1:", "(", ")", "{", "}", "\x00"),
    *("<a>", "</a>", "<a ", "<a b='", '<a b="', "<a b=c ", f" a{NUMBERED}=''", " x=''"),
    *(f" xmlns:x{NUMBERED}='u'", f" xmlns:x='u{NUMBERED}'", f" xmlns='u{NUMBERED}'", f"<x{NUMBERED}>"),
    *(f"<x{NUMBERED}/>", f"<x:y{NUMBERED} a='b'/>", "<item>", "</item>", "<item/>", "<entry>", "<entry/>"),
    *("<rss>", "</rss>", "<feed xmlns='x'>", "<channel>", "<title>", "</title>", "<title/>", "<link>"),
    *("<link/>", "<link href='/'/>", "<guid>", "<author>", "<name>", "<author/>", "<contributor/>"),
    *(f"<category>{NUMBERED}</category>", f"<category term='{NUMBERED}'/>", "<enclosure url='/'/>"),
    *(f"<media:content url='/{NUMBERED}'/>", "<media:group>", "<description>", "<source>"),
    *("<content type='xhtml'>", "<div>", "</div>", "<p>", "<b>", "<b id=1>", "<table>", "<td>", "<svg>"),
    *("<math>", "<script>", "<style>", "</script>", "<pre>", "</pre>", "<textarea>", "<li>"),
    *("<img src='/'>", "<br>", "<image>", "<pubDate>", "<hour>1</hour>", "<ttl>", "xml:base='/'"),
    *("<x xml:base='a/'>", "<x xml:lang='de'>", "<dc:date/>", "&lt;item&gt;", "&lt;rss ", "<html>"),
    *("<body>", '"items":[', '{"id":1},', "{},", "[],", "[[", '{"a":', '"a",', "\\u0301", "\\ud800", "1e9"),
    *("yesterday ", "2 hours ago ", "03/04/2026 ", "a@b.", "http://[", "/../", "://"),
)

_ITEM = "<item><title>t</title><link>http://a.example/</link>{}</item>"
_RSS = "<rss version='2.0'><channel><title>c</title>{}</channel></rss>"
_ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><title>c</title>{}</feed>"
_JSON = '{"version":"https://jsonfeed.org/version/1.1","title":"t",{}}'
_BROKEN = "<item><title>&</title></b></item>"


def _inner(text: str) -> str:
    return _RSS.replace("{}", _ITEM.replace("{}", text))


PLACES = {
    "body": "{}",
    "before": "{}<rss version='2.0'><channel><item><title>t</title></item></channel></rss>",
    "dtd": "<!DOCTYPE rss [{}]><rss version='2.0'><channel><item><title>t</title></item></channel></rss>",
    "root tag": "<rss version='2.0' {}><channel><item><title>t</title></item></channel></rss>",
    "channel": _RSS,
    "item": _inner("{}"),
    "broken item": _RSS.replace("{}", _BROKEN + _ITEM),
    "after": _inner("") + "{}",
    "tag": _inner("<x {}/>"),
    "broken tag": _RSS.replace("{}", _BROKEN + "<item><title>t</title><x {}></item>"),
    "link tag": _RSS.replace("{}", "<atom:link {}>" + _ITEM.replace("{}", "")),
    "tag name": _inner("<x{}/>"),
    "title": _RSS.replace("{}", "<item><title>{}</title></item>"),
    "cdata title": _RSS.replace("{}", "<item><title><![CDATA[{}]]></title></item>"),
    "feed title": _RSS.replace("<title>c", "<title>{}"),
    **{
        name: _inner(f"<{name}>{{}}</{name}>")
        for name in (
            *("description", "author", "dc:creator", "category", "pubDate", "guid", "link", "itunes:keywords"),
            *("language", "source", "media:description", "content", "image", "georss:point", "dcterms:valid"),
        )
    },
    "html": _inner("<description><![CDATA[<p>{}</p>]]></description>"),
    "html tag": _inner("<description><![CDATA[<a {}>b</a>]]></description>"),
    "many descriptions": _inner("<description>{}</description><description>{}</description>"),
    "base": _inner("<description xml:base='{}'>t</description>"),
    "address": _inner("<enclosure url='{}' type='a' length='1'/>"),
    "xhtml": _ATOM.replace(
        "{}", "<entry><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>{}</div></content></entry>"
    ),
    "atom content": _ATOM.replace("{}", "<entry><content type='xhtml'>{}</content></entry>"),
    "base64": _ATOM.replace("{}", "<entry><content type='a/b'>{}</content></entry>"),
    "atom": _ATOM.replace("{}", "<entry><title>t</title>{}</entry>"),
    "atom tag": _ATOM.replace("{}", "<entry><title>t</title><link {}/></entry>"),
    "person": _ATOM.replace("{}", "<entry><title>t</title><author><name>{}</name></author></entry>"),
    "twice": "<rss></rss><rss><channel><item><title>{}</title></item></channel></rss>",
    "piece": "<rss></rss><rss><channel><item>{}",
    "page": "<html><body><pre>{}</pre></body></html>",
    "page with a feed": "<html><body>{}" + _RSS.replace("{}", _ITEM.replace("{}", "")) + "</body></html>",
    "json": _JSON.replace("{}", '"items":[{}]'),
    "json title": _JSON.replace("{}", '"items":[{"id":1,"title":"{}"}]'),
    "json html": _JSON.replace("{}", '"items":[{"id":1,"content_html":"{}"}]'),
    "json item": _JSON.replace("{}", '"items":[{"id":1,{}}]'),
    "json feed": '{"version":"https://jsonfeed.org/version/1.1",{}',
    "json page": "<html><pre>{}</pre>",
}


@cache
def characters() -> dict[str, list[str]]:
    """Return the characters of each category that UTF-8 can hold, marks by their combining class too."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for char in map(chr, range(sys.maxunicode + 1)):
        category = unicodedata.category(char)
        if category == "Cs":
            continue
        order = unicodedata.combining(char)
        found[f"{category} {order}" if order else category].append(char)
        if unicodedata.decomposition(char):
            found[f"{category} decomposed"].append(char)
    return dict(found)


def fill(place: str, unit: str, length: int) -> bytes:
    """Return a body of about `length` characters with a run of `unit` in `place`."""
    times = max(1, length // len(unit))
    numbers = count()
    run = (
        "".join([unit.replace(NUMBERED, str(next(numbers))) for _ in range(times)])
        if NUMBERED in unit
        else unit * times
    )
    return PLACES[place].replace("{}", run).encode("utf-8", "replace")


def choose(chance: random.Random) -> tuple[str, str]:
    """Return a place, and a unit for a run: one token or character, two, or three."""
    units = [_unit(chance) for _ in range(chance.choice((1, 1, 2, 2, 2, 3)))]
    return chance.choice([*PLACES]), "".join(units)


def _unit(chance: random.Random) -> str:
    if chance.random() < 0.75:
        return chance.choice(TOKENS)
    return chance.choice(characters()[chance.choice([*characters()])])

"""Feeds to begin with: one of each kind, with as much in it as fits."""

from __future__ import annotations

from html import escape

from tests.unit.parse.feeds import DECLARED, RDF, atom, rss

_ITEM = """<item><title>One &amp; <![CDATA[<b>two</b>]]></title><link>https://example.org/1?a=1&amp;b=2</link>
<guid isPermaLink="false">g1</guid><pubDate>Mon, 02 Feb 2026 10:00:00 +0100</pubDate><dc:date>03/04/2025</dc:date>
<dc:creator>Ada &lt;ada@example.org&gt;</dc:creator><category domain="d">birds</category>
<itunes:keywords>a, b</itunes:keywords>
<description>&lt;p&gt;Caf&eacute; &#8217; &amp;nbsp; x&lt;/p&gt;</description>
<content:encoded><![CDATA[<p>Long <a href="/x">text</a></p><script>no()</script><pre>a
b</pre>]]></content:encoded><enclosure url="/one.mp3" type="audio/mpeg" length="9"/>
<media:group><media:content url="/i.jpg" fileSize="5"><media:title>m</media:title></media:content></media:group>
<source url="https://other.example/">Other</source></item>"""
_CHANNEL = """<title>News</title><link>https://example.org/</link><language>de-AT</language><ttl>60</ttl>
<skipHours><hour>3</hour></skipHours><skipDays><day>Sunday</day></skipDays><sy:updatePeriod>daily</sy:updatePeriod>
<image><title>i</title><url>/i.png</url></image><atom:link rel="hub" href="https://hub.example/"/>"""
_RSS = rss(_ITEM + "<item><title>Two</title><pubDate>yesterday</pubDate></item>", _CHANNEL).replace(
    "<rss ", f"<rss{DECLARED} ", 1
)
_ATOM = atom(
    """<link rel="self" href="/atom"/><author><name>Desk</name></author><entry xml:base="sub/" xml:lang="fr">
    <id>tag:example.org,2026:1</id><title type="html">A &amp;amp; B</title><link href="1"/>
    <updated>2026-02-03T00:00:00Z</updated>
    <summary>In short</summary><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>In</p><p>full</p></div>
    </content><category term="a" label="Alpha"/></entry>""",
    'xml:lang="en_GB" xml:base="https://base.example/a/"',
)
_JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "t", "home_page_url": "https://example.org/",
"authors": [{"name": "Ada"}], "items": [{"id": 1, "url": "/1", "title": "One", "content_html": "<p>x</p>",
"date_published": "2026-02-02T10:00:00Z", "tags": ["a"], "attachments": [{"url": "/a.mp3", "size_in_bytes": 5}]}]}"""

SEEDS: list[bytes] = [
    text.encode()
    for text in (
        _RSS,
        _ATOM,
        _JSON,
        RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"'),
        f"<html><head><title>x</title></head><body><pre>{escape(_RSS)}</pre></body></html>",
        rss("") + _RSS,
        f"<html><body><pre>{escape(_JSON)}</pre></body></html>",
    )
]
SEEDS += [_RSS.encode("utf-16"), _RSS.replace('"1.0"', '"1.0" encoding="windows-1251"', 1).encode("cp1251")]

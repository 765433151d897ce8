"""The strict tier gives the lenient tier's answer or none. Other tests check single elements."""

from __future__ import annotations

import pytest

from services.fetcher.parse.model import Declined, NotAFeed
from tests.unit.parse.feeds import NAMESPACES, RDF, atom, read, read_by_both, rss, with_prefixes

ITEMS = [
    "<title>One</title><title>Two</title>",
    "<title/><title>Two</title>",
    "<media:title>Media</media:title><title>Own</title>",
    "<title>Own</title><media:group><media:title>Media</media:title></media:group>",
    "<title>First</title><source url='https://example.org/'>Elsewhere</source><title>Second</title>",
    "<title>First</title><image>x</image><title>Second</title>",
    "<title>a &lt;b&gt;c&lt;/b&gt;</title><dc:title>d</dc:title>",
    "<title type='html'>a &amp;amp; b</title>",
    "<title>not <em>escaped</em> &amp;lt;</title>",
    "<description>short</description><description>a second is the full text</description>",
    "<content:encoded>full</content:encoded><description>short</description><description>more</description>",
    "<description>x <b>bold</b> &amp; y</description>",
    "<description type='application/octet-stream'>aGVsbG8=</description>",
    "<xhtml:body><p>one</p><p class='a\"b'>two &amp; three</p></xhtml:body>",
    "<itunes:summary>sum</itunes:summary><itunes:subtitle>sub</itunes:subtitle>",
    "<media:content url='/a.mp4' fileSize='5'><media:description>caption</media:description></media:content>",
    "<link>https://example.org/?a=1&amp;amp;b=2&amp;c;</link>",
    "<link/><link>https:////example.org/two</link>",
    "<link>https://example.org/1</link><atom:link rel='alternate' href='https://example.org/2'/>",
    "<atom:link rel='enclosure' href='/a.mp3' type='audio/mpeg' length='9'/><link>x</link>",
    "<link rel='alternate' type='audio/mpeg' href='https://example.org/3'/>",
    "<guid isPermaLink='FALSE'>g</guid><guid>h</guid>",
    "<enclosure uri='/a.mp3' TYPE='Audio/MPEG'/>",
    "<author>Ada &lt;ada@example.org&gt;</author><dc:creator>Bob</dc:creator>",
    "<author>ada@example.org (Ada)</author><author>Bob</author>",
    "<atom:author><atom:email>e@example.org</atom:email><atom:name>N</atom:name></atom:author><author>Bob</author>",
    "<author><name>A</name><uri>u</uri></author><author><uri>v</uri></author>",
    "<author><id>https://m.example/a</id><name>A</name><summary>bio</summary><link rel='alternate' type='text/html' "
    "href='https://m.example/@a'/></author><id>1</id><title>t</title><link href='https://m.example/@a/1'/>",
    "<foo><id>2</id><title>deeper</title></foo><author><id>a</id><link rel='avatar' href='/a.png'/></author>",
    "<title xml:lang='fr'>a &lt;b&gt;c&lt;/b&gt;</title><foo><summary>deep</summary></foo><summary>s</summary>",
    "<itunes:summary>flat</itunes:summary><foo><itunes:summary type='html'>its type counts</itunes:summary></foo>",
    "<category domain='d'>a</category><category term='b' label='B'/><dc:subject>a</dc:subject><category/>",
    "<media:category>a</media:category><itunes:keywords>a, b,,c</itunes:keywords><media:keywords>d</media:keywords>",
    "<pubDate>Mon, 02 Feb 2026 10:00:00 EST</pubDate><dc:date>2026-02-03</dc:date>",
    "<pubDate>2026-02-02T10:00:00+0130</pubDate><dcterms:created>1770022800</dcterms:created>",
    "<pubDate>Mon, 31 Feb 2026 25:61:61 GMT</pubDate><dcterms:modified>20260203</dcterms:modified>",
    "<language>de_AT</language>",
    "<title xml:lang='fr_CA'>t</title>",
    "<title>cafÃ© \x93quoted\x94 naïve</title>",
    "<unknown><title>inner</title></unknown><title>outer</title>",
    "<feedburner:origLink>https://example.org/orig</feedburner:origLink><georss:point>1 2</georss:point>",
    "<creativeCommons:license>https://example.org/cc</creativeCommons:license><comments>c</comments>",
    "<title>a<!-- no --> b<![CDATA[ <c> ]]>&#x41;<?pi?></title>",
    "<contributor><name>C</name></contributor><dc:publisher>P</dc:publisher>",
    "<media:thumbnail url='/t.jpg'/><media:credit role='a'>c</media:credit><media:rating>r</media:rating>",
]

FEEDS = [
    *(rss(f"<item>{inner}</item>") for inner in ITEMS),
    *(atom(f"<entry>{inner}</entry>", 'xml:lang="en_GB" xml:base="https://example.org/a/b"') for inner in ITEMS),
    rss("", "<title>t</title><ttl>5</ttl><skipHours><hour>3</hour></skipHours><skipDays><day>Monday</day></skipDays>"),
    atom("<author><id>i</id><link href='https://m.example/@a'/></author><link href='/'/><entry><id>1</id></entry>"),
    rss("", "<ttl a='b'>5</ttl><sy:updatePeriod>daily</sy:updatePeriod><language>en</language>"),
    rss("", "<image><title>i</title><url>u</url><link>l</link></image><title>t</title><link>m</link>"),
    rss("", "<title>t</title><textInput><title>s</title><name>n</name></textInput><title>u</title>"),
    rss("", "<itunes:owner><itunes:name>n</itunes:name></itunes:owner><itunes:category text='a'/>"),
    rss("<item><title>t</title></item>", "<atom:link rel='self' href='x'/><title>a</title><title>b</title>"),
    atom("<author><name>A</name></author><author>Bob</author><entry><id>1</id></entry>"),
    atom("<subtitle>s</subtitle><link href='/x'/><updated>2026-02-02T00:00:00Z</updated><entry><id>1</id></entry>"),
    atom(
        "<entry><content xml:base='https://b.example/'>t</content><link href='x'/></entry>"
        "<entry><link href='y'/></entry>"
    ),
    atom("<entry xml:lang=''><title>t</title><content xml:lang='fr'>c</content></entry>", "xml:lang='de'"),
    atom("<entry><source><title>s</title><id>x</id></source><title>t</title><title>u</title></entry>"),
    atom('<entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<br/>b</div></content></entry>'),
    atom('<entry><content type="xhtml"> <xhtml:div>a</xhtml:div> <xhtml:div>b</xhtml:div></content></entry>'),
    atom("<entry><summary>a</summary><content>b</content><content type='html'>&lt;p&gt;longer</content></entry>"),
    atom("<entry><content type='text/plain' mode='base64'>aGVsbG8=</content></entry>"),
    atom("<entry><content type='image/png' src='x'>iVBORw0KGgo=</content></entry>"),
    "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><title>t</title><entry><issued>2026-02-02</issued>"
    "<modified>2026-02-03T00:00Z</modified><content type='text/html' mode='escaped'>&lt;p&gt;c</content></entry>"
    "</feed>",
]

OWN_NAMESPACES = [
    "<rss xmlns='http://unknown.example/'><channel><item><title>t</title></item></channel></rss>",
    "<rss xmlns:dc='http://wrong.example/dc'><channel><item><dc:creator>Ada</dc:creator></item></channel></rss>",
    "<rss><channel/><item a:type='html' xmlns:a='http://u.example/'><title a:type='html'>&lt;b&gt;</title></item>"
    "</rss>",
]


@pytest.mark.parametrize("feed", [*map(with_prefixes, FEEDS), *OWN_NAMESPACES])
def test_strict_reads_it_and_reads_what_lenient_reads(feed: str) -> None:
    strict, lenient = read_by_both(feed)
    assert strict == lenient


@pytest.mark.parametrize(
    "namespace",
    [
        'xmlns="http://purl.org/rss/1.0/"',
        'xmlns="http://my.netscape.com/rdf/simple/0.9/"',
        f'xmlns="{NAMESPACES["atom"]}"',
    ],
)
def test_strict_reads_rdf_as_lenient_reads_it(namespace: str) -> None:
    strict, lenient = read_by_both(RDF.format(namespace=namespace))
    assert strict == lenient
    assert (strict.title.value, strict.entries[0].guid) == ("News", "https://example.org/1")


@pytest.mark.parametrize(
    "feed",
    [
        "<rss><channel><item><title>t</title></item><item><title>cut",
        rss("<item><title>a & b</title></item>"),
        rss("<item><title>t</title></item>") + "<script/>",
        rss("<item><p:title>undeclared</p:title></item>"),
        rss("<item><é>t</é></item>").replace("é", "\U0001f600"),
        rss("<item><title>a]]>b</title></item>"),
        rss("<item><title>t</title><item><title>nested</title></item></item>"),
        rss("</channel><channel><item><title>t</title></item>"),
        rss("<item href='https://example.org/'><title>t</title></item>"),
        rss("<item><links>x</links></item>"),
        rss("<item><date>2026-02-02</date></item>"),
        rss("<item><summary_detail a='b'/></item>"),
        rss("<item><title>t</title><description>a <div>b</div> c</description></item>"),
        atom("<entry><title type='xhtml'><svg><title>t</title></svg></title></entry>"),
        atom("<entry><content type='xhtml'><p xml:base='https://b.example/'>t</p></content></entry>"),
        atom("<entry><content type='xhtml'><p><title>t</title></p></content></entry>"),
        atom("<entry><content type='application/xml'><a>b</a></content></entry>"),
        atom("<entry><author><name>a <b>c</b></name></author></entry>"),
        "<channel><item><title>t</title></item></channel>",
        "<rss xmlns:x='http://purl.org/dc/elements/1.1/'><channel><item><x:date>2026-02-02</x:date>"
        "<a xmlns:dc='http://purl.org/dc/terms/'/></item></channel></rss>",
        "<rss xmlns:rdf='http://purl.org/dc/terms/'><channel><item rdf:about='1'/></channel></rss>",
        "<rss xmlns='http://u.example/'><channel><item><u:title xmlns:u='http://u.example/'>t</u:title></item></channel>"
        "</rss>",
        "<rss><channel><item><p:dc xmlns:p='http://u.example/'><p:title xmlns:p='http://purl.org/rss/1.0/'>t</p:title>"
        "</p:dc></item></channel></rss>",
        rss("<item>" + "<a>" * 200 + "</a>" * 200 + "</item>"),
    ],
)
def test_what_strict_is_not_sure_about_is_lenients(feed: str) -> None:
    with pytest.raises(Declined):
        read_by_both(feed)
    assert read(feed).tier == "lenient"


def test_a_chapter_at_which_feedparser_fails_is_not_read_by_strict() -> None:
    with pytest.raises(Declined):
        read_by_both(with_prefixes(rss("<item><psc:chapters><psc:chapter title='t'/></psc:chapters></item>")))


SVG, XHTML_DIV = "xmlns='http://www.w3.org/2000/svg'", "<div xmlns='http://www.w3.org/1999/xhtml'>{}</div>"
WELL_FORMED_BUT_RARE = {
    "Medium's header": rss("<item><title>t</title><dc:creator>Ada</dc:creator></item>").replace(
        "<rss", "<rss xmlns:cc='http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html'"
    ),
    "a relative base of the feed": atom("<entry><link href='1'/><id>1</id></entry>", "xml:base='sub/'"),
    "a relative base of a text": atom(
        "<entry><content type='html' xml:base='/2026/'>&lt;img src='a'></content><link href='1'/></entry>"
    ),
    "a base within content": atom(
        "<entry><content type='xhtml'><div><p xml:base='sub/'>t</p></div></content><link href='1'/></entry>",
        "xml:base='https://b.example/'",
    ),
    "a picture in content": atom(
        f"<entry><content type='xhtml'>{XHTML_DIV}</content><title>t</title></entry>".format(
            f"a<svg {SVG} xmlns:xlink='http://www.w3.org/1999/xlink' viewBox='0'><title>no</title><a xlink:href='u'>"
            "<image/></a></svg>b<math xmlns='http://www.w3.org/1998/Math/MathML' display='block'><mi>x</mi></math>"
        )
    ),
    "a picture by prefix": atom(
        f"<entry><content type='xhtml'><s:svg xmlns:s={SVG[6:]} a='1'><s:title>no</s:title></s:svg></content></entry>"
    ),
    "a picture beside content": rss(f"<item><title>t</title><svg {SVG}><title>no</title></svg></item>"),
    "chapters": rss(
        "<item><title>t</title><psc:chapters version='1.2'><psc:chapter start='0' title='no'/></psc:chapters></item>"
    ),
    "a podcast's own": rss(
        "<item><title>t</title><itunes:author>Ada</itunes:author><itunes:link href='u'/><itunes:keywords>a,b"
        "</itunes:keywords><itunes:owner><itunes:name>Bob</itunes:name><itunes:email>b@example.org</itunes:email>"
        "</itunes:owner><itunes:season>1</itunes:season><itunes:category text='A'><itunes:category text='B'/>"
        "</itunes:category></item>"
    ),
    "an image of an entry": rss(
        "<item><image><url>u</url><title>i</title><link>l</link></image><title>t</title><link>1</link></item>"
    ),
    "an author's post": atom(
        "<entry><title>t</title><author><name>Ada</name><title>Dr</title><a>b</a></author></entry>"
    ),
    "a place": rss("<item><georss:where><gml:Point><gml:pos>1 2</gml:pos></gml:Point></georss:where></item>"),
    "tags": rss("<item><tags a='b'>x, y</tags><category>z</category></item>"),
    "several hours": rss("<item/>", "<skipHours><hours>1</hours><hour>2</hour></skipHours>"),
    "an entry's elements in the channel": rss(
        "<item><title>t</title></item>",
        "<title>News</title><enclosure url='u'/><content:encoded>c</content:encoded><summary>s</summary><content>d"
        "</content><newlocation>u</newlocation>",
    ),
}


@pytest.mark.parametrize("feed", WELL_FORMED_BUT_RARE.values(), ids=WELL_FORMED_BUT_RARE)
def test_strict_reads_what_is_well_formed_and_rare_as_lenient_reads_it(feed: str) -> None:
    strict, lenient = read_by_both(with_prefixes(feed))
    assert strict == lenient


def test_a_usual_prefix_may_mean_something_else_in_the_whole_document() -> None:
    strict, lenient = read_by_both(
        "<rss xmlns:x='http://purl.org/dc/elements/1.1/' xmlns:dc='http://purl.org/dc/terms/'><channel><item>"
        "<x:date>2026-02-02</x:date><dc:issued>2026-02-03</dc:issued></item></channel></rss>"
    )
    assert strict == lenient


def test_the_tier_that_read_is_named_and_warns_of_nothing() -> None:
    parsed = read(rss("<item><title>t</title></item>"))
    assert (parsed.tier, parsed.warnings) == ("strict", ())


def test_more_entries_than_anyone_should_send_are_not_read_by_strict() -> None:
    parsed = read(rss("<item/>" * 60_001))
    assert (parsed.tier, parsed.warnings[0]) == ("lenient", "entries beyond the newest 20000 not read: 40001")


def test_more_elements_than_any_feed_needs_are_not_made_into_a_tree() -> None:
    with pytest.raises(Declined, match="more elements"):
        read_by_both(rss("<a/>" * 800_001))


def test_an_rdf_document_of_no_known_version_is_not_read_by_strict() -> None:
    with pytest.raises(NotAFeed):
        read('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>')

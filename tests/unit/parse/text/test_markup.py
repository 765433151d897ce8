from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse.model import OutOfTime
from services.fetcher.parse.text.markup import MAX_HTML_CHARS, SMALL_CHARS, safe_html
from shared.wire.results import Entry
from tests.unit.parse.feeds import atom, read, read_by_both, rss

BASE = "https://example.org/blog/one"
REL = 'rel="noopener noreferrer nofollow"'


HOME = f'<a href="https://example.org/" {REL}>'


def safe(source: str) -> str:
    return safe_html(source, BASE)[0]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<p>a<script>alert(1)</script>b</p>", "<p>ab</p>"),
        ("<p>a</p><script>alert(1)", "<p>a</p>"),
        ("<p>a<scr<script>x</script>ipt>alert(1)</script></p>", "<p>aipt&gt;alert(1)</p>"),
        ("<p onclick=alert(1) ONMOUSEOVER='x' class=c id=i>a</p>", "<p>a</p>"),
        ("<p style='background:url(javascript:x)'>a</p><style>p{}</style>", "<p>a</p>"),
        ("<img src=x onerror=alert(1)>", '<img src="https://example.org/blog/x">'),
        ("<img src='javascript:x'><p>a</p>", "<p>a</p>"),
        ("<img src=data:image/png;base64,AAAA><p>a</p>", "<p>a</p>"),
        ("<p><a href='javascript:x'>a</a></p>", "<p>a</p>"),
        ("<p><a href=' jAvA\tscript&colon;x'>a</a></p>", "<p>a</p>"),
        ("<p><a href='java&#10;script:x'>a</a></p>", "<p>a</p>"),
        ("<p><a href='&#106;avascript&#58;x'>a</a></p>", "<p>a</p>"),
        ("<p><a href='\x01javascript:x'>a</a></p>", "<p>a</p>"),
        ("<p><a href='vbscript:x'>a</a><a href='file:///etc/passwd'>b</a></p>", "<p>ab</p>"),
        ("<p><a href='data:text/html,<script>x</script>'>a</a></p>", "<p>a</p>"),
        ("<iframe src=https://e.example/></iframe><p>a</p>", "<p>a</p>"),
        ("<object data=x><embed src=x></object><p>a</p><embed src=x><applet code=x>", "<p>a</p>"),
        ("<form action=x><input name=y><button>b</button><p>a</p></form>", "b<p>a</p>"),
        ("<svg onload=alert(1)><a xlink:href='javascript:x'>s</a></svg><p>a</p>", "<p>a</p>"),
        ("<math><mi xlink:href='javascript:x'>m</mi></math><p>a</p>", "<p>a</p>"),
        ("<base href='https://evil.example/'><p><a href=x>a</a></p>", f'<p><a href="{BASE[:-3]}x" {REL}>a</a></p>'),
        ("<meta http-equiv=refresh content='0;url=x'><link rel=stylesheet href=x><p>a</p>", "<p>a</p>"),
        ("<p title='\"><b>x</b>'>a</p>", '<p title="&quot;&gt;&lt;b&gt;x&lt;/b&gt;">a</p>'),
        ("<p>&lt;script&gt;x&lt;/script&gt;</p>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("<!--><script>x</script>--><p>a</p>", "--&gt;<p>a</p>"),
        ("<p>a<!-- <b>x</b> --></p><![CDATA[<p>b</p>]]>", "<p>a</p><p>b</p>"),
        (
            "<noscript><p title='</noscript><img src=/x onerror=y>'></noscript>b",
            '<img src="https://example.org/x">\'&gt;b',
        ),
        ("<textarea><img src=x onerror=x></textarea><title>t</title><xmp><b>a</b></xmp>", "t<b>a</b>"),
        ("<a href=/x target=_blank rel=opener ping=y>a</a>", f'<a href="https://example.org/x" {REL}>a</a>'),
        ("<video src=x><source src=y></video><audio src=x></audio><p>a</p>", "<p>a</p>"),
        ("<details open ontoggle=x><summary>s</summary>a</details>", "<details><summary>s</summary>a</details>"),
        ("<p>a\x00b\x08</p>", "<p>ab</p>"),
    ],
)
def test_what_could_harm_is_gone(source: str, shown: str) -> None:
    found = safe(source)
    assert found == shown
    assert not re.search(r"<(?:script|style|svg|iframe)|<[^>]*\bon\w+=", found)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<p>a<div>b</div>c", "<p>a</p><div>b</div>c"),
        ("<b>a<i>b</b>c</i>", "<b>a<i>b</i></b>c"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"),
        (
            "<table><thead><tr><th colspan=2>a<tbody><tr><td>b<td>c<tr><td>d</table>e",
            '<table><thead><tr><th colspan="2">a</th></tr></thead><tbody><tr><td>b</td><td>c</td></tr>'
            "<tr><td>d</td></tr></tbody></table>e",
        ),
        ("<table>a<tr>b", "<table><tbody><tr><td>a</td></tr><tr><td>b</td></tr></tbody></table>"),
        ("<table><caption>a<tr><td>b</table>", "<table><caption>a</caption><tbody><tr><td>b</td></tr></tbody></table>"),
        ("<td>a</td><tr><p>b", "a<p>b</p>"),
        ("<a href=//a.example>a<a>b<a href='/'>c", f'<a href="https://a.example" {REL}>ab</a>{HOME}c</a>'),
        ("<pre>a\n  b</pre>", "<pre>a\n  b</pre>"),
        ("<h2>a &amp; b&nbsp;c &lt; d</h2>", "<h2>a &amp; b&nbsp;c &lt; d</h2>"),
        ("<center><font color=red>a<br/>b</font></center><hr>", "a<br>b<hr>"),
        ("<img src=//cdn.example/a.png alt='' width=5>", '<img src="https://cdn.example/a.png" alt="" width="5">'),
        ("</p></b>a<p>", "a<p></p>"),
    ],
)
def test_it_is_balanced_and_its_addresses_are_absolute(source: str, shown: str) -> None:
    assert safe(source) == shown


@pytest.mark.parametrize("source", ["", "a &amp; b", "a < b", "1 <2> 3", "<script>x</script>", "<!--x-->a", "<x>a</x>"])
def test_without_markup_there_is_no_html(source: str) -> None:
    assert safe(source) == ""


def test_what_is_cut_is_balanced_and_within_its_bounds() -> None:
    found, is_cut = safe_html("<div><p><b>" + "&amp; word " * 200_000, BASE)
    assert is_cut
    assert MAX_HTML_CHARS - 10 < len(found) <= MAX_HTML_CHARS
    assert found.endswith("</b></p></div>")
    assert not re.search(r"&(?!amp;)", found)


def test_a_long_base_does_not_multiply_a_short_source() -> None:
    source = "<a href=x>a</a>" * 1000
    found, is_cut = safe_html(source, "https://example.org/" + "y" * 900 + "/")
    assert is_cut
    assert len(found) <= 4 * len(source) + SMALL_CHARS


# Time and memory


HOSTILE = {
    "formatting that is never closed": "".join(f"<p><b id={n}>" for n in range(40_000)) + "<p>x" * 60_000,
    "formatting that a table hides": "<b id=1><table><td></b></td></table>" * 12_000 + "<p>x" * 60_000,
    "attributes": "<p " + " ".join(f"a{n}=1" for n in range(80_000)) + ">x</p>",
    "levels": "<div>" * 100_000 + "x",
    "blocks in formatting": "<p>" + "<b>" * 97 + "<div>x</div>" * 30_000,
    "what browsers move out of tables": "<i></i>" * 30_000 + "<table>" + "<i></i>x<tr></tr>" * 20_000,
    "links": "<a href=x>" * 40_000,
    "quotes": "<a x='" * 80_000 + ">",
    "cells": "<table><td><p>" * 30_000,
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_hostile_html_costs_what_its_length_costs(source: str) -> None:
    """It takes a second or two; nh3 alone needs minutes and gigabytes for some of them."""
    started = time.process_time()
    found, _ = safe_html(source, BASE)
    assert time.process_time() - started < 30
    assert len(found) <= MAX_HTML_CHARS


def test_the_deadline_is_asked() -> None:
    with pytest.raises(OutOfTime):
        safe_html("<p>a</p>", BASE, deadline=lambda: True)


class Balance(HTMLParser):
    """Fails at a tag that is not where it belongs, and at one that nobody asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "style", "iframe", "form", "input", "svg", "object"}
        for name, value in attrs:
            assert name in {"href", "src", "rel", "title", "alt", "cite", "colspan", "lang"}
            assert name not in {"href", "src", "cite"} or str(value).startswith(("http://", "https://"))
        if tag not in {"br", "img", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


SOUP = (
    "<p> </p> <b> </b> <a\thref=/x> </a> <div> </div> <table> </table> <tr> <td> </td> <caption> <tbody> <ul> <li> "
    "</ul> x &amp; & < > ' \" <!-- --> <![CDATA[ ]]> <script> </script> <svg> </svg> <img\tsrc=x> <h1> <h2> </h1> "
    "<img\tsrc='java&#9;script:x'> <ruby> <rt> <dl> <dd> <pre> </pre> <p\ttitle='\"> <iframe> <br/> <form> <select> "
    "<option> <template> <b\tid=1> </tr> </caption>"
)
SCRAPS = st.sampled_from(SOUP.split(" "))


@given(st.lists(SCRAPS, max_size=40).map("".join))
def test_any_html_comes_out_balanced_and_making_it_safe_again_changes_nothing(source: str) -> None:
    found = safe(source)
    balance = Balance()
    balance.feed(found)
    balance.close()
    assert balance.open == []
    assert safe(found) == found


# In the reader


def entries(body: str) -> tuple[Entry, ...]:
    return read(body, keep_html=True).entries


DESCRIPTION = f"<link>{BASE}</link><description>&lt;p&gt;&lt;a href='#n'&gt;a&lt;/a&gt;</description>"


def test_an_entry_has_no_html_unless_it_is_asked_for() -> None:
    body = rss(f"<item><title>t</title>{DESCRIPTION}</item>")
    assert read(body).entries[0].html is None
    assert entries(body)[0].html == f'<p><a href="{BASE}#n" {REL}>a</a></p>'
    assert entries(body)[0].body == read(body).entries[0].body == "a"


def test_what_becomes_the_text_becomes_the_html() -> None:
    content = "<content:encoded><![CDATA[<p></p>]]></content:encoded><description>&lt;b&gt;a&lt;/b&gt;</description>"
    assert [e.html for e in entries(rss(f"<item><title>t</title>{content}</item>"))] == ["<b>a</b>"]


def test_a_mere_picture_is_html_though_it_is_no_text() -> None:
    (entry,) = entries(rss("<item><title>t</title><description>&lt;img src='/a.png'&gt;</description></item>"))
    assert (entry.body, entry.html) == ("t", '<img src="https://example.org/a.png">')


def test_a_plain_text_has_no_html() -> None:
    plain = atom("<entry><title>t</title><id>1</id><summary>a &lt;b&gt; c</summary></entry>")
    assert [e.html for e in entries(plain + " ")] == [None]
    assert [e.html for e in entries(rss("<item><title>t &lt;b&gt;</title></item>"))] == [None]


def test_xml_base_goes_before_the_entrys_own_address() -> None:
    feed = atom(
        """<entry xml:base="https://base.example/a/"><title>t</title><link href="https://example.org/1"/>
        <content type="html" xml:base="b/">&lt;p&gt;&lt;img src="c.png"&gt;</content></entry>
        <entry><title>u</title><link href="/2"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p><a
        href="x">y</a></p></div></content></entry>""",
        'xml:base="https://home.example/"',
    )
    expected = [
        '<p><img src="https://base.example/a/b/c.png"></p>',
        f'<p><a href="https://home.example/x" {REL}>y</a></p>',
    ]
    assert [e.html for e in entries(feed)] == expected
    assert [e.html for e in entries(feed + "<end>")] == expected
    strict, lenient = read_by_both(feed)
    assert strict == lenient


def test_json_and_salvage_have_html_too() -> None:
    items = [{"id": "1", "content_html": "<p>a\x00b<script>x</script>"}, {"id": "2", "content_text": "<p>plain"}]
    feed = json.dumps({"version": "https://jsonfeed.org/version/1", "items": items})
    assert [e.html for e in entries(feed)] == ["<p>ab</p>", None]
    wreck = rss("") + rss("<item><title>t</title><description>&lt;p&gt;a&lt;/p&gt;</description></item>")
    assert [e.html for e in entries(wreck)] == ["<p>a</p>"]


def test_cut_html_carries_a_flag() -> None:
    long = "&lt;p&gt;" + "word " * 250_000
    (entry,) = entries(rss(f"<item><title>t</title><description>{long}</description></item>"))
    assert entry.flags == ("body_cut", "html_cut")
    assert (entry.html or "").endswith("</p>")

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse.model import Text
from services.fetcher.parse.text import clean_title, content_quality, cut_at_word, html_to_text, to_text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>One</p><p>two</p>", "One\ntwo"),
        ("<p>One\n  <b>bold</b>\tword</p>\n\n<div>two<br>three</div>", "One bold word\ntwo\nthree"),
        ("un<b>brok</b>en", "unbroken"),
        ("<ul><li>a</li><li>b</li></ul>", "a\nb"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>", "a b\nc"),
        ("a<script>if (1 < 2) alert('</p>')</script>b<style>p {}</style>c<noscript>d</noscript>e", "abce"),
        ("a<SCRIPT type='x'>b</ScRiPt >c", "ac"),
        ("a<script>never closed <p>b", "a"),
        ("a<svg>never closed <p>b", "a\nb".replace("a\n", "anever closed\n")),
        ("a<!-- b <p> -->c<!-->d<!--->e<!-- f", "acde"),
        ("<![CDATA[<p>a</p>]]>b", "a\nb"),
        ("&lt;b&gt; &amp;amp; &eacute;&#233;&#xe9; &nbsp;x &euro; &#128;", "<b> &amp; ééé x € €"),
        ("<a title='x > y' href=\"1>2\">a</a>", "a"),
        ('<a title="unclosed>a</a> b', "a b"),
        ("1 < 2 <3 and a<b", "1 < 2 <3 and a"),
        ("<p>a</p", "a"),
        ("<pre>one\n  two</pre>\nx\ny", "one\ntwo\nx y"),
        ("line one\nline two\r\n\r\nthree &amp; four", "line one\nline two\nthree & four"),
        ("a\x00b\x08c\ud800d\x85e", "abcd e"),
        ("İ<script>x</script>İ<pre>\ny</pre>", "İİ\ny"),
        ("<?php x ?>a<!DOCTYPE html>b</3>c", "abc"),
        ("", ""),
    ],
)
def test_html_becomes_the_text_that_a_reader_sees(source: str, text: str) -> None:
    assert html_to_text(source) == text


def test_plain_text_keeps_what_looks_like_markup() -> None:
    assert to_text(Text("a <b> &amp;\n\n c")) == "a <b> &amp;\nc"


def test_a_title_is_one_line_without_markup() -> None:
    assert clean_title(Text("<h1>One\n</h1><em>two</em>\u2028three", is_html=True)) == "One two three"


@pytest.mark.parametrize("is_html", [True, False])
@pytest.mark.parametrize(
    "text", ["<![CDATA[One]]>", "<![CDATA[One", "<![CDATA[<![CDATA[One]]>]]>", "<![CDATA[One]]&gt;"]
)
def test_a_text_that_was_wrapped_twice_is_unwrapped(text: str, is_html: bool) -> None:
    if is_html or "&" not in text:
        assert clean_title(Text(text, is_html=is_html)) == "One"
    assert html_to_text(text) == "One"


@pytest.mark.parametrize(
    "source",
    [
        "<p>" + "".join(f"<b id={n}>" for n in range(20_000)) + "<p>x" * 50_000,  # a tree would take gigabytes
        "<div>" * 200_000,
        "<a " + " ".join(f"a{n}=1" for n in range(100_000)) + ">",
        "<a x='" * 200_000,
        "<td " * 200_000 + "</p>",
        "<svg>" * 200_000,
        "<svg><iframe><noscript>" * 50_000 + "</svg>",
        "<![CDATA[" * 200_000,
        "<!--" * 200_000 + "<pre>\n" * 200_000,
        "<pre>\n" * 200_000,
        " \n" * 500_000 + "<",
        "&" * 1_000_000 + "<",
    ],
)
def test_hostile_html_takes_time_in_proportion_to_its_length(source: str) -> None:
    assert len(html_to_text(source)) <= len(source)


@given(st.text(alphabet=st.sampled_from("<>/!-?=\"' apbrescitvg&;#x1\n\x00\ud800]["), max_size=200))
def test_any_text_becomes_text_that_utf_8_holds(source: str) -> None:
    text = html_to_text(source)
    text.encode()
    assert text == text.strip()
    assert "\x00" not in text
    assert "\n\n" not in text


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("short", 10, "short"),
        ("one two three", 8, "one two"),
        ("one two three", 7, "one two"),
        ("x" * 20, 10, "x" * 10),
    ],
)
def test_a_text_is_cut_at_a_word(text: str, limit: int, cut: str) -> None:
    assert cut_at_word(text, limit) == cut


@pytest.mark.parametrize(
    ("body", "quality"),
    [
        ("", "title_only"),
        ("The title", "title_only"),
        ("x" * 139, "stub"),
        ("x" * 140, "summary"),
        ("x" * 999, "summary"),
        ("x" * 1000, "full"),
        ("x" * 1000 + " …", "summary"),
        ("x" * 1000 + " [...]", "summary"),
        ("x" * 1000 + "\nRead more »", "summary"),
        ("x" * 1000 + " read more about it here.", "full"),
    ],
)
def test_the_quality_of_a_content_goes_by_length_and_end(body: str, quality: str) -> None:
    assert content_quality("The title", body) == quality


PIECES = st.sampled_from(
    [
        "<",
        ">",
        "<p>",
        "</p>",
        "<B>",
        "<br/>",
        "<pre>",
        "</pre>",
        "<td>",
        "<a href='x>y'>",
        '<i a=">',
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<noſcript>",
        "<svg ",
        " ",
        "  ",
        "\n",
        "\r",
        "\t",
        "\x0b",
        "\xa0",
        "\u2028",
        "\x01",
        "&amp;",
        "&lt;b&gt;",
        "&#10;",
        "word",
        "é",
        "=",
        "'",
        '"',
        "<1>",
        "<?x?>",
        "<a\nb>",
        "]]>",
        "<![CDATA[",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_dropping_all_tags_in_one_pass_gives_what_the_careful_way_gives(source: str) -> None:
    careful = "<script></script>"  # an element that is not dealt with by dropping its tags
    assert html_to_text(source + "<p>") == html_to_text(careful + source + "<p>")

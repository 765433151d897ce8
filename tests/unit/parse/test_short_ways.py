"""Short ways that the reader takes where it can: none of them may give another answer than the long way."""

from __future__ import annotations

import html
import re
from contextlib import suppress
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.fetcher.parse.dates import _plain, _usual, read_date
from services.fetcher.parse.document import (
    _HALF_OF_LONG_TAG,
    _MANY_ATTRIBUTES,
    MAX_ATTRIBUTES,
    _cut_attributes,
    is_legal,
    resolve_references,
)
from services.fetcher.parse.model import Declined
from services.fetcher.parse.text import (
    _drop_comments,
    _drop_hidden,
    _drop_tags,
    _drop_tags_one_by_one,
    _keep_preformatted,
    clean_line,
    html_to_text,
    tidy,
    unescape,
)
from shared.wire.results import Entry
from tests.unit.parse.feeds import atom, read, read_by_both, rss, with_prefixes
from tests.unit.parse.formats.test_tiers import ISO_DATES, MAIL_DATES, TEXTS, element

RSS = """
    title link guid description content:encoded pubDate dc:date dc:creator author category category itunes:summary
    itunes:subtitle itunes:title media:description media:title dc:description dc:title dcterms:issued dcterms:modified
    created published updated issued dc:language atom:link comments foo source rights media:thumbnail
    """.split()  # noqa: SIM905
ATTRIBUTED = [
    '<guid isPermaLink="false">{}</guid>',
    '<guid isPermaLink=" TRUE ">{}</guid>',
    '<enclosure url="https://example.org/a.mp3" type="audio/mpeg" length="1"/>',
    '<enclosure href="b.mp3"/>',
    '<media:content url="c.png" type="image/png" fileSize="7"/>',
    '<media:thumbnail url="d.png"/>',
    '<source url="https://example.org/">{}</source>',
    '<category term="x" label="X"/>',
    '<category domain="d">{}</category>',
    '<title type="html">{}</title>',
    '<title type="xhtml">{}</title>',
    '<content type="html">{}</content>',
    '<content type="text">{}</content>',
    '<content mode="base64">{}</content>',
    '<summary xml:lang="fr">{}</summary>',
    '<link href="https://example.org/1"/>',
    '<link rel="alternate" type="text/html" href="https://example.org/2"/>',
    '<link rel="alternate" type="application/pdf" href="https://example.org/3"/>',
    '<link rel="enclosure" href="https://example.org/4"/>',
    '<link rel="self" href="https:////example.org/5"/>',
    '<link rel="replies" href="https://example.org/6">{}</link>',
    '<link rel="alternate" hreflang="fr" href="/7"/>',
    '<link rel="" href="https://example.org/8"/>',
    '<link uri="at://did:plc:1/post/9"/>',
    '<link uri="at://did:plc:1/post/9">{}</link>',
    '<link rel="enclosure">{}</link>',
    "<media:group><media:title>{}</media:title><media:description>{}</media:description></media:group>",
    "<itunes:author>{}</itunes:author>",
    "<itunes:keywords>{}</itunes:keywords>",
    '<itunes:category text="A"><itunes:category text="B"/></itunes:category>',
    "<itunes:owner><itunes:name>{}</itunes:name><itunes:email>e@example.org</itunes:email></itunes:owner>",
    "<dc:subject>{}</dc:subject>",
    '<media:content url="e.mp4"><media:title>{}</media:title><media:credit>c</media:credit></media:content>',
    '<media:group><media:content url="f.mp4"/><media:description>{}</media:description></media:group>',
    '<psc:chapters><psc:chapter start="0" title="{}"/></psc:chapters>',
    "<image><url>u</url><title>{}</title></image>",
    "<foo><bar>{}</bar></foo>",
    '<content type="xhtml"><svg a="b"><title>{}</title></svg></content>',
    '<content type="html" xml:base="/sub/">{}</content>',
    "<author><name>{}</name></author>",
    "<author><name>a</name><title>{}</title></author>",
    "<author><name>{}</name><uri>u</uri><email>e@example.org</email></author>",
    "<author><uri>u</uri></author>",
    "<author><id>{}</id><name>a</name><link rel='alternate' href='https://example.org/a'/></author>",
    "<author><name>a</name><summary type='html'>{}</summary><link>{}</link></author>",
    "<author><title type='html'>{}</title><id xml:lang='fr'>2</id></author>",
]
INNER = st.lists(
    st.builds(lambda name, text: element(name, {}, escape(text)), st.sampled_from(RSS), TEXTS)
    | st.builds(lambda form, text: form.replace("{}", escape(text)), st.sampled_from(ATTRIBUTED), TEXTS),
    max_size=7,
).map("".join)


@given(INNER, INNER, TEXTS.map(escape), st.booleans())
def test_a_usual_entry_is_read_as_the_lenient_tier_reads_it(one: str, two: str, title: str, is_atom: bool) -> None:
    after = f"<media:group><title>{title}</title></media:group>"  # counts only if no title before it does
    if is_atom:
        document = atom(f"<entry>{one}</entry><entry>{two}</entry>{after}")
    else:
        document = rss(f"<item>{one}</item><item>{two}</item>{after}")
    with suppress(Declined):
        strict, lenient = read_by_both(with_prefixes(document))
        assert strict == lenient


USUAL = [
    rss(
        "<item><title>t</title><link>https://example.org/1</link><guid isPermaLink='false'>1</guid>"
        "<pubDate>Mon, 02 Feb 2026 10:00:00 +0000</pubDate><category>a</category><category>b</category>"
        "<dc:creator>Ada</dc:creator><description>d</description><content:encoded>c</content:encoded>"
        "<comments>3</comments><enclosure url='u' type='t' length='1'/></item>"
    ),
    atom(
        "<entry><id>1</id><title type='html'>t</title><link rel='alternate' href='https://example.org/1'/>"
        "<author><name>Ada</name><uri>u</uri></author><updated>2026-02-02T10:00:00Z</updated>"
        "<category term='a'/><content type='html'>c</content></entry>"
    ),
]


@given(ISO_DATES | MAIL_DATES | st.text("0123456789-+:.TZW JanFebGMU,", max_size=31).map("Mon, 02 {}".format))
def test_a_date_of_the_usual_shapes_is_the_same_by_the_short_way(text: str) -> None:
    assert _usual(text) in {None, _plain(text)}


def test_the_short_way_knows_the_two_usual_shapes_and_no_others() -> None:
    for text in ("Mon, 02 Feb 2026 10:00:00 +0130", "Mon, 02 Feb 2026 10:00:00 GMT", "2026-02-02T10:00:00-08:00"):
        assert _usual(text) == read_date(text)
        assert _usual(text) is not None
    for text in ("2026-W02-1T10:00:00Z", "Mon, 02 Feb 2026 100000,1 +0000", "Mon, +2 Feb 2026 10:00:00 GMT"):
        assert _usual(text) is None


@given(st.lists(st.sampled_from(["&", "&amp;", "&amp", "&#38;", "&#x26", "&nope;", "&notit;", "lt;", "#", "a", " "])))
def test_references_are_read_as_python_reads_them(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert unescape(text) == html.unescape(text)


MARKUP = st.lists(
    st.builds(
        "<{}{}{}>".format,
        st.sampled_from(["", "/"]),
        st.sampled_from(
            "p b pre PRE iframe script Style head svg video textarea td ſvg iframex br img custom".split()  # noqa: SIM905
        ),
        st.sampled_from(["", " a=1", ' a="x>y"', " a='<'", "/"]),
    )
    | st.sampled_from(
        ["\n", " ", "text", "\t", "\xa0", "  ", "\u2009", "é", "\x00", "<", ">", "&amp;", "<!--", "-->", '"']
    ),
    max_size=12,
).map("".join)


@given(MARKUP)
def test_html_becomes_the_same_text_by_the_short_way(source: str) -> None:
    source = _drop_comments(source)
    short = _drop_tags(_keep_preformatted(source))
    if short is not None:
        assert short == _drop_tags_one_by_one(_keep_preformatted(_drop_hidden(source)))


@given(MARKUP)
def test_html_becomes_the_same_text_whichever_way_is_taken(source: str) -> None:
    slow = _drop_tags_one_by_one(_keep_preformatted(_drop_hidden(_drop_comments(source))))
    assert html_to_text(source) == tidy(unescape(slow if "<" in source else source))


@given(MARKUP)
def test_line_breaks_are_kept_up_to_the_end_of_preformatted_text(source: str) -> None:
    parts = re.split(r"(<pre(?=[\s>]).*?(?:</pre|\Z))", source, flags=re.IGNORECASE | re.DOTALL)
    parts[1::2] = [part.replace("\n", "<br>") for part in parts[1::2]]
    assert _keep_preformatted(source) == "".join(parts)


def test_elements_that_show_no_text_are_dropped_by_the_short_way() -> None:
    source = "<p>a<iframe src='u'></iframe><script>b;</script></p>\n<pre>c\n  d</pre></style>"
    assert (_drop_tags(_keep_preformatted(source)) or "").split("\n") == ["", "a", " ", "c", "  d", ""]


@given(MARKUP)
def test_a_text_is_tidied_as_its_lines_are(text: str) -> None:
    assert tidy(text) == "\n".join(filter(None, map(clean_line, text.split("\n"))))


def test_numbers_that_xml_allows_are_left_to_the_parser() -> None:
    for code in (*range(0x200), *range(0xCFF0, 0xE010), *range(0xFFF0, 0x10010), 0x1F600, 0x10FFFF, 0x110000):
        for reference in (f"{code}", f"x{code:x}", f"X{code:X}", f"0{code}", f"x0{code:x}"):
            expected = f"&#{reference};" if is_legal(reference) else "\ufffd"
            assert resolve_references(f"&#{reference};", "") == expected


@pytest.mark.parametrize("feed", USUAL)
def test_an_entry_that_was_made_without_checks_is_like_one_that_was_checked(feed: str) -> None:
    (entry,) = read(with_prefixes(feed)).entries
    checked = Entry.model_validate(entry.model_dump())
    assert entry == checked
    assert entry.model_dump_json() == checked.model_dump_json()
    assert entry.model_fields_set == {
        *checked.model_fields_set,
        "html",
        "enrichment",
    }  # not written while there are none
    assert entry.model_copy(update={"title": "u"}).title == "u"
    with pytest.raises(ValueError, match="frozen"):
        entry.title = "u"  # type: ignore[misc]


LONG_TAGS = st.lists(
    st.builds(
        lambda count, attribute, text: f"<a{attribute * count}>{text}",
        st.sampled_from([0, 3, MAX_ATTRIBUTES, MAX_ATTRIBUTES + 1, 3 * MAX_ATTRIBUTES]),
        st.sampled_from([" a=''", ' a="b>c"', "\n a = 'd'"]),
        st.integers(0, 4 * _HALF_OF_LONG_TAG).map("x".__mul__),
    ),
    max_size=4,
).map("".join)


@given(LONG_TAGS, st.integers(0, 2 * _HALF_OF_LONG_TAG).map("y".__mul__))
def test_attributes_beyond_the_limit_are_found_wherever_they_stand(tags: str, before: str) -> None:
    assert _cut_attributes(before + tags) == _MANY_ATTRIBUTES.sub(r"\1", before + tags)

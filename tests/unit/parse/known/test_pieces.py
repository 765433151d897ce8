"""Where the entries of a text begin and end, or that it is not sure."""

from __future__ import annotations

import pytest

from services.fetcher.parse.known import pieces
from services.fetcher.parse.known.pieces import split
from tests.unit.parse.feeds import RDF, atom, rss

ONE = "<item x='a>b'><![CDATA[</item>]]><!-- </item> --><?x </item>?><items/></item >"


def test_head_entries_and_tail_are_the_text() -> None:
    text = '<?xml version="1.0"?>\n<!-- <rss> -->' + rss("\n" + ONE + "<!-- c -->\n<item/><item a='/>'></item>\n")[21:]
    found = split(text)
    assert found is not None
    assert found.entries == (ONE, "<item/>", "<item a='/>'></item>")
    assert found.head == text[: text.index("<item x")]
    assert found.tail == "</channel></rss>"
    assert found.frame == ('<rss version="2.0">', "<channel>")
    assert found.only([ONE]) == found.head + ONE + found.tail


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (atom("<entry/>"), '<feed xmlns="http://www.w3.org/2005/Atom" >'),
        (RDF.format(namespace="").replace("<textinput><title>Search</title></textinput>", ""), "<channel rdf:about"),
        ("<x:rss a='>'><x:channel><x:item></x:item></x:channel></x:rss>", "<x:rss a='>'>"),
        ("<!DOCTYPE rss PUBLIC 'a' 'b'><rss><item/></rss><!-- cached -->", "<rss>"),
    ],
)
def test_the_tags_around_are_the_frame(text: str, frame: str) -> None:
    found = split(text)
    assert found is not None
    assert any(tag.startswith(frame) for tag in found.frame)
    assert len(found.entries) == 1


@pytest.mark.parametrize(
    "text",
    [
        rss(""),
        "neither",
        "{}",
        '{"items": []}',
        '{"items": {}}',
        '{"items": [{}], "items": [{}]}',
        '{"items": [{} {}]}',
        '{"items": [{} [{}]}',
        "[" * 100_000,
        '{"items": ' + "[" * 100_000,
        "<html><item/></html>",
        "text" + rss("<item/>"),
        rss("<item/>")[:-1],
        rss("<item>"),
        rss("<item></item"),
        rss("<item></item x>"),
        rss("<item><item></item></item>"),
        rss("<item><![CDATA[</item>"),
        rss("<item><!DOCTYPE a></item>"),
        rss("<item><!-- <![CDATA[ --></item>"),
        rss("<item/><foo/><item/>"),
        rss("<item/>text<item/>"),
        rss("<item/><!-- <![CDATA[ --><item/>"),
        rss("<item/>", "</channel><channel>"),
        rss("<!-- <item/>"),
        rss("<item/></channel></rss><rss><channel>"),
        "<!DOCTYPE rss [<!ENTITY a 'b'>]>" + rss("<item/>")[21:],
        "<rss a='<'><item/></rss>",
    ],
)
def test_what_is_not_sure_has_no_pieces(text: str) -> None:
    assert split(text) is None


def test_texts_beyond_a_limit_have_no_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    json_feed = '{"items": [' + ", ".join(["{}"] * 3) + "]}"
    for text in (rss("<item/>" * 3), json_feed):
        monkeypatch.setattr(pieces, "MAX_ENTRIES", 3)
        monkeypatch.setattr(pieces, "MAX_MARKS", 40)
        assert split(text)
        monkeypatch.setattr(pieces, "MAX_ENTRIES", 2)
        assert split(text) is None
        monkeypatch.setattr(pieces, "MAX_ENTRIES", 3)
        monkeypatch.setattr(pieces, "MAX_MARKS", 4)
        assert split(text) is None


def test_no_text_takes_longer_than_its_length() -> None:
    """Each of these would take minutes if a part of it was looked at again and again."""
    for part in (
        "<item>",
        "<item ",
        "<item><!--",
        "<!--",
        "<a:",
        "<item a='",
        "<?",
        "<!-- -",
        "<item><![CDATA[",
        "x" * 9,
    ):
        assert split(rss(part * 100_000)) is None
        assert split(rss("<item>" + part * 100_000)) is None

"""Broken and hostile lists: repaired with a warning, or refused with line and reason; never half read in silence."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.admin.subscriptions import opml as opml_reader
from services.admin.subscriptions import reading, source
from services.admin.subscriptions.model import BadList, Flaws, Format
from services.admin.subscriptions.reading import open_list
from services.admin.subscriptions.source import Source, seekable
from tests.unit.subscriptions.lists import open_bytes, opml, outline, read, warnings

URL = "http://a.example/feed"


@pytest.mark.parametrize(
    ("name", "read_as", "said"),
    [
        ("a&nbsp;b", "a b", "&nbsp; is not defined"),
        ("&copy; 2026", "© 2026", "&copy; is not defined"),
        ("&LT;b&GT;", "<b>", "&LT; is not defined"),
        ("Q&A", "Q&A", "not escaped"),
        ("&mine;", "&mine;", "not defined"),
        ("a&#1;b&#xD800;", "ab", "stands for no character"),
        ("a\x0bb\x00", "ab", "control characters"),
    ],
)
def test_what_can_be_repaired_without_a_loss_is_repaired_and_said(name: str, read_as: str, said: str) -> None:
    text = opml(outline(URL), outline("http://b.example/?x=1&copy=2&amp;y=3", name))
    assert [(feed.url, feed.name) for feed in read(text)] == [
        (URL, "News"),
        ("http://b.example/?x=1&copy=2&y=3", read_as),
    ]
    assert any(said in text and line == 4 for line, text in warnings(text))


def test_repairs_do_not_depend_on_where_a_block_of_the_file_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    text = opml(outline("http://b.example/?x=1&copy=2&amp;y=3", "é &nbsp; &#233; &amp; Q&A\r\n"), outline(URL)).encode()
    whole = read(text)
    for size in (1, 2, 3, 5, 7, 11, 16, 31, 64):
        monkeypatch.setattr(source, "BLOCK_BYTES", size)
        assert read(text) == whole
    assert [feed.line for feed in whole] == [3, 5]


def test_white_space_before_the_declaration_and_a_wrong_declaration_do_no_harm() -> None:
    text = "\n \n" + opml(outline(URL, "Café")).replace("?>", ' encoding="ISO-8859-1"?>')
    assert [(feed.line, feed.name) for feed in read(text)] == [(5, "Café")]
    assert warnings(text) == [(1, "the file is declared as iso-8859-1 and read as utf-8, which it is")]


@pytest.mark.parametrize(
    ("encoding", "name", "is_said"),
    [("iso-8859-1", "Café", False), ("windows-1251", "Новости дня", False), ("utf-8", "Café", True)],
)
def test_bytes_that_are_no_utf8_are_read_as_declared_else_as_windows_1252(
    encoding: str, name: str, is_said: bool
) -> None:
    text = opml(outline(URL), outline("http://b.example/", name)).replace("?>", f' encoding="{encoding}"?>')
    data = text.encode("cp1252" if encoding == "utf-8" else encoding)
    assert read(data)[1].name == name
    assert [line for line, _ in warnings(data)] == [4] * is_said


def test_a_stray_byte_after_much_good_text_is_found() -> None:
    filler = "<!-- é -->\n" * 12_000
    data = opml(filler, outline(URL)).encode().replace(b"News", b"Caf\xe9 \xc3\xa9")
    assert read(data)[0].name == "Café é"
    assert warnings(data) == [(12_004, "bytes that are no UTF-8: the file is read as utf-8")]


CUT = opml('<outline text="F">', outline(URL), outline("http://b.example/"), "</outline>")


@pytest.mark.parametrize("length", range(60, len(CUT) - 3, 23))
def test_a_cut_file_is_refused_and_says_how_much_was_before_the_end(length: int) -> None:
    with pytest.raises(BadList, match="the file is cut off") as raised:
        read(CUT[:length])
    assert raised.value.salvageable
    assert raised.value.feeds_before == CUT[:length].count("/>")


def test_a_cut_file_is_salvaged_if_a_person_says_so() -> None:
    text = CUT[: CUT.index("http://b")]
    assert [(feed.line, feed.tags) for feed in read(text, salvage=True)] == [(4, ("F",))]
    assert [line for line, _ in warnings(text, salvage=True)] == [5, 5]


def test_outlines_are_salvaged_each_by_itself() -> None:
    text = opml(
        outline(URL, "a < b > c"),
        "<outline text=x xmlUrl=http://b.example/?x=1&copy=2 />",
        '<outline text="F"><OUTLINE text=\'c\' xmlUrl="http://c.example/"></outline></b></outline>',
        '<outline text="lost" xmlUrl="http://d.example/',
        outline("http://e.example/"),
    )
    with pytest.raises(BadList, match=r"line 3: the XML is broken: .*column"):
        read(text)
    assert [(feed.line, feed.url, feed.tags) for feed in read(text, salvage=True) if feed.url] == [
        (3, URL, ()),
        (4, "http://b.example/?x=1&copy=2", ()),
        (5, "http://c.example/", ("F",)),
        (7, "http://e.example/", ()),
    ]
    assert warnings(text, salvage=True)[0][0] == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \r\n\xef\xbb\xbf", "empty"),
        (b"<!DOCTYPE html><html><body>log in</body></html>", "HTML page"),
        (b"<script>x</script>", "HTML page"),
        (b'<rss version="2.0"><channel/></rss>', "this is a feed"),
        (b"<sitemap/>", "root element <sitemap>"),
        (b'{"feeds": []}', "JSON"),
        (b"PK\x03\x04...", "ZIP"),
        (b"\x1f\x8b...", "gzip"),
        (b"hello\nworld\n", "no list of feeds"),
        (b"https://a.example/feed,My blog\nhttps://b.example/feed,Other\n", "without a header"),
        (opml().encode(), "no feed in it"),
        (b"url,name\n", "no feed in it"),
        (b'url,name\nhttp://a.example/,"open\nhttp://b.example/,b\n', "line 2: the CSV can't be read"),
        (b"url\nhttp://a.example/" + b"x" * 340_000, "line 2: a line with more than"),
    ],
)
def test_what_is_no_list_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadList, match=reason):
        open_bytes(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (opml(outline(URL), '<outline text="x">' * 300), "line 4: more than 256 outlines"),
        (opml(outline(URL), "<x>" * 600), "line 4: more than 512 elements"),
        (opml(outline(URL), f'<outline text="{"x" * 1_200_000}"/>'), "line 4: a tag, comment or DOCTYPE"),
        (opml(outline(URL), f"<!-- {'x' * 1_200_000} -->"), "line 4: a tag, comment or DOCTYPE"),
    ],
    ids=["outlines", "elements", "attribute", "comment"],
)
def test_what_no_reader_writes_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(BadList, match=reason) as raised:
        read(text)
    assert raised.value.feeds_before == 1


def test_entities_of_a_dtd_never_expand() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    text = f'<!DOCTYPE opml [<!ENTITY l0 "lol">{laughs}<!ENTITY f SYSTEM "file:///etc/passwd">]>' + opml(
        outline(URL, "&l11;&f;")
    ).removeprefix('<?xml version="1.0"?>')
    assert [feed.name for feed in read(text)] == ["&l11;&f;"]


def test_a_million_repairs_are_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opml_reader, "MAX_REPAIRS", 50)
    with pytest.raises(BadList, match="more than 50 references"):
        read(opml(outline(URL, "&" * 60)))


def test_salvage_gives_up_where_nothing_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opml_reader, "MAX_BAD_TAGS", 5)
    with pytest.raises(BadList, match="more than 5 outlines can't be read"):
        read(opml(*['<outline a="<'] * 20), salvage=True)


def test_a_list_has_a_bounded_number_of_feeds_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_FEEDS", 1)
    with pytest.raises(BadList, match="line 4: more than 1 feeds"):
        read(opml(outline(URL), outline(URL)))
    monkeypatch.setattr(source, "MAX_BYTES", 10)
    with pytest.raises(BadList, match="split it"):
        read(opml(outline(URL)))


class Pipe(io.BytesIO):
    def seekable(self) -> bool:
        return False


def test_a_pipe_is_read_twice_and_no_further_than_the_largest_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with seekable(Pipe(opml(outline(URL)).encode())) as file:
        opened = open_list(file)
        assert [feed.url for feed in opened.read()] == [feed.url for feed in opened.read()] == [URL]
    monkeypatch.setattr(source, "MAX_BYTES", 100_000)
    endless = Pipe(b"x" * 1_000_000)
    with seekable(endless) as file, pytest.raises(BadList, match="split it"):
        Source(file, Flaws())
    assert endless.tell() < 300_000


HOSTILE = {
    "feeds": b"<opml><body>" + b'<outline xmlUrl="http://a.example/" text="%s"/>\n' % (b"x" * 1000) * 6_000,
    "text": b"<opml><body>" + b"x" * 6_000_000,
    "attribute": b'<opml><body><outline text="' + b"x" * 6_000_000,
    "nesting": b"<opml><body>" + b'<outline text="x">' * 340_000,
    "nul": b"<opml><body>" + b"\x00" * 6_000_000,
    "line": b"http://a.example/" + b"x" * 6_000_000,
    "quote": b'url\n"' + b"x\n" * 3_000_000,
    "strays": b"http://a.example/\n" + b"\xff\xfe\xe9\n" * 1_500_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("salvage", [False, True])
def test_memory_is_bounded_whatever_is_in_a_file(name: str, salvage: bool, tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_bytes(HOSTILE[name])
    with file.open("rb") as opened:
        tracemalloc.start()
        try:
            for _ in open_list(opened, salvage=salvage).read():
                pass
        except BadList:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert peak < 4_500_000  # less than any of these files has


@given(st.binary(max_size=300), st.sampled_from([b"", b"<opml>", b"url,name\n", b"http://a.example/\n"]), st.booleans())
def test_any_bytes_are_a_list_or_are_refused(data: bytes, before: bytes, salvage: bool) -> None:
    for form in (None, *Format):
        try:
            opened = open_bytes(before + data, form, salvage=salvage)
        except BadList as error:
            assert error.line > 0  # noqa: PT017
        else:
            assert len(list(opened.read())) == opened.feeds

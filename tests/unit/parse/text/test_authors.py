from __future__ import annotations

import time

import pytest

from services.fetcher.parse.text.authors import read_names
from tests.unit.parse.feeds import atom, item, read, read_by_both, rss, with_prefixes

JANE = ("Jane Doe",)


@pytest.mark.parametrize(
    "text",
    [
        "jane@example.org (Jane Doe)",
        "jane@example.online (Jane Doe)",
        "jane.doe+news@mail.example.photography (Jane Doe)",
        "jane@example.co.uk(Jane Doe)",
        "mailto:jane@example.org (Jane Doe)",
        "MAILTO:jane@example.org (Jane Doe)",
        "mailto:jane@example.org?subject=Hello%20you (Jane Doe)",
        "o'doe@example.org (Jane Doe)",
        "jané@exämple.de (Jane Doe)",
        "jane@xn--exmple-cua.de (Jane Doe)",
        "jane@例子.公司 (Jane Doe)",
        "jane@[127.0.0.1] (Jane Doe)",
        "jane@127.0.0.1 (Jane Doe)",
        "root@localhost (Jane Doe)",
        'jane@example.org ("Jane Doe")',
        "jane@example.org ( Jane Doe )",
        "jane@example.org Jane Doe",
        "jane@example.org, Jane Doe",
        "jane@example.org - Jane Doe",
        "jane@example.org (Jane Doe",
        "Jane Doe <jane@example.online>",
        "Jane Doe <mailto:jane@example.org>",
        "Jane Doe < jane@example.org >",
        "Jane Doe<jane@example.org>",
        "Jane Doe <jane@intranet>",
        "Jane Doe &lt;jane@example.org&gt;",
        '"Jane Doe" <jane@example.org>',
        "“Jane Doe” <jane@example.org>",
        "Jane Doe (jane@example.org)",
        "Jane Doe [jane@example.org]",
        "Jane Doe, jane@example.org",
        "Jane Doe jane@example.org",
        '<a href="mailto:jane@example.org">Jane Doe</a>',
        '<a href="https://example.org/@jane">Jane Doe</a>',
    ],
)
def test_the_name_is_found_beside_the_address(text: str) -> None:
    assert tuple(map(str.strip, read_names(text))) == JANE


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("jane@example.online", "jane@example.online"),
        ("mailto:jane@example.org", "jane@example.org"),
        ("<jane@example.org>", "jane@example.org"),
        ("jane@example.org ()", "jane@example.org"),
        ("jane@example.org (jane@example.org)", "jane@example.org"),
        ("jane@localhost", "jane@localhost"),
        ("jane@example.org (Jane (JD) Doe)", "Jane (JD) Doe"),
        ("jane@example.org (Jane Doe (Reuters))", "Jane Doe (Reuters)"),
        ("jane@example.org Jane Doe (Reuters)", "Jane Doe (Reuters)"),
        ("Jane Doe (Reuters) <jane@example.org>", "Jane Doe (Reuters)"),
        ('"Doe, Jane" <jane@example.org>', "Doe, Jane"),
        ("Doe, Jane <jane@example.org>", "Doe, Jane"),
        ('"Weird" Al <al@example.org>', '"Weird" Al'),
        ("jane@example.org (Jane Doe, Bob)", "Jane Doe, Bob"),
        ("jane@example.org (O'Hara-Smith, J. R.)", "O'Hara-Smith, J. R."),
    ],
)
def test_nothing_of_a_name_is_lost_and_an_address_stands_in_for_none(text: str, names: str) -> None:
    assert read_names(text) == (names,)


@pytest.mark.parametrize(
    "text",
    [
        "Jane Doe",
        "Smith & Sons (Ltd)",
        "@jack",
        "@jane@example.social",
        "Jane (@jane@example.social)",
        "Jane @ Work",
        "Q@A (Ltd) now",
        "https://jane@example.org/",
        "jane at example dot org (Jane)",
        "(anonymous)",
    ],
)
def test_a_text_without_an_address_is_a_name_as_it_stands(text: str) -> None:
    assert read_names(text) == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "jane@example.org (Jane Doe), bob@example.info (Bob)",
        "jane@example.org (Jane Doe) bob@example.info (Bob)",
        "jane@example.org (Jane Doe) and bob@example.info (Bob)",
        "Jane Doe <jane@example.org>, Bob <bob@example.info>",
        "Jane Doe <jane@example.org>; Bob <bob@example.info>;",
        "Jane Doe (jane@example.org) & Bob (bob@example.info)",
    ],
)
def test_several_people_in_one_text_are_each_named(text: str) -> None:
    assert item(f"<title>t</title><author><![CDATA[{text}]]></author>").author == "Jane Doe, Bob"


def test_several_addresses_are_each_a_person() -> None:
    assert read_names("jane@example.org, bob@example.info") == ("jane@example.org", "bob@example.info")


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("<author>jane@example.online (Jane Doe)</author>", "Jane Doe"),
        ("<dc:creator>Jane Doe &lt;jane@example.online&gt;</dc:creator>", "Jane Doe"),
        ("<itunes:author>jane@example.online (Jane Doe)</itunes:author>", "Jane Doe"),
        ("<author><name>jane@example.online (Jane Doe)</name></author>", "Jane Doe"),
        ("<author><name>Jane Doe</name><email>jane@example.online</email><uri>u</uri></author>", "Jane Doe"),
        ("<author><email>mailto:jane@example.online</email></author>", "jane@example.online"),
        ("<author>Jane Doe<email>jane@example.online</email></author>", "Jane Doe"),
        ("<author><uri>u</uri></author>", None),
        ("<author/><dc:creator>Jane Doe</dc:creator>", "Jane Doe"),
        ("<author><name>Jane</name></author><author><name>Bob</name></author>", "Jane, Bob"),
        ("<dc:creator>Jane</dc:creator><author>bob@example.org (Bob)</author>", "Jane, Bob"),
    ],
)
def test_each_tier_names_the_same_people(author: str, expected: str | None) -> None:
    for document in (
        rss(f"<item><title>t</title>{author}</item>"),
        atom(f"<entry><id>1</id><title>t</title>{author}</entry>"),
    ):
        strict, lenient = read_by_both(with_prefixes(document))
        assert strict == lenient
        assert read(with_prefixes(document)).entries[0].author == expected
        assert read(with_prefixes(document).replace("</title>", "</title><b>", 1)).entries[0].author == expected


def test_a_podcasts_owner_is_no_author_of_an_atom_feed() -> None:
    owner = "<itunes:owner><itunes:name>Owner</itunes:name><itunes:email>o@example.org</itunes:email></itunes:owner>"
    feed = atom(f"<author><name>Jane</name></author>{owner}<entry><id>1</id><title>t</title></entry>")
    strict, lenient = read_by_both(with_prefixes(feed))
    assert strict == lenient
    assert strict.authors == ("Jane",)


def test_names_of_json_feed_are_read_alike() -> None:
    feed = """{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "title": "t", "authors":
        [{"name": "jane@example.online (Jane Doe)"}, {"name": "@jack"}, {"name": "Smith & Sons (Ltd)"}]}]}"""
    assert read(feed).entries[0].author == "Jane Doe, @jack, Smith & Sons (Ltd)"


@pytest.mark.parametrize("piece", ["a", "a.", "a@", "a@a.", "<", "(", "mailto:", "a@a.a ", "&lt;", "'", "a-"])
def test_reading_names_takes_little_time_whatever_the_text(piece: str) -> None:
    started = time.process_time()
    for _ in range(20):
        read_names(f"x@{piece * 100_000}")
        read_names(f"{piece * 100_000}@x")
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('<span about="/user/1" typeof="schema:Person">Jane Doe</span>', JANE),
        ("&lt;a href='https://example.org/'&gt;Jane Doe&lt;/a&gt;", JANE),
        ("Andr&eacute; &amp; S&#246;hne", ("André & Söhne",)),
        ("AT&T & Sons", ("AT&T & Sons",)),
        ("Jane <3", ("Jane <3",)),
        ("<b></b>", ("<b></b>",)),
    ],
)
def test_tags_and_references_are_no_part_of_a_name(text: str, names: tuple[str, ...]) -> None:
    assert read_names(text) == names
